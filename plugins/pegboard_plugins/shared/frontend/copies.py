"""Forked, imported and moved sessions."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from pegboard import App, Workspace, __version__
from pegboard.app import IdSource
from pegboard.errors import NotFoundError
from pegboard.schema.message import (
    AssistantMessage,
    TextData,
    Turn,
    UnknownFailure,
)
from pegboard.schema.part import Failed, Part, PatchPart, Pending, Running, TimeSpan, ToolPart
from pegboard.schema.session import Session, Todo
from pegboard.schema.wire import Rest, encode
from pegboard.snapshots import RestoreWay
from pegboard.storage import Change, CreateSession, DropSession, PutMessage, PutPart, PutTodos
from pegboard.unstable import ways_of

_ID = re.compile(rb"\b(?:ses|msg|prt)_[0-9A-Za-z_-]+")
_FORK = re.compile(r"^(?P<title>.*) \(fork #(?P<number>\d+)\)$", re.DOTALL)
_UNFINISHED = "interrupted: the session was copied before this had ended"

_Value = TypeVar("_Value")


class Conversation(Rest, frozen=True):
    """A session with its turns and its todo list."""

    info: Session
    turns: tuple[Turn, ...] = ()
    todos: tuple[Todo, ...] = ()


async def forked(app: App, session_id: str, message_id: str | None = None) -> Session:
    """Create a copy of a session, with all messages or those before `message_id`.

    The copy has the agent, model and rules of the original; its cost starts at zero. It can also
    revert the file changes of the copied messages.

    :raises NotFoundError: when the session, or the message in it, does not exist.
    """
    session, turns = await app.session(session_id), await app.list_turns(session_id, files=True)
    if message_id is None and session.revert is not None:
        message_id = session.revert.message_id  # what is taken back is not taken along
    now = _now()
    kept = [ended(turn, now) for turn in _before(turns, message_id)]
    names = Renaming(IdSource())
    new_id = names.session(session.id)
    names.turns(kept)
    copy = replace(
        _placed(app.workspace, session, new_id),
        title=fork_title(session.title),
        time=replace(session.time, created=now, updated=now, compacting=None, archived=None),
        cost=None,
        tokens=None,
        estimate=None,
        summary=None,
        revert=None,
    )
    copies = [names.apply(turn, Turn) for turn in kept]
    if app.snapshots is not None:  # first: what is deleted of the original stays for the fork
        await app.snapshots.keep_copies(new_id, steps(copies))
    await app.storage.commit(*_stored(copy, copies))
    return copy


async def adopted(app: App, conversations: Sequence[Conversation]) -> Session:
    """Import exported sessions into this project under new ids, and return the first.

    Unfinished tool calls are marked as interrupted. File changes can be reverted only if this
    machine has the snapshots, which are those of its own sessions.
    """
    names, now = Renaming(IdSource()), _now()
    new_ids = {each.info.id: names.session(each.info.id) for each in conversations}
    for each in conversations:
        names.turns(each.turns)
    changes: list[Change] = []
    infos = []
    for each in conversations:
        parent = new_ids.get(each.info.parent_id or "")
        info = replace(
            _placed(app.workspace, each.info, new_ids[each.info.id]),
            parent_id=parent,
            revert=None,
        )
        infos.append(info)
        copies = [names.apply(ended(turn, now), Turn) for turn in each.turns]
        changes += _stored(info, copies)
        if app.snapshots is not None:
            await app.snapshots.keep_copies(info.id, steps(copies))
        if each.todos:
            changes.append(PutTodos(info.id, each.todos))
    await app.storage.commit(*changes)
    return infos[0]


async def moved_here(app: App, session_id: str, place: Workspace | None = None) -> Session:
    """Move a session and its subagents' sessions to the App's project, and return the session.

    With `place`, the sessions move to that folder instead. Ids, messages and todo list stay.
    Approvals for the session alone, and data that tools stored for it, do not move.

    :raises SessionBusyError: while the session runs.
    """
    async with app.hold_session(session_id) as fence:
        changes: list[Change] = [DropSession(session_id)]
        waiting = [await app.session(session_id)]
        moved = _at_home(place or app.workspace, waiting[0])
        while waiting:
            session = waiting.pop(0)
            waiting += await app.children(session.id)
            turns = await app.list_turns(session.id)
            changes += _stored(_at_home(place or app.workspace, session), turns)
            if todos := await app.storage.todos(session.id):
                changes.append(PutTodos(session.id, todos))
        await app.storage.commit(*changes, fence=fence)
        return moved


def _now() -> int:
    """Return the current Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


