"""The protocol of a storage, the changes that it writes, and the rows that it reads.

The databases themselves come from plugins.
"""

from asyncio import sleep
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol, Self, TypedDict, Unpack

import msgspec

from pegboard.ids import IdSource
from pegboard.schema.event import Event
from pegboard.schema.message import Turn
from pegboard.schema.session import Approval, Project, Session, Todo
from pegboard.storage.changes import AddText as AddText
from pegboard.storage.changes import Change as Change
from pegboard.storage.changes import ChangeSession as ChangeSession
from pegboard.storage.changes import CreateSession as CreateSession
from pegboard.storage.changes import DropApproval as DropApproval
from pegboard.storage.changes import DropMessage as DropMessage
from pegboard.storage.changes import DropPart as DropPart
from pegboard.storage.changes import DropSession as DropSession
from pegboard.storage.changes import PublishEvent as PublishEvent
from pegboard.storage.changes import PutApproval as PutApproval
from pegboard.storage.changes import PutMessage as PutMessage
from pegboard.storage.changes import PutPart as PutPart
from pegboard.storage.changes import PutPermissionRequest as PutPermissionRequest
from pegboard.storage.changes import PutProject as PutProject
from pegboard.storage.changes import PutState as PutState
from pegboard.storage.changes import PutTodos as PutTodos
from pegboard.storage.changes import SettlePermissionRequest as SettlePermissionRequest
from pegboard.storage.changes import Tell as Tell
from pegboard.storage.changes import apply_change as apply_change
from pegboard.storage.rows import SessionRow as SessionRow
from pegboard.storage.rows import TurnRows as TurnRows
from pegboard.storage.rows import damage_of as damage_of
from pegboard.storage.rows import end_unfinished as end_unfinished
from pegboard.storage.rows import is_unfinished as is_unfinished
from pegboard.storage.rows import join_sessions as join_sessions
from pegboard.storage.rows import read_approval as read_approval
from pegboard.storage.rows import read_json as read_json
from pegboard.storage.rows import read_message as read_message
from pegboard.storage.rows import read_part as read_part
from pegboard.storage.rows import read_properties as read_properties
from pegboard.storage.rows import read_session as read_session
from pegboard.storage.rows import read_todos as read_todos
from pegboard.storage.rows import unfinished_state as unfinished_state

_EXCERPT_LENGTH = 120


class Fence(msgspec.Struct, frozen=True):
    """The exclusive right of one process to run a session; `epoch` counts the owners so far."""

    session_id: str
    owner: str
    epoch: int


