"""Claims of sessions by processes, and recovery of the sessions of dead ones."""

from collections.abc import Callable, Sequence

import apsw
import msgspec

from pegboard.contract.changes import Change, Emit, PutMessage, PutPart, SettlePermissionRequest
from pegboard.contract.storage import Fence
from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.schema.event import Event, SessionIdle, SessionStatusChanged
from pegboard.schema.message import AssistantMessage, TextData, UnknownFailure
from pegboard.schema.part import Failed, Pending, Running, TimeSpan, ToolPart
from pegboard.schema.session import Idle
from pegboard.storage import pieces, reads, records
from pegboard.storage.log import now_ms
from pegboard.storage.writes import apply

INTERRUPTED_CALL = (
    "interrupted: the program ended while this call was running. What it had done by then is "
    "done; look before you do it again."
)
NEVER_RAN = "interrupted: the program ended before this call ran"
INTERRUPTED_ANSWER = "interrupted: the program ended during this answer"

_ABANDONED = """
SELECT id, owner FROM session WHERE owner IS NOT NULL
UNION SELECT id, owner FROM session WHERE owner IS NULL AND id IN (
    SELECT session_id FROM part WHERE state IS NOT NULL
    UNION SELECT session_id FROM message WHERE unfinished
)
"""


def recover(db: apsw.Connection, is_alive: Callable[[str], bool]) -> tuple[Event, ...]:
    """Marks calls, answers and requests that no living process runs as interrupted."""
    if not _abandoned(db, is_alive):
        return ()
    db.execute("BEGIN IMMEDIATE")
    try:
        # Looked for again, since another process may have come first.
        sessions = _abandoned(db, is_alive)
        events = tuple(event for session in sessions for event in interrupt(db, session))
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
    return events


def interrupt(db: apsw.Connection, session_id: str) -> tuple[Event, ...]:
    """Ends everything unfinished in a session, and takes it from its owner."""
    changes = (
        *_ended_parts(db, session_id),
        *_ended_answers(db, session_id),
        *_ended_requests(db, session_id),
        Emit(SessionStatusChanged(session_id=session_id, status=Idle())),
        Emit(SessionIdle(session_id=session_id)),
    )
    events = apply(db, changes)
    # A damaged row has no state to end.
    db.execute("UPDATE part SET state = NULL WHERE session_id = ?", (session_id,))
    db.execute("UPDATE message SET unfinished = 0 WHERE session_id = ?", (session_id,))
    db.execute("UPDATE session SET owner = NULL WHERE id = ?", (session_id,))
    return events


def claim(
    db: apsw.Connection, session_id: str, owner: str, is_alive: Callable[[str], bool]
) -> tuple[Fence, tuple[Event, ...]]:
    """The session's fence for `owner`, and the events of a take-over.

    :raises SessionBusyError: while a living owner has it.
    :raises NotFoundError: when nothing has this id.
    """
    row = db.execute("SELECT owner, epoch FROM session WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise NotFoundError("session", session_id)
    holder, epoch = row
    if holder is not None and is_alive(holder):
        raise SessionBusyError(session_id)
    events = interrupt(db, session_id) if holder is not None else ()
    fence = Fence(session_id=session_id, owner=owner, epoch=epoch + 1)
    db.execute(
        "UPDATE session SET owner = ?, epoch = ? WHERE id = ?", (owner, fence.epoch, session_id)
    )
    return fence, events


def bury(
    db: apsw.Connection, session_id: str, is_alive: Callable[[str], bool]
) -> tuple[None, tuple[Event, ...]]:
    """Marks a session as interrupted if the process that ran it has died."""
    holder = reads.owner(db, session_id)
    events = interrupt(db, session_id) if holder is not None and not is_alive(holder) else ()
    return None, events


def release(db: apsw.Connection, fence: Fence) -> tuple[None, tuple[Event, ...]]:
    """Gives a session back; nothing happens when somebody else has it."""
    db.execute(
        "UPDATE session SET owner = NULL WHERE id = ? AND owner = ? AND epoch = ?",
        (fence.session_id, fence.owner, fence.epoch),
    )
    return None, ()


def give_back(db: apsw.Connection, claimed: Sequence[Fence]) -> tuple[None, tuple[Event, ...]]:
    """Gives a claimed session back whose claim was cancelled."""
    for fence in claimed:
        release(db, fence)
    return None, ()


def release_all(db: apsw.Connection, owner: str) -> tuple[None, tuple[Event, ...]]:
    """Gives all sessions of an owner back."""
    db.execute("UPDATE session SET owner = NULL WHERE owner = ?", (owner,))
    return None, ()


def _abandoned(db: apsw.Connection, is_alive: Callable[[str], bool]) -> list[str]:
    rows = list(db.execute(_ABANDONED))
    return [session for session, owner in rows if owner is None or not is_alive(owner)]


def _ended_parts(db: apsw.Connection, session_id: str) -> list[Change]:
    rows = db.execute(
        "SELECT message_id, id, data, ordinal, state, streamed FROM part "
        "WHERE session_id = ? AND state IS NOT NULL ORDER BY ordinal",
        (session_id,),
    )
    found = [
        records.to_part(pieces.whole(db, *row), session_id, message_id, part_id)
        for message_id, part_id, *row in rows
    ]
    ended = (_interrupted(part) if isinstance(part, ToolPart) else part for part in found)
    return [PutPart(part) for part in ended]


def _interrupted(part: ToolPart) -> ToolPart:
    """The call as failed, with its input and the progress that it had made."""
    end = now_ms()
    match part.state:
        case Running(input=arguments, time=TimeSpan(start=start), metadata=metadata):
            error = INTERRUPTED_CALL
        case Pending(input=arguments):
            start, metadata, error = end, None, NEVER_RAN
        case _:
            return part
    state = Failed(
        input=arguments,
        error=error,
        time=TimeSpan(start=start, end=end),
        metadata=metadata,
    )
    return msgspec.structs.replace(part, state=state)


def _ended_answers(db: apsw.Connection, session_id: str) -> list[Change]:
    rows = db.execute(
        "SELECT data, id, role FROM message WHERE session_id = ? AND unfinished ORDER BY ordinal",
        (session_id,),
    )
    messages = [records.to_message(data, session_id, *columns) for data, *columns in rows]
    return [
        PutMessage(
            msgspec.structs.replace(
                message,
                error=message.error or UnknownFailure(data=TextData(message=INTERRUPTED_ANSWER)),
                time=msgspec.structs.replace(message.time, completed=now_ms()),
            )
        )
        for message in messages
        if isinstance(message, AssistantMessage) and records.is_unfinished(message)
    ]


def _ended_requests(db: apsw.Connection, session_id: str) -> list[Change]:
    rows = db.execute("SELECT id FROM permission_request WHERE session_id = ?", (session_id,))
    return [SettlePermissionRequest(session_id, id_, "reject") for (id_,) in rows]
