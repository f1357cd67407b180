"""Sessions: their creation, changes and claims.

The module also contains their views for plugins and their background tasks.
"""

import asyncio
from asyncio import Lock
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from pegboard.contract.context import SessionView
from pegboard.engine.engine import Engine
from pegboard.engine.finish import ABORTED
from pegboard.errors import AbortedError, InvalidInputError, NotFoundError, SessionBusyError
from pegboard.ids import IdSource, check_id
from pegboard.kit.threads import shield
from pegboard.policy.agents import find_agent, rulesets_for
from pegboard.schema.config import Agent
from pegboard.schema.event import SessionUpdated
from pegboard.schema.message import Turn
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.session import NEW_TITLE, Revert, Rule, Ruleset, Session, SessionTime, Tokens
from pegboard.storage import Fence, LastIds, Storage
from pegboard.storage.changes import Change, ChangeSession, CreateSession, DropMessage, DropPart

_VERSION = "0.1.0"
ABORT_LIMIT_S = 10.0
"""How long an abort waits for the turn to tidy up."""


class SessionIds(msgspec.Struct, weakref=True):
    """The source of a session's ids; each new id is greater than all ids in the session.

    `changing` is the lock for reading and then changing the stored session. `withdrawn` are the ids
    of messages that no run may answer.
    """

    source: IdSource
    last_message: str | None = None
    last_part: str | None = None
    changing: Lock = msgspec.field(default_factory=Lock)
    withdrawn: set[str] = msgspec.field(default_factory=set)

    def message(self) -> str:
        """Return an id for a new message."""
        self.last_message = self.source.new("message", after=self.last_message)
        return self.last_message

    def part(self) -> str:
        """Return an id for a new part."""
        self.last_part = self.source.new("part", after=self.last_part)
        return self.last_part

    def note(self, turn: Turn) -> None:
        """Make later ids greater than the ids of a turn that a client, for example, made."""
        last = max((part.id for part in turn.parts), default=None)
        self.catch_up(LastIds(message=turn.info.id, part=last))

    def catch_up(self, last: LastIds) -> None:
        """Make later ids greater than the stored ids, including those of other processes."""
        self.last_message = max(self.last_message or "", last.message or "") or None
        self.last_part = max(self.last_part or "", last.part or "") or None


async def refuse_claimed(storage: Storage, session_id: str) -> None:
    """Raise an error if another process runs the session.

    :raises SessionBusyError: when another process runs the session.
    """
    if await storage.is_claimed_elsewhere(session_id):
        raise SessionBusyError(session_id)


async def new_session(
    engine: Engine,
    id: str | None,  # noqa: A002 - the field's name
    **fields: Any,  # noqa: ANN401 - those of `unstored_session`
) -> Session:
    """Store and return a new session, or return the existing session with this id.

    :raises InvalidInputError: when the id is not a session id, or belongs to another project's
      session.
    """
    session = unstored_session(engine, **fields)
    if id is not None:
        session = replace(session, id=check_id("session", id), slug=_slug(id))
    try:
        await engine.storage.commit(CreateSession(session))
    except InvalidInputError as error:
        try:
            known = await engine.storage.session(session.id)
        except NotFoundError:  # the id is new, and something else is wrong
            raise error from None
        if known.project_id != session.project_id:
            raise InvalidInputError(
                f"session {known.id} is one of {known.directory}; choose another id"
            ) from None
        return known
    return session


def _slug(session_id: str) -> str:
    return session_id[-8:].lower()


def unstored_session(
    engine: Engine,
    *,
    title: str | None = None,
    parent_id: str | None = None,
    agent: str | None = None,
    permission: Sequence[Rule] = (),
) -> Session:
    """Return a new session without storing it; its first prompt sets a missing title."""
    now = engine.now()
    session_id = engine.ids.new("session")
    workspace = engine.workspace
    return Session(
        id=session_id,
        slug=_slug(session_id),
        project_id=workspace.project_id,
        directory=str(workspace.directory),
        path=str(workspace.directory.relative_to(workspace.worktree)).removeprefix("."),
        title=title or NEW_TITLE + _instant(now),
        version=_VERSION,
        time=SessionTime(created=now, updated=now),
        cost=0.0,
        tokens=Tokens(),
        parent_id=parent_id,
        agent=agent,
        permission=tuple(permission),
    )


def _instant(at_ms: int) -> str:
    """Format a time as the protocol's clients expect it in a placeholder title."""
    text = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


async def change_session(storage: Storage, *changes: Change, fence: Fence | None = None) -> Session:
    """Store changes, one of which changes the session's record, and return the session.

    :raises NotFoundError: when the session was deleted.
    """
    events = await storage.commit(*changes, fence=fence)
    updates = (each.properties for each in events)
    return next(each.info for each in updates if isinstance(each, SessionUpdated))


@asynccontextmanager
async def claim_session(storage: Storage, session_id: str) -> AsyncIterator[Fence]:
    """Hold the exclusive right to run a session during the block.

    :raises NotFoundError: when the id is unknown.
    :raises SessionBusyError: while another run holds it.
    """
    fence = await storage.claim(session_id)
    try:
        yield fence
    finally:
        await storage.release(fence)


async def end_lost(engine: Engine, session_id: str, failure: type | None, *_: object) -> None:
    """End a session's background processes if its run failed because another process runs it."""
    if failure is not None and issubclass(failure, SessionBusyError):
        await shield(engine.end_processes(session_id))