class LastIds(msgspec.Struct, frozen=True):
    """The greatest message id and the greatest part id of a session; None if it has none."""

    message: str | None
    part: str | None


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A session that contains the searched string, in a message or else in the session's title."""

    session: Session
    message_id: str | None = None
    excerpt: str = ""

    @classmethod
    def in_message(cls, session: Session, message_id: str, text: str, searched: str) -> Self:
        """Return the search hit in a message's text; the excerpt is the line of the first match."""
        match = max(text.lower().find(searched.lower()), 0)
        start = max(text.rfind("\n", 0, match) + 1, match - _EXCERPT_LENGTH // 2)
        excerpt = text[start:].split("\n", 1)[0][:_EXCERPT_LENGTH].strip()
        return cls(session=session, message_id=message_id, excerpt=excerpt)


class SessionSize(msgspec.Struct, frozen=True):
    """The size of a session in the database, in bytes, without its subagents' sessions."""

    session_id: str
    project_id: str
    title: str
    directory: str
    size_bytes: int


class SessionFilters(TypedDict, total=False):
    """The filters of a list of sessions; an absent filter or None excludes no session.

    `search` is a string that the title contains, ignoring case. `roots` excludes subagents'
    sessions. `since` is the earliest time of the last update, in milliseconds since the epoch.
    """

    limit: int | None
    search: str | None
    roots: bool
    since: int | None
    directory: str | None


OnCommit = Callable[[tuple[Event, ...]], None]
"""A function that is called on the event loop after each commit, in the order of events.

It must not raise and must not block. It also gets commits whose waiting task was cancelled.
"""


class OpenStorage(Protocol):
    """A function that opens a database at a URL; `register_storage` returns one per URL scheme."""

    def __call__(
        self, url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
    ) -> Awaitable["Storage"]:
        """Open a database, and mark the work that dead processes left unfinished as interrupted.

        :raises StorageError: when the database cannot be opened.
        """
        ...


class Storage(Protocol):
    """The storage of sessions.

    Every method raises `StorageError` when the database cannot be read or written. A damaged row is
    returned as a value that names the damage, and does not hide other rows.
    """

    @property
    def ids(self) -> IdSource:
        """The source of all ids of the process."""
        ...

    @property
    def files(self) -> tuple[Path, ...]:
        """The paths of the database's files on this machine, whether or not these exist.

        No tool may change these paths without asking.
        """
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems found while the database was opened, as sentences for the user."""
        ...

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        """Write all changes or none, and return their events in order once they are durable.

        Cancelling the wait does not cancel the writing. The `seq` of each event is its number.

        :raises SessionBusyError: when `fence` no longer owns the session; nothing is written.
        :raises NotFoundError: when the session or the message of a change does not exist.
        :raises InvalidInputError: when the id of a part belongs to another message.
        """
        ...

    async def session(self, session_id: str) -> Session:
        """Return a session.

        :raises NotFoundError: when no session has this id.
        """
        ...

    async def sessions(
        self, project_id: str | None = None, **filters: Unpack[SessionFilters]
    ) -> tuple[Session, ...]:
        """Return the sessions of one project or of all, the last updated first."""
        ...

    async def sessions_json(
        self, project_id: str | None = None, **filters: Unpack[SessionFilters]
    ) -> bytes:
        """Return the result of `sessions` as a JSON array, joined from the rows."""
        ...

    async def search(self, project_id: str, text: str, *, limit: int = 50) -> tuple[SearchHit, ...]:
        """Return at most `limit` sessions of the project with the text in their title or a message.

        Each session is listed once. Matches in titles come first, then the sessions updated last.
        Case is ignored at least for the letters A to Z.
        """
        ...

    async def children(self, session_id: str) -> tuple[Session, ...]:
        """Return the sessions of a session's subagents, in the order of their creation."""
        ...

    async def projects(self) -> tuple[Project, ...]:
        """Return all projects, in the order of their creation."""
        ...

    async def turns(self, session_id: str, *, limit: int | None = None) -> tuple[Turn, ...]:
        """Return the messages with their parts, in the order of their creation, not of their ids.

        `limit` returns only that many of the last messages. Unfinished work of a dead process is
        marked as interrupted first.
        """
        ...

    async def turns_json(
        self, session_id: str, *, limit: int | None = None, before: str | None = None
    ) -> bytes:
        """Return the result of `turns` as a JSON array, joined from the rows.

        `before` is a message id; only earlier messages are returned, or none if the id is unknown.
        """
        ...

    async def turn(self, session_id: str, message_id: str) -> Turn:
        """Return one message with its parts.

        :raises NotFoundError: when the session has no such message.
        """
        ...

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """Return the session's to-do list."""
        ...

    async def state(self, session_id: str, key: str) -> object:
        """Return the JSON value that a tool has stored for the session under the key, or None."""
        ...

    async def approvals(self, *keys: str) -> tuple[Approval, ...]:
        """Return the approvals for these keys (see `PutApproval`), oldest first."""
        ...

    async def session_approvals(self, project_id: str) -> tuple[Approval, ...]:
        """Return the approvals for single sessions of a project, oldest first."""
        ...

    async def events(self, after: int, *, limit: int = 1000) -> tuple[Event, ...]:
        """Return at most `limit` stored events with a greater `seq` than `after`, in order.

        At least the newest 10,000 events, or the events of a day, are stored. The numbers have
        gaps. If several processes write, an event is returned only when no event with a smaller
        number can follow. Thus a reader that continues from the last number misses none.

        If a value, such as a part, is updated several times, only the first and the last update may
        be stored. An update may contain the value as it is now, instead of as it was then. The
        update of a text that the model still writes contains the text stored so far.
        """
        ...

    async def last_ids(self, session_id: str) -> LastIds:
        """Return the greatest message and part ids in the session; new ids must be greater."""
        ...

    async def sizes(self) -> tuple[SessionSize, ...]:
        """Return the sizes of all projects' sessions, the largest first."""
        ...

    async def problems(self) -> tuple[str, ...]:
        """Read the whole database and return the problems found in it, as sentences."""
        ...

    async def vacuum(self) -> int:
        """Rewrite the database without free space, and return the number of bytes saved.

        :raises StorageError: when another process uses the database, or the disk is full.
        """
        ...

    async def claim(self, session_id: str) -> Fence:
        """Take the right to run the session, until `release`.

        If its owner has died, the session is taken over, and unfinished work is marked as
        interrupted first.

        :raises SessionBusyError: while a living process, even this one, has the right; `owner` is
          the owner of that fence.
        :raises NotFoundError: when no session has this id.
        """
        ...

    async def is_claimed_elsewhere(self, session_id: str) -> bool:
        """Return whether another living process has the right to run the session."""
        ...

    async def release(self, fence: Fence) -> None:
        """Release the exclusive right to a session; do nothing if another process has the right.

        Unfinished calls and answers of the session are marked as interrupted. If the database
        cannot be written, no error is raised. The storage then tries again, also before the next
        `claim`.
        """
        ...

    async def aclose(self) -> None:
        """Write the changes not yet written, release all rights and close the database."""
        ...


async def follow(storage: Storage, after: int, *, every_s: float = 0.2) -> AsyncIterator[Event]:
    """Yield the stored events after the number `after` as they arrive, also from other processes.

    The storage is read every `every_s` seconds, and the iteration never ends by itself.

    :raises StorageError: when the database cannot be read, or is closed.
    """
    while True:
        while events := await storage.events(after):
            for event in events:
                yield event
            after = events[-1].seq
        await sleep(every_s)
