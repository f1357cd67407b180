"""`pegboard stats`: the usage of sessions, by model, agent and tool."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from pegboard import AppOptions
from pegboard.cli import open_app, run_async
from pegboard.display import escape_controls
from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import ToolPart
from pegboard.schema.session import Tokens
from pegboard_plugins.cli.costs import cost_row
from pegboard_plugins.cli.jsontext import schema_json
from pegboard_plugins.cli.tables import table
from pegboard_plugins.cli.tally import sum_tokens
from pegboard_plugins.shared.frontend import AgentCost, costs_of
from pegboard_plugins.shared.terminal import cost_text, sum_costs

if TYPE_CHECKING:
    from pegboard.schema.message import Turn

_MS = 1000
_DAY_MS = 24 * 3600 * _MS


class CacheLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The cached tokens that were lost because a plugin changed the beginning of requests.

    `line` is the first changed line.
    """

    plugin: str
    hook: str
    line: str
    times: int
    tokens: int


class UsageCount(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of several sessions; `cost` is in US dollars and leaves out unknown prices."""

    sessions: int
    prompts: int
    answers: int
    cost: float
    unpriced: bool
    tokens: Tokens
    models: tuple[AgentCost, ...]
    tools: dict[str, int]
    cache_losses: tuple[CacheLoss, ...] = ()


@click.command()
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Only the last N days.")
@click.option("--all", "everywhere", is_flag=True, help="Include all projects, not only this one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def stats(directory: Path, *, days: int | None, everywhere: bool, as_json: bool) -> None:
    """Show tokens, costs, models and tools of your sessions."""
    usage = run_async(_usage(directory, days, everywhere=everywhere))
    if as_json:
        click.echo(schema_json(usage))
        return
    if not usage.sessions:
        click.echo("no sessions yet", err=True)
        return

    read = usage.tokens.input + usage.tokens.cache.read + usage.tokens.cache.write
    written = usage.tokens.output + usage.tokens.reasoning
    whole = [
        ("sessions", f"{usage.sessions:,}"),
        ("prompts", f"{usage.prompts:,}"),
        ("answers", f"{usage.answers:,}"),
        ("tokens read", f"{read:,}"),
        ("tokens written", f"{written:,}"),
        ("cost", cost_text(usage.cost, is_whole=not usage.unpriced)),
    ]
    headers = ("agent", "model", "requests", "read", "written", "cost")
    calls = sorted(usage.tools.items(), key=lambda each: (-each[1], each[0]))
    lost = [
        (each.plugin, each.hook, escape_controls(each.line), str(each.times), f"{each.tokens:,}")
        for each in usage.cache_losses
    ]
    tables = (
        table(("what", "number"), whole),
        table(headers, [cost_row(each) for each in usage.models]),
        table(("tool", "calls"), [(name, f"{count:,}") for name, count in calls]),
        table(("cache lost by", "hook", "at the line", "times", "tokens"), lost),
    )
    click.echo("\n".join(filter(None, tables)), nl=False)


async def _usage(directory: Path, days: int | None, *, everywhere: bool) -> UsageCount:

    since = int(time.time() * _MS) - days * _DAY_MS if days else None
    async with open_app(directory, AppOptions(trust=False)) as app:
        project = None if everywhere else app.workspace.project_id
        sessions = await app.storage.sessions(project, since=since)
        turns = [turn for each in sessions for turn in await app.storage.turns(each.id)]
    roots = sum(each.parent_id is None for each in sessions)
    return usage_of([turn for turn in turns if turn.info.time.created >= (since or 0)], roots)


def usage_of(turns: "list[Turn]", sessions: int) -> UsageCount:
    """Count the usage of these turns; `sessions` is their number of sessions."""
    answers = [turn.info for turn in turns if isinstance(turn.info, AssistantMessage)]
    tools = Counter(
        part.tool for turn in turns for part in turn.parts if isinstance(part, ToolPart)
    )
    return UsageCount(
        sessions=sessions,
        prompts=len(turns) - len(answers),
        answers=len(answers),
        cost=sum(each.cost or 0.0 for each in answers),
        unpriced=sum_costs(each.cost for each in answers) is None,
        tokens=sum_tokens(each.tokens for each in answers),
        models=costs_of(answers),
        tools=dict(tools),
        cache_losses=_cache_losses(answers),
    )


def _cache_losses(answers: "list[AssistantMessage]") -> tuple[CacheLoss, ...]:
    """Sum the cache losses by plugin and hook, the largest first."""
    found: dict[tuple[str, str], CacheLoss] = {}
    for loss in ((each.metadata or {}).get("prefixLoss") for each in answers):
        if loss is None:
            continue
        key = loss["plugin"], loss["hook"]
        so_far = found.get(key) or CacheLoss(
            plugin=key[0], hook=key[1], line=loss["line"], times=0, tokens=0
        )
        tokens = so_far.tokens + loss["tokens"]
        found[key] = msgspec.structs.replace(so_far, times=so_far.times + 1, tokens=tokens)
    return tuple(sorted(found.values(), key=lambda each: -each.tokens))
