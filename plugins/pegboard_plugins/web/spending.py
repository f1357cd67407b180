"""The data of the web page about costs: by session, model, agent, plugin and day."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pegboard import App
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import ToolPart
from pegboard.schema.session import Session, Tokens
from pegboard.schema.wire import Wire
from pegboard_plugins.shared.terminal import sum_costs

READ_SESSIONS = 500
"""The number of newest sessions with their subagents of which messages are read."""
MOST_ROWS = 50
"""The maximum number of rows of one table."""
_DAY_MS = 24 * 3600 * 1000


class Amount(Wire, frozen=True):
    """A cost in US dollars, or None if it is unknown, with the numbers of requests and tokens."""

    name: str
    cost: float | None
    requests: int
    tokens: int
    id: str


class Spending(Wire, frozen=True):
    """The costs of the last days, by session, model, agent, plugin and day.

    Only the newest sessions are read message by message. `unread` counts the other sessions, which
    are only in `sessions` and `by_day`, at the day of their last use. An answer counts for each
    plugin with a tool that it calls.
    """

    days: int
    sessions: tuple[Amount, ...]
    models: tuple[Amount, ...]
    agents: tuple[Amount, ...]
    plugins: tuple[Amount, ...]
    by_day: tuple[Amount, ...]
    unread: int


async def spending(app: App, days: int) -> Spending:
    """Return the costs of the project's sessions in the last `days` days."""
    since = int(time.time() * 1000) - days * _DAY_MS
    found = await app.storage.sessions(app.workspace.project_id, since=since)
    read = found[:READ_SESSIONS]
    turns = [turn for each in read for turn in await app.storage.turns(each.id)]
    turns = [turn for turn in turns if turn.info.time.created >= since]
    answers = [turn.info for turn in turns if isinstance(turn.info, AssistantMessage)]
    roots = [each for each in found if each.parent_id is None]
    unread = [each for each in found[READ_SESSIONS:] if each.parent_id is None]
    owners = {tool: info.name for info in app.plugins.infos for tool in info.tools}
    return Spending(
        days=days,
        sessions=_largest(
            Amount(each.title, each.known_cost, 1, _count(each.tokens), each.id) for each in roots
        ),
        models=_group_costs((f"{each.provider_id}/{each.model_id}", each) for each in answers),
        agents=_group_costs((each.agent, each) for each in answers),
        plugins=_group_costs(_by_plugin(owners, turns)),
        by_day=_by_day(answers, unread),
        unread=len(found) - len(read),
    )


def _count(tokens: Tokens | None) -> int:
    if tokens is None:
        return 0
    cache = tokens.cache.read + tokens.cache.write
    return tokens.input + cache + tokens.output + tokens.reasoning


def _group_costs(answers: Iterable[tuple[str, AssistantMessage]]) -> tuple[Amount, ...]:
    groups: dict[str, list[AssistantMessage]] = {}
    for name, answer in answers:
        groups.setdefault(name, []).append(answer)
    return _largest(_amount(name, group) for name, group in groups.items())


def _amount(name: str, answers: list[AssistantMessage]) -> Amount:
    cost = sum_costs(each.cost for each in answers)
    return Amount(name, cost, len(answers), sum(_count(each.tokens) for each in answers), "")


def _largest(amounts: Iterable[Amount]) -> tuple[Amount, ...]:
    ordered = sorted(amounts, key=lambda each: (-(each.cost or 0.0), -each.tokens, each.name))
    return tuple(ordered[:MOST_ROWS])


def _by_plugin(
    owners: Mapping[str, str], turns: Iterable[Turn]
) -> Iterable[tuple[str, AssistantMessage]]:
    for turn in turns:
        if isinstance(turn.info, AssistantMessage):
            tools = {part.tool for part in turn.parts if isinstance(part, ToolPart)}
            for plugin in sorted({owners.get(tool, "(unknown)") for tool in tools}):
                yield plugin, turn.info


def _by_day(answers: Iterable[AssistantMessage], unread: Iterable[Session]) -> tuple[Amount, ...]:
    days: dict[str, list[AssistantMessage | Session]] = {}
    for answer in answers:
        days.setdefault(_day(answer.time.created), []).append(answer)
    for session in unread:
        days.setdefault(_day(session.time.updated), []).append(session)
    return tuple(_day_amount(day, group) for day, group in sorted(days.items()))


def _day_amount(day: str, group: Sequence[AssistantMessage | Session]) -> Amount:
    costs = (each.known_cost if isinstance(each, Session) else each.cost for each in group)
    requests = sum(isinstance(each, AssistantMessage) for each in group)
    return Amount(day, sum_costs(costs), requests, sum(_count(each.tokens) for each in group), "")


def _day(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().date().isoformat()
