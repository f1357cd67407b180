"""`pegboard session cost`: the cost of a conversation, by agent."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from pegboard.cli import open_app, run_async
from pegboard.schema.message import AssistantMessage
from pegboard.schema.session import Tokens
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.foundsession import find_session
from pegboard_plugins.cli.jsontext import format_option, schema_json
from pegboard_plugins.cli.tables import table
from pegboard_plugins.shared.frontend import by_agent
from pegboard_plugins.shared.terminal import cost_text

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.schema.session import Session
    from pegboard_plugins.shared.frontend import AgentCost


@click.command()
@click.argument("session_id", metavar="[ID]", required=False, shell_complete=live("session"))
@format_option("table")
@click.pass_obj
def cost(directory: Path, session_id: str | None, style: Literal["table", "json"]) -> None:
    """Show the cost of a session, by agent and model.

    Prices are in US dollars. The sessions of subagents are included. The cost is "unknown" if the
    model's price is unknown or the provider reports no usage.
    """
    session, answers = run_async(_read_answers(directory, session_id))
    costs = by_agent(session, answers)
    if style == "json":
        _write_json(session, costs)
        return

    rows = [cost_row(each) for each in costs]
    is_whole = all(each.cost is not None for each in costs)
    whole = cost_text(session.cost or 0.0, is_whole=is_whole)
    total = ("total", "", "", "", "", whole)
    headers = ("agent", "model", "requests", "read", "written", "cost")
    click.echo(table(headers, [*rows, total]), nl=False)


def cost_row(each: "AgentCost") -> tuple[str, ...]:
    """Return the cells of a table row for the cost of one agent and model."""
    tokens = each.tokens
    read = tokens.input + tokens.cache.read + tokens.cache.write
    written = tokens.output + tokens.reasoning
    requests = str(each.requests or "")
    cost = cost_text(each.cost or 0.0, is_whole=each.cost is not None)
    return (each.agent, each.model, requests, f"{read:,}", f"{written:,}", cost)


def _write_json(session: "Session", costs: "tuple[AgentCost, ...]") -> None:

    tokens = session.tokens or Tokens()
    cost = None if any(each.cost is None for each in costs) else session.cost or 0.0
    value = {"id": session.id, "cost": cost, "tokens": tokens, "agents": costs}
    click.echo(schema_json(value))


async def _read_answers(
    directory: Path, session_id: str | None
) -> "tuple[Session, list[AssistantMessage]]":

    async with open_app(directory) as app:
        session = await find_session(app, session_id)
        return session, await _answers(app, session.id)


async def _answers(app: "App", session_id: str) -> "list[AssistantMessage]":
    """Return the answers of a session and of its subagents' sessions."""
    found: dict[str, list[AssistantMessage]] = {}
    waiting = [session_id]
    while waiting:
        each = waiting.pop()
        if each not in found:
            turns = await app.list_turns(each)
            found[each] = [t.info for t in turns if isinstance(t.info, AssistantMessage)]
            waiting += [child.id for child in await app.children(each)]
    return [answer for answers in found.values() for answer in answers]
