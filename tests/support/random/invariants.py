"""What holds for a database and its Apps when everything has come to rest, whatever happened.

Each rule gives sentences about what breaks it; there are none when it holds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pegboard import App
from pegboard.schema.event import (
    Event,
    MessageUpdated,
    Properties,
    SessionDeleted,
    SessionStatusChanged,
)
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import Completed, Failed, Part, TextPart, ToolPart
from pegboard.schema.session import Approval, Idle, PermissionRequest, Session, Todo
from pegboard.unstable import LocalLedger
from pegboard_plugins.shared.frontend import approvals_of
from support.models.played import as_told
from support.random.random_model import PRICE, named, said
from support.random.random_operations import Deed, Ledger
from support.random.random_world import World
from support.sessions.session_child import unpaired
from support.storage import stored
from support.wire.replaying import Replayed, replayed

EVENTS = 10_000
"""The database keeps so many."""
STORED = {"ok", "AbortedError"}
"""A prompt that ended so was stored before."""
BUSY = "held up everything"
"""What a plugin is blamed for when the machine is busy."""
EXPECTED = {"", "ok", "AbortedError", "SessionBusyError", "NotFoundError"}


@dataclass(frozen=True, slots=True)
class State:
    """Everything in a database, as its readers see it."""

    sessions: Mapping[str, Session]
    turns: Mapping[str, tuple[Turn, ...]]
    todos: Mapping[str, tuple[Todo, ...]]
    events: tuple[Event, ...]
    approvals: tuple[Approval, ...]
    requests: tuple[PermissionRequest, ...]

    def messages(self) -> Iterator[Turn]:
        """The messages of all sessions."""
        return (turn for turns in self.turns.values() for turn in turns)

    def parts(self) -> Iterator[Part]:
        """The parts of all messages."""
        return (part for turn in self.messages() for part in turn.parts)


async def read_state(app: App) -> State:
    """The state of an App's database."""
    storage = app.storage
    sessions = {each.id: each for each in await storage.sessions(None)}
    return State(
        sessions=sessions,
        turns={each: await storage.turns(each) for each in sessions},
        todos={each: await storage.todos(each) for each in sessions},
        events=await storage.events(0, limit=2 * EVENTS),
        approvals=await approvals_of(app),
        requests=await stored.permission_requests(storage),
    )


def broken(world: World, state: State) -> list[str]:
    """All that breaks a rule."""
    rules = (
        ("order", order(world, state)),
        ("ended", ended(state)),
        ("families", families(state)),
        ("at rest", at_rest(world, state)),
        ("errors", errors(world)),
        ("titles", titles(world.ledger, state)),
        ("archive", archived(world.ledger, state)),
        ("prompts", prompts(world.ledger, state)),
        ("deleted", deleted(world.ledger, state)),
        ("approvals", approvals(world.ledger, state)),
        ("costs", costs(world, state)),
        ("requests", requests(world, state)),
        ("events", events(state)),
        ("told", told(world, state)),
    )
    return [f"{name}: {each}" for name, found in rules for each in found]


def order(world: World, state: State) -> Iterator[str]:
    """Ids ascend in the order of the database.

    Of messages that only holds where one App makes them: two make ids at the same time.
    """
    for session_id, turns in state.turns.items():
        places = {turn.info.id: place for place, turn in enumerate(turns)}
        for before, after in pairwise(turns if len(world.mode.actors) == 1 else ()):
            if before.info.id >= after.info.id:
                yield f"{session_id}: message {after.info.id} comes behind {before.info.id}"
        for place, turn in enumerate(turns):
            asked = getattr(turn.info, "parent_id", turn.info.id)
            if places.get(asked, -1) > place:
                yield f"{session_id}: answer {turn.info.id} comes before its prompt"
            for first, second in pairwise(turn.parts):
                if first.id >= second.id:
                    yield f"{session_id}: part {second.id} comes behind {first.id}"


