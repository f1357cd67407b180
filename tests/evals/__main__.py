"""`python -m evals`: plays a model over the cases; `python -m evals choose`: over single choices.

A line of JSON for each run goes to standard output, tables go to standard error.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from evals.choose import Choice, choose, scores
from evals.everyday import TASKS
from evals.play import Figures, Setting, Variant, play
from evals.suite.every import CASES
from evals.table import differences, failures, table

INTERRUPTED = 130
Ran = TypeVar("Ran", Figures, Choice)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what the arguments ask for; 1 when a run had no success."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    choosing = given[:1] == ["choose"]
    options = _parser(choosing=choosing).parse_args(given[1:] if choosing else given)
    try:
        return asyncio.run(_choose(options) if choosing else _play(options))
    except KeyboardInterrupt:
        return INTERRUPTED


async def _play(options: argparse.Namespace) -> int:
    cases = [CASES[name] for name in options.case or CASES]
    jobs = [
        lambda root, case=case, variant=variant: play(case, variant, _setting(options), root)
        for _ in range(options.repeat)
        for case in cases
        for variant in _variants(options)
    ]
    runs = await _all(jobs, options)
    sys.stderr.write(f"\n{failures(runs)}\n{differences(runs)}\n{table(runs)}")
    return int(not all(each.success for each in runs))


async def _choose(options: argparse.Namespace) -> int:
    tasks = [each for each in TASKS if not options.case or each.name in options.case]
    jobs = [
        lambda root, task=task, variant=variant: choose(task, variant, _setting(options), root)
        for _ in range(options.repeat)
        for task in tasks
        for variant in _variants(options)
    ]
    made = await _all(jobs, options)
    sys.stderr.write(f"\n{scores(made)}")
    return int(not all(each.right for each in made))


async def _all(
    jobs: Sequence[Callable[[Path], Coroutine[Any, Any, Ran]]], options: argparse.Namespace
) -> list[Ran]:
    """Run the jobs, so many at a time, and write a line for each that has ended."""
    places = asyncio.Semaphore(options.jobs)
    numbers = count(1)

    async def one(job: Callable[[Path], Coroutine[Any, Any, Ran]]) -> Ran:
        async with places:
            with _folder(options.keep, next(numbers)) as root:
                ran = await job(root)
        sys.stdout.write(json.dumps(asdict(ran)) + "\n")
        sys.stdout.flush()
        return ran

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one(job)) for job in jobs]
    return [each.result() for each in running]


@contextmanager
def _folder(keep: Path | None, number: int) -> Iterator[Path]:
    """An empty folder for a run; it goes with the run unless it is to be kept."""
    if keep is not None:
        root = keep.absolute() / f"{number:04d}"
        root.mkdir(parents=True)
        yield root
        return
    with tempfile.TemporaryDirectory(prefix="evals-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


def _setting(options: argparse.Namespace) -> Setting:
    return Setting(
        model=options.model,
        timeout_s=options.timeout,
        sandbox=options.sandbox,
        config=options.config,
    )


def _variants(options: argparse.Namespace) -> list[Variant]:
    return [Variant() if each is None else Variant.at(each) for each in options.variant or [None]]


def _parser(*, choosing: bool) -> argparse.ArgumentParser:
    names = [task.name for task in TASKS] if choosing else list(CASES)
    parser = argparse.ArgumentParser(
        prog="python -m evals choose" if choosing else "python -m evals", description=__doc__
    )
    add = parser.add_argument
    add("-m", "--model", required=True, metavar="PROVIDER/MODEL")
    add("--case", action="append", choices=names, metavar="NAME", help="only this; repeatable")
    add("--repeat", type=_number, default=1, help="how often each is played")
    add("--jobs", type=_number, default=1, help="how many run at the same time")
    add("--timeout", type=float, default=600, metavar="SECONDS", help="for each run")
    add(
        "--variant",
        action="append",
        type=_variant,
        metavar="PATH",
        help="`plain`, a .toml with configuration, a text for behind the prompt, or a"
        " configuration folder; repeatable",
    )
    add("--config", type=Path, metavar="FILE", help="configuration that all variants share")
    add("--sandbox", choices=["off", "workspace", "strict"], default="workspace")
    add("--keep", type=Path, metavar="FOLDER", help="keep what the runs leave, in a new folder")
    return parser


def _variant(text: str) -> Path | None:
    """The place of a variant; `plain` has none."""
    if text == "plain":
        return None
    if not Path(text).exists():
        raise argparse.ArgumentTypeError(f"there is no {text}")
    return Path(text)


def _number(text: str) -> int:
    if not text.isdecimal() or text == "0":
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