def _placed(workspace: Workspace, session: Session, session_id: str) -> Session:
    """Return the session's record under a new id, for the workspace's project and folder."""
    return replace(
        _at_home(workspace, session),
        id=session_id,
        slug=session_id[-8:].lower(),
        version=__version__,
    )


def _at_home(workspace: Workspace, session: Session) -> Session:
    """Return the session's record, under the same id, for the workspace's project and folder."""
    return replace(
        session,
        project_id=workspace.project_id,
        directory=str(workspace.directory),
        path=str(workspace.directory.relative_to(workspace.worktree)).removeprefix("."),
    )


def _stored(info: Session, turns: Iterable[Turn]) -> Iterator[Change]:
    yield CreateSession(info)
    for turn in turns:
        yield PutMessage(turn.info)
        yield from map(PutPart, turn.parts)


def _before(turns: Sequence[Turn], message_id: str | None) -> list[Turn]:
    if message_id is None:
        return list(turns)
    places = [place for place, turn in enumerate(turns) if turn.info.id == message_id]
    if not places:
        raise NotFoundError("message", message_id)
    return list(turns[: places[0]])


def fork_title(title: str) -> str:
    """Return `title (fork #1)`; for the title of a fork, the next number."""
    found = _FORK.match(title)
    if found is None:
        return f"{title} (fork #1)"
    return f"{found['title']} (fork #{int(found['number']) + 1})"


class Renaming:
    """A mapping of old ids to new ids, which also replaces old ids in texts such as tool output.

    `ids` makes the new ids in the order of the turns, so that they sort in this order.
    """

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self._names: dict[bytes, bytes] = {}
        self._message: str | None = None
        self._part: str | None = None

    def session(self, old: str) -> str:
        """Assign a new id to a session, and return it."""
        return self._noted(old, self._ids.new("session"))

    def turns(self, turns: Iterable[Turn]) -> None:
        """Assign new ids to the turns and their parts."""
        for turn in turns:
            self._message = self._noted(turn.info.id, self._ids.new("message", after=self._message))
            for part in turn.parts:
                self._part = self._noted(part.id, self._ids.new("part", after=self._part))

    def apply(self, value: _Value, kind: type[_Value]) -> _Value:
        """Return the value with all old ids replaced."""
        return msgspec.json.decode(_ID.sub(self._name, encode(value)), type=kind)

    def _noted(self, old: str, new: str) -> str:
        self._names[old.encode()] = new.encode()
        return new

    def _name(self, match: re.Match[bytes]) -> bytes:
        return self._names.get(match[0], match[0])


def ended(turn: Turn, now: int) -> Turn:
    """Return the turn of a copied session; mark unfinished work in the turn as failed."""
    info = turn.info
    if not isinstance(info, AssistantMessage):
        return turn
    if info.time.completed is None:
        error = info.error or UnknownFailure(data=TextData(message=_UNFINISHED))
        info = replace(info, error=error, time=replace(info.time, completed=now))
    return Turn(info=info, parts=tuple(_ended(part, now) for part in turn.parts))


def _ended(part: Part, now: int) -> Part:
    if not isinstance(part, ToolPart) or not isinstance(part.state, Pending | Running):
        return part
    start = part.state.time.start if isinstance(part.state, Running) else now
    state = Failed(input=part.state.input, error=_UNFINISHED, time=TimeSpan(start=start, end=now))
    return replace(part, state=state)


def steps(turns: Iterable[Turn]) -> dict[str, RestoreWay]:
    """Return the git trees before and after each patch in the turns, by patch id."""
    patches = (part for turn in turns for part in turn.parts if isinstance(part, PatchPart))
    return {name: way for patch in patches for name, way in ways_of(patch).items()}