def ended(state: State) -> Iterator[str]:
    """Every answer and every call has an end."""
    for turn in state.messages():
        if isinstance(turn.info, AssistantMessage) and turn.info.time.completed is None:
            yield f"answer {turn.info.id} to {turn.info.parent_id} is unfinished"
        for part in turn.parts:
            if isinstance(part, ToolPart) and not isinstance(part.state, Completed | Failed):
                yield f"call {part.call_id} is {type(part.state).__name__}"
    for request in state.requests:
        yield f"{request.id} waits in the database"


def families(state: State) -> Iterator[str]:
    """Every subagent's session has its parent, every answer its prompt."""
    for session in state.sessions.values():
        if session.parent_id is not None and session.parent_id not in state.sessions:
            yield f"{session.id} is left of {session.parent_id}"
    for turns in state.turns.values():
        users = {turn.info.id for turn in turns if isinstance(turn.info, UserMessage)}
        for turn in turns:
            if isinstance(turn.info, AssistantMessage) and turn.info.parent_id not in users:
                yield f"answer {turn.info.id} is left of prompt {turn.info.parent_id}"


def at_rest(world: World, state: State) -> Iterator[str]:
    """Nobody works, nothing waits, no plugin has failed."""
    yield from world.stuck
    for app in world.apps:
        runs = app._runs
        for session_id in state.sessions:
            if not isinstance(app.session_status(session_id), Idle):
                yield f"{session_id} is {app.session_status(session_id)}"
        kept = (runs._tasks, runs._runs, runs._heard, runs._stopping, runs.callers)
        yield from (f"the App keeps {each}" for each in kept if each)
        yield from (f"{request.id} waits" for request in app.permissions.pending())
        for failure in app.failures:
            if BUSY not in failure.message:
                yield f"{failure.plugin} failed: {failure}"
        ledger = app._engine.files
        if isinstance(ledger, LocalLedger) and ledger._gates:
            yield f"files are locked: {ledger._gates}"


def errors(world: World) -> Iterator[str]:
    """Operations fail for reasons that their callers are told of."""
    closed = {"second"} if world.closed else set()
    for deed in world.ledger.deeds.values():
        if deed.outcome not in EXPECTED and deed.operation.actor not in closed:
            yield f"{deed.operation} ended with {deed.outcome}: {deed.value}"


def titles(ledger: Ledger, state: State) -> Iterator[str]:
    """A session has the title that it was given last."""
    for session, deeds in _of_kinds(ledger, state, "rename"):
        lasting = {each.operation.words for each in _not_replaced(deeds)}
        if any(each.outcome == "ok" for each in deeds) and session.title not in lasting:
            yield f"{session.id} is titled {session.title!r}, not one of {sorted(lasting)}"


def archived(ledger: Ledger, state: State) -> Iterator[str]:
    """A session is where it was put last."""
    for session, deeds in _of_kinds(ledger, state, "archive", "unarchive"):
        lasting = {each.operation.kind == "archive" for each in _not_replaced(deeds)}
        is_away = session.time.archived is not None
        if any(each.outcome == "ok" for each in deeds) and is_away not in lasting:
            yield f"{session.id} is archived: {is_away}"


def prompts(ledger: Ledger, state: State) -> Iterator[str]:
    """What was prompted, run or summarised is there, unless a revert has taken it back."""
    for session, deeds in _of_kinds(ledger, state, "prompt", "note", "shell", "summarize"):
        turns = state.turns[session.id]
        ids = {turn.info.id for turn in turns}
        names = {name for turn in turns for name in _named(turn)}
        points = [each.at for each in _deeds(ledger, session.id, "revert") if each.at]
        reverted = _behind(state, points)
        for deed in deeds:
            known = deed.operation.words.partition(" ")[0]
            if deed.outcome == "ok" and deed.value not in ids | reverted:
                yield f"{deed.operation}: its answer {deed.value} is gone"
            asked = deed.operation.kind in ("prompt", "note")
            if deed.outcome in STORED and asked and known not in names and not points:
                yield f"{deed.operation}: it is gone, it ended with {deed.outcome}"