async def settled(storage: Storage, session_id: str) -> Session:
    """Delete the messages that a revert has undone, and return the session.

    The caller must hold the lock `SessionIds.changing`.

    :raises NotFoundError: when the id is unknown.
    :raises SessionBusyError: when another task is reverting the session.
    """
    session = await storage.session(session_id)
    if session.revert is None:
        return session
    async with claim_session(storage, session_id) as fence:
        session = await storage.session(session_id)
        if session.revert is None:
            return session
        turns = await storage.turns(session_id)
        drops = _drops(turns, session_id, session.revert)
        change = ChangeSession(session_id=session_id, revert=None)
        return await change_session(storage, *drops, change, fence=fence)


def _drops(turns: Sequence[Turn], session_id: str, point: Revert) -> list[Change]:
    """Return the deletions that complete a revert: all messages and parts from `point` on."""
    changes: list[Change] = []
    behind = False
    for turn in turns:
        if behind or (turn.info.id == point.message_id and point.part_id is None):
            behind = True
            changes.append(DropMessage(session_id, turn.info.id))
        elif turn.info.id == point.message_id:
            for part in turn.parts:
                behind = behind or part.id == point.part_id
                if behind:
                    changes.append(DropPart(session_id, turn.info.id, part.id))
    return changes


MAX_DEPTH = 4
"""Subagents may call subagents this many levels deep."""
_NO_MODEL = Model(id="none", provider_id="none", name="None", api=ModelApi(id="none"))


def make_view(  # noqa: PLR0913 - the fields of a view
    engine: Engine,
    session: Session,
    agent: Agent,
    model: Model,
    *,
    depth: int = 0,
    parents: tuple[Ruleset, ...] = (),
    turns: tuple[Turn, ...] = (),
) -> SessionView:
    """Return the view of a session that plugins receive."""
    return SessionView(
        info=session,
        directory=engine.workspace.directory,
        worktree=engine.workspace.worktree,
        agent=agent,
        agents=tuple(engine.agents.values()),
        model=model,
        config=engine.config,
        rulesets=rulesets_for(
            engine.config,
            agent,
            root=engine.workspace.worktree,
            session=session.permission,
            parent=parents,
        ),
        depth=depth,
        interactive=engine.interactive,
        trust=engine.decision,
        home=engine.home,
        places=engine.places,
        private=engine.private,
        background=engine.background(session.id),
        turns=turns,
    )


async def ancestors_of(storage: Storage, session: Session) -> tuple[Session, ...]:
    """Return the ancestors of a subagent's session, nearest first; they also bear its cost."""
    found: list[Session] = []
    while session.parent_id is not None and len(found) <= MAX_DEPTH:
        session = await storage.session(session.parent_id)
        found.append(session)
    return tuple(found)


def imposed_rulesets(engine: Engine, ancestors: Iterable[Session]) -> tuple[Ruleset, ...]:
    """Return the rules that the ancestors impose on a subagent's session.

    :raises NotFoundError: when an ancestor's agent, and thus its rules, no longer exists.
    """
    found: list[Ruleset] = []
    for each in ancestors:
        agent = find_agent(engine.agents, each.agent or "")
        root = engine.workspace.worktree
        found.extend(rulesets_for(engine.config, agent, root=root, session=each.permission))
    return tuple(found)


def unstored_view(engine: Engine, agent: Agent) -> SessionView:
    """Return the view of a new session that is not stored."""
    return make_view(engine, unstored_session(engine), agent, _NO_MODEL)


_Value = TypeVar("_Value")


class Preparations:
    """The tasks of sessions other than the runs that answer prompts, such as storing a prompt.

    Aborting a session also cancels these tasks.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, set[asyncio.Task[Any]]] = {}
        self._idle: set[asyncio.Task[Any]] = set()
        self._aborted: set[asyncio.Task[Any]] = set()

    def __contains__(self, session_id: str) -> bool:
        return bool(self._tasks.get(session_id, set()) - self._idle)

    def to_abort(self, session_id: str) -> tuple[asyncio.Task[Any], ...]:
        """Return the session's tasks, which the caller cancels; mark ended ones as aborted."""
        tasks = tuple(self._tasks.get(session_id, ()))
        self._aborted.update(task for task in tasks if task.done())
        return tasks

    def all(self) -> tuple[asyncio.Task[Any], ...]:
        """Return the tasks of all sessions."""
        return tuple(task for tasks in self._tasks.values() for task in tasks)

    async def run(
        self, session_id: str, work: Coroutine[Any, Any, _Value], *, idle: bool = False
    ) -> _Value:
        """Await `work` as a task of the session; with `idle` the session still counts as idle.

        :raises AbortedError: when the session was aborted meanwhile.
        """
        task = asyncio.create_task(work, name=f"preparation {session_id}")
        tasks = self._tasks.setdefault(session_id, set())
        tasks.add(task)
        if idle:
            self._idle.add(task)
        try:
            value = await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            raise AbortedError(ABORTED) from None
        else:
            if task in self._aborted:  # after its end, and before this caller continued
                raise AbortedError(ABORTED)
            return value
        finally:
            for each in (tasks, self._idle, self._aborted):
                each.discard(task)
            if not tasks:
                self._tasks.pop(session_id, None)


async def end_tasks(*tasks: asyncio.Task[Any], why: object = None) -> bool:
    """Cancel tasks with the message `why` and wait until they end; return False without tasks."""
    for task in tasks:
        task.cancel(why)
    if tasks:
        await asyncio.wait(tasks, timeout=ABORT_LIMIT_S)
    return bool(tasks)
