"""Revert: back to a point of a session, forth again, and its end with the next prompt.

Only files that the session has changed are touched, and only those that are still as it has
left them: what somebody has edited since, what no snapshot has, and what cannot be looked up any
more is left and named, in the answer and by an event.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from pegboard.contract.backends import Restored, Snapshots
from pegboard.contract.changes import ChangeSession, Emit
from pegboard.contract.storage import Fence, Storage
from pegboard.engine.engine import Engine
from pegboard.engine.session.sessions import change_session, held
from pegboard.engine.tracking.leavings import left_by, said_of, unseen
from pegboard.engine.tracking.patches import (
    between,
    bounded,
    split,
    staged_between,
    summary_of,
    total,
)
from pegboard.errors import NotFoundError
from pegboard.schema.event import SessionDiffed, SessionWarned
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.part import TextPart, ToolPart
from pegboard.schema.session import FileDiff, Revert, Session


class Reverted(msgspec.Struct, frozen=True, kw_only=True):
    """The session after going back or forth, and what became of its files.

    `warning` says what was left, and why, for people; it is "" when nothing was.
    """

    session: Session
    files: Restored
    warning: str = ""


async def revert(
    engine: Engine, session_id: str, message_id: str, part_id: str | None = None
) -> Reverted:
    """The session and its files as they were before a message, or before a part of one.

    The messages stay until the next prompt. A second call moves the point, either way.

    :raises NotFoundError: when the session has no such message or part; nothing is changed.
    :raises SessionBusyError: while the session runs.
    """
    async with held(engine.storage, session_id) as fence:
        session = await engine.storage.session(session_id)
        turns = await engine.storage.turns(session_id)
        point = _point(turns, message_id, part_id)
        return await _moved(engine, session, turns, point, fence)


async def unrevert(engine: Engine, session_id: str) -> Reverted:
    """The session and its files as they were before they were reverted.

    :raises SessionBusyError: while the session runs.
    """
    async with held(engine.storage, session_id) as fence:
        session = await engine.storage.session(session_id)
        if session.revert is None:
            return Reverted(session=session, files=Restored())
        turns = await engine.storage.turns(session_id)
        return await _moved(engine, session, turns, None, fence)


async def session_diff(
    storage: Storage, snapshots: Snapshots | None, session_id: str, message_id: str | None = None
) -> tuple[FileDiff, ...]:
    """What the session has changed in files, up to where it is reverted.

    With a user's message, what its answer has changed.

    :raises NotFoundError: when the session, or the message in it, is not there.
    """
    session = await storage.session(session_id)
    turns: Sequence[Turn] = await storage.turns(session_id)
    if snapshots is None:
        return ()
    if message_id is not None:
        turns = _exchange(turns, message_id)
    before, _ = split(turns, session.revert)
    return await snapshots.diff(total(before))


async def _moved(
    engine: Engine, session: Session, turns: Sequence[Turn], point: Revert | None, fence: Fence
) -> Reverted:
    files = Restored()
    diffs: tuple[FileDiff, ...] = ()
    snapshots = engine.snapshots
    unknown = unseen(engine, turns, here=session.revert, there=point)
    unkept = left_by(turns, here=session.revert, there=point)
    if snapshots is not None:
        tree = await snapshots.track(fresh=True)
        files = await snapshots.restore(between(turns, here=session.revert, there=point))
        ways = staged_between(turns, here=session.revert, there=point)
        files = replace(files, left=(*files.left, *await snapshots.restage(ways)))
        before, behind = split(turns, point)
        diffs = bounded(await snapshots.diff(total(before)))
        undone = bounded(await snapshots.diff(total(behind)))
        if point is not None:
            kept = tree if session.revert is None else session.revert.snapshot
            point = replace(point, snapshot=kept, diff="".join(diff.patch for diff in undone))
    files = replace(files, left=(*files.left, *unkept), unknown=unknown)
    change = ChangeSession(
        session_id=session.id, revert=point, summary=summary_of(diffs), updated=engine.now()
    )
    diffed = Emit(SessionDiffed(session_id=session.id, diff=diffs))
    text = said_of(files, engine.workspace.worktree)
    warned = [Emit(SessionWarned(session_id=session.id, message=text))] if text else []
    session = await change_session(engine.storage, change, diffed, *warned, fence=fence)
    return Reverted(session=session, files=files, warning=text)


def _point(turns: Sequence[Turn], message_id: str, part_id: str | None) -> Revert:
    """Where to go back to: what the user sees of a message before the part is kept, if any."""
    prompt: str | None = None
    for turn in turns:
        if isinstance(turn.info, UserMessage):
            prompt = turn.info.id
        if turn.info.id != message_id:
            continue
        if part_id is None:
            return Revert(message_id=prompt or message_id)
        seen = False
        for part in turn.parts:
            if part.id == part_id:
                whole = Revert(message_id=prompt or message_id)
                return Revert(message_id=message_id, part_id=part_id) if seen else whole
            seen = seen or isinstance(part, TextPart | ToolPart)
        raise NotFoundError("part", part_id)
    raise NotFoundError("message", message_id)


def _exchange(turns: Sequence[Turn], message_id: str) -> tuple[Turn, ...]:
    """A message with the answers to it."""
    found = tuple(
        turn
        for turn in turns
        if message_id in (turn.info.id, getattr(turn.info, "parent_id", None))
    )
    if not any(turn.info.id == message_id for turn in found):
        raise NotFoundError("message", message_id)
    return found