def _behind(state: State, points: Sequence[str]) -> set[str]:
    """The messages from these on that ever were, as they were stored: two Apps' ids mix."""
    infos = (event.properties for event in state.events)
    stored = {each.info.id: each.session_id for each in infos if isinstance(each, MessageUpdated)}
    order = list(stored)  # of the first event of each
    found = set[str]()
    for point in points:
        later = order[order.index(point) :] if point in stored else []
        found |= {each for each in later if stored[each] == stored[point]}
    return found


def deleted(ledger: Ledger, state: State) -> Iterator[str]:
    """Of a deleted session there is nothing but the event that says so."""
    gone = {
        each.session_id
        for each in ledger.deeds.values()
        if each.operation.kind == "delete" and each.outcome == "ok"
    }
    yield from (f"{each} is there again" for each in gone & set(state.sessions))
    dropped = {each.session_id for each in state.events if _drops(each.properties)}
    yield from (f"nobody was told that {each} is gone" for each in gone - dropped)
    away = (gone | dropped) - set(state.sessions)
    for event in state.events:
        if event.session_id in away and not _drops(event.properties):
            yield f"{event.type} of {event.session_id} is left"
    yield from (
        f"an approval of {each.key} is left" for each in state.approvals if each.key in away
    )


def approvals(ledger: Ledger, state: State) -> Iterator[str]:
    """What was approved for good is approved."""
    known = {each.rule.pattern for each in state.approvals}
    for deed in ledger.deeds.values():
        if deed.operation.kind == "approve" and deed.outcome == "ok" and deed.at:
            session_id, pattern = deed.at.split(" ")
            session_only = deed.operation.words == "session"
            if pattern not in known and (session_id in state.sessions or not session_only):
                yield f"{deed.operation}: {deed.at} is not approved"


def costs(world: World, state: State) -> Iterator[str]:
    """A session has cost what its provider was paid, its subagents included."""
    paid = _Paid(world, state)
    for session in state.sessions.values():
        least, most = paid.least(session.id), paid.most(session.id)
        tokens = session.tokens
        used = tokens.input + tokens.output if tokens is not None else 0
        if not least <= used <= most:
            yield f"{session.id} has {used} tokens, paid were {least} to {most}"
        if round((session.cost or 0.0) * 1e6 / PRICE) != used:
            yield f"{session.id} has {used} tokens for {session.cost} dollars"
        if used < (own := _counted(session, state.turns[session.id])):
            yield f"{session.id} has {used} tokens, its answers have {own}"


class _Paid:
    """What sessions were paid for, as far as it is known."""

    def __init__(self, world: World, state: State) -> None:
        self._world = world
        self._state = state
        self._payments = world.ledger.payments

    def least(self, session_id: str) -> int:
        """What a session must have; of a process that was killed nothing is known."""
        if self._world.mode.kill:
            return 0
        return self._own(session_id, due=True) + sum(map(self.least, self._children(session_id)))

    def most(self, session_id: str) -> int:
        """What it can have; who knows whose the sessions were that are gone."""
        gone = {each.session_id for each in self._payments} - set(self._state.sessions)
        return self._family(session_id) + sum(self._own(each, due=False) for each in gone)

    def _family(self, session_id: str) -> int:
        below = sum(self._family(each) for each in self._children(session_id))
        return self._own(session_id, due=False) + below

    def _own(self, session_id: str, *, due: bool) -> int:
        found = (each for each in self._payments if each.session_id == session_id)
        return sum(each.tokens for each in found if each.due == due)

    def _children(self, session_id: str) -> list[str]:
        sessions = self._state.sessions.values()
        return [each.id for each in sessions if each.parent_id == session_id]


def requests(world: World, state: State) -> Iterator[str]:
    """The model hears all in the order of the database, each call with its result."""
    stored = {
        session_id: [name for turn in turns for name in _named(turn)]
        for session_id, turns in state.turns.items()
    }
    summed = {each.session_id for each in _deeds(world.ledger, None, "summarize")}
    for provider in world.providers:
        for request in provider.requests:
            yield from (
                f"{request.session_id}: {each} is unpaired" for each in unpaired(request.messages)
            )
            if request.session_id in stored and request.session_id not in summed:
                heard = [name for name in said(request) if name in stored[request.session_id]]
                places = [stored[request.session_id].index(name) for name in heard]
                if places != sorted(places):
                    yield f"{request.session_id}: the model heard {heard}, in another order"


