"""Asks a model for one answer to an everyday wish, and counts the right first calls."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from re import search
from time import monotonic
from typing import Any

from evals.case import Call, Case, plant
from evals.everyday import FILES, Task
from evals.play import Setting, Variant, calls_of, counted, environment, records_of, run
from evals.table import aligned

ONE_STEP = {"budget": {"run": {"steps": 1}}}
"""Configuration with which a run ends after the first answer and its calls."""
ENDS = ("done", "denied", "budget")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a model did first: the names and the arguments of its calls, and whether that is
    right.
    """

    task: str
    model: str
    variant: str
    right: bool
    calls: tuple[Call, ...]
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: float
    seconds: float
    exit_code: int | None


async def choose(task: Task, variant: Variant, setting: Setting, root: Path) -> Choice:
    """Ask once; everything is kept below the empty folder `root`."""
    project = root / "project"
    case = Case(name=task.name, tries="", task=task.wish, files=FILES, reference=())
    await asyncio.to_thread(plant, case, project)
    variant.install(root / "config")
    started = monotonic()
    attached = [word for name in task.attached for word in ("-f", name)]
    ended = await run(
        ("--sandbox", setting.sandbox, *attached, "--", task.wish),
        folder=project,
        env=environment(root, ONE_STEP, setting.config),
        setting=setting,
    )
    records = records_of(ended)
    calls = calls_of(records)
    figures = counted(records)
    counts = {name: figures[name] for name in ("tokens_in", "tokens_out", "tokens_cached", "cost")}
    came = any(each.get("outcome") in ENDS for each in records)
    return Choice(
        task=task.name,
        model=setting.model,
        variant=variant.name,
        right=came and is_right(task, calls),
        calls=calls,
        seconds=round(monotonic() - started, 2),
        exit_code=ended.code,
        **counts,
    )


def is_right(task: Task, calls: Sequence[Call]) -> bool:
    """Whether these are calls that the task should begin with."""
    if not task.tool:
        return not calls
    for tool, arguments in calls:
        if any(tool == other and _has(arguments, fits) for other, fits in task.fair):
            return True
    fitting = [arguments for tool, arguments in calls if _fits(task, tool, arguments)]
    different = {json.dumps(each, sort_keys=True) for each in fitting}
    return len(different) >= task.times


def _fits(task: Task, tool: str, arguments: Mapping[str, Any]) -> bool:
    if tool in task.also:
        return True
    return tool == task.tool and _has(arguments, task.fits)


def _has(arguments: Mapping[str, Any], fits: Mapping[str, str]) -> bool:
    return all(
        any(search(expression, _text(arguments.get(name, ""))) for name in names.split("|"))
        for names, expression in fits.items()
    )


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) else json.dumps(value)


def scores(made: Iterable[Choice]) -> str:
    """Right first calls for each model and variant, and what was done in place of the others."""
    groups = defaultdict[tuple[str, str], list[Choice]](list)
    for each in made:
        groups[each.model, each.variant].append(each)
    rows = [
        (*whose, f"{sum(each.right for each in group)}/{len(group)}")
        for whose, group in sorted(groups.items())
    ]
    wrong = [
        f"{each.variant}: {each.task}: {', '.join(tool for tool, _ in each.calls) or 'no call'}\n"
        for group in groups.values()
        for each in group
        if not each.right
    ]
    return f"{''.join(wrong)}\n{aligned([('model', 'variant', 'right first calls'), *rows])}"