def events(state: State) -> Iterator[str]:
    """The stored events tell what the rows say, in their order."""
    yield from _differences("stored events", replayed(state.events), state)


def told(world: World, state: State) -> Iterator[str]:
    """Who listened knows what the rows say, and that all is at rest; where one App did all."""
    statuses = {
        event.properties.session_id: event.properties.status
        for event in world.heard
        if isinstance(event.properties, SessionStatusChanged)
    }
    for session_id, status in statuses.items():
        if not isinstance(status, Idle):
            yield f"{session_id} was last told to be {status}"
    if len(world.mode.actors) == 1:
        known = replayed(world.heard)
        early = {each for each in state.sessions if each not in known.sessions}
        yield from _differences("events", known, state, leave=early)


def _differences(
    kind: str, known: Replayed, state: State, *, leave: Iterable[str] = ()
) -> Iterator[str]:
    left = set(leave)
    sessions = {key: each for key, each in state.sessions.items() if key not in left}
    turns = [turn for key, each in state.turns.items() if key not in left for turn in each]
    ids = {turn.info.id for turn in turns}
    messages = {key: each for key, each in known.messages.items() if each.session_id in sessions}
    parts = {key: each for key, each in known.parts.items() if each.message_id in ids}
    pairs: tuple[tuple[str, dict[str, object], dict[str, object]], ...] = (
        ("session", dict(known.sessions), dict(sessions)),
        ("message", dict(messages), {turn.info.id: turn.info for turn in turns}),
        ("part", dict(parts), {part.id: as_told(part) for turn in turns for part in turn.parts}),
    )
    for what, told_, rows in pairs:
        for key in told_.keys() | rows.keys():
            if told_.get(key) != rows.get(key):
                yield f"{kind} tell of {what} {key} {told_.get(key)}, its row is {rows.get(key)}"
    for session_id in sessions:
        of_it = [key for key, each in messages.items() if each.session_id == session_id]
        if of_it != [turn.info.id for turn in turns if turn.info.session_id == session_id]:
            yield f"{kind} tell the messages of {session_id} in another order"


def _deeds(ledger: Ledger, session_id: str | None, *kinds: str) -> list[Deed]:
    """The deeds of these kinds, of one session or of all, as they began."""
    return sorted(
        (
            each
            for each in ledger.deeds.values()
            if each.operation.kind in kinds and session_id in (None, each.session_id)
        ),
        key=lambda deed: deed.began,
    )


def _of_kinds(ledger: Ledger, state: State, *kinds: str) -> Iterator[tuple[Session, list[Deed]]]:
    """The sessions that are there, with what was done to them."""
    touched = {each.session_id for each in ledger.deeds.values()}
    for session_id in touched & set(state.sessions):
        yield state.sessions[session_id], _deeds(ledger, session_id, *kinds)


def _not_replaced(deeds: Sequence[Deed]) -> list[Deed]:
    """Those that may have been the last: none that is acknowledged began after their end."""
    acknowledged = [each for each in deeds if each.outcome == "ok"]
    return [
        each
        for each in deeds
        if each.outcome in ("", "ok")
        and not any(each.outcome and later.began > (each.ended or 0) for later in acknowledged)
    ]


def _named(turn: Turn) -> list[str]:
    """The names of the prompts in a user's message."""
    if not isinstance(turn.info, UserMessage):
        return []
    texts = [part.text for part in turn.parts if isinstance(part, TextPart)]
    return [name for text in texts for name in named(text)]


def _drops(properties: Properties) -> bool:
    return isinstance(properties, SessionDeleted)


def _counted(session: Session, turns: Sequence[Turn]) -> int:
    """The tokens that answers say to have cost, without those that a fork began with."""
    answers = [turn.info for turn in turns if isinstance(turn.info, AssistantMessage)]
    made = [each for each in answers if each.time.created >= session.time.created]
    return sum(each.tokens.input + each.tokens.output for each in made)
