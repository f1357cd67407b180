"""The storage in a SQLite file, through apsw, because the system's SQLite is often too old.

Before 3.51.3, two processes that write a database in WAL mode could lose a commit.
"""

import asyncio
import shutil
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar, Unpack

import apsw

from pegboard.app import IdSource
from pegboard.errors import StorageError
from pegboard.schema.event import Event
from pegboard.schema.message import Turn
from pegboard.schema.session import Approval, Project, Session, Todo
from pegboard.storage import (
    Change,
    Fence,
    LastIds,
    OnCommit,
    SearchHit,
    SessionFilters,
    SessionSize,
)
from pegboard_plugins.sqlite import owners, reads, writes
from pegboard_plugins.sqlite.databasefile import (
    LockWait,
    OpenDatabase,
    connect_reader,
    files_of,
    note_damage,
    open_database,
    reason_of,
)
from pegboard_plugins.sqlite.writerthread import WriterThread

# Two threads keep a long list from delaying a short read.
_READERS = 2
RELEASE_AGAIN_S = 1.0
"""How long a release that could not be written waits for its next try."""

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


class SqliteStorage:
    """The `Storage` in one SQLite file, for one event loop; several processes may use the file."""

    def __init__(
        self, path: Path, opened: OpenDatabase, *, ids: IdSource, writer: WriterThread
    ) -> None:
        self.ids = ids
        self.warnings = opened.warnings
        self.path = path
        self._copy = opened.copy
        self._owners = opened.owners
        self._writer = writer
        self._threads = ThreadPoolExecutor(_READERS, "pegboard-read")
        self._idle_readers: deque[apsw.Connection] = deque()
        self._unreleased: dict[str, Fence] = {}
        self._releasing: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def files(self) -> tuple[Path, ...]:
        """See `Storage.files`."""
        return files_of(self.path)

    @classmethod
    async def open(cls, path: Path, *, ids: IdSource, on_commit: OnCommit | None = None) -> Self:
        """Open the database at this path; see `OpenStorage`.

        If the database is read-only, a copy is opened, and every write is refused.

        :raises StorageError: when it cannot be opened.
        """
        wait = LockWait.of(path)
        try:
            opened = await asyncio.to_thread(_open, path, wait)
        except asyncio.CancelledError:
            wait.give_up()  # its thread would keep the program from ending
            raise
        loop = asyncio.get_running_loop()
        writer = WriterThread(opened.db, path, wait, loop=loop, on_commit=on_commit)
        writer.refused = opened.refused
        if on_commit is not None and opened.recovered:
            on_commit(opened.recovered)
        return cls(path, opened, ids=ids, writer=writer)

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        """See `Storage.commit`."""
        return await self._writer.run(partial(_commit, changes=changes, fence=fence))

    async def claim(self, session_id: str) -> Fence:
        """See `Storage.claim`; a cancelled call releases the session."""
        own, is_alive = self._owners.own, self._owners.is_alive
        claimed: list[Fence] = []
        if (unreleased := self._unreleased.get(session_id)) is not None:
            await self._release(unreleased)

        def claim(db: apsw.Connection) -> tuple[Fence, tuple[Event, ...]]:
            fence, events = owners.claim(db, session_id, own, is_alive)
            claimed.append(fence)
            return fence, events

        try:
            return await self._writer.run(claim)
        except asyncio.CancelledError:
            with suppress(StorageError):  # shielded from a second cancellation
                self._writer.post(partial(owners.give_back, claimed=claimed))
            raise

    async def is_claimed_elsewhere(self, session_id: str) -> bool:
        """See `Storage.is_claimed_elsewhere`."""
        owner = await self._read(reads.owner, session_id)
        if owner is None or owner == self._owners.own:
            return False
        return await asyncio.to_thread(self._owners.is_alive, owner)

    async def release(self, fence: Fence) -> None:
        """See `Storage.release`."""
        try:
            await self._release(fence)
        except StorageError:
            if self._closed:
                raise  # the closing gives all rights back
            self._unreleased[fence.session_id] = fence
            if self._releasing is None or self._releasing.done():
                self._releasing = asyncio.create_task(self._release_later())

    async def _release(self, fence: Fence) -> None:
        await self._writer.run(partial(owners.release, fence=fence))
        self._unreleased.pop(fence.session_id, None)

    async def _release_later(self) -> None:
        while self._unreleased:  # until the database can be written, or is closed
            await asyncio.sleep(RELEASE_AGAIN_S)
            for fence in tuple(self._unreleased.values()):
                with suppress(StorageError):
                    await self._release(fence)

    async def session(self, session_id: str) -> Session:
        """See `Storage.session`."""
        return await self._read(reads.session, session_id)

    async def sessions(
        self, project_id: str | None = None, **filters: Unpack[SessionFilters]
    ) -> tuple[Session, ...]:
        """See `Storage.sessions`."""
        return await self._read(reads.sessions, project_id, filters)

    async def sessions_json(
        self, project_id: str | None = None, **filters: Unpack[SessionFilters]
    ) -> bytes:
        """See `Storage.sessions_json`."""
        return await self._read(reads.sessions_json, project_id, filters)

    async def search(self, project_id: str, text: str, *, limit: int = 50) -> tuple[SearchHit, ...]:
        """See `Storage.search`."""
        from pegboard_plugins.sqlite import integrity

        return await self._read(integrity.search, project_id, text, limit)

    async def sizes(self) -> tuple[SessionSize, ...]:
        """See `Storage.sizes`."""
        from pegboard_plugins.sqlite import integrity

        return await self._read(integrity.sizes)

    async def problems(self) -> tuple[str, ...]:
        """See `Storage.problems`."""
        from pegboard_plugins.sqlite import integrity

        found = await self._read(integrity.problems)
        if found.damaged:
            note_damage(self.path, apsw.CorruptError(found.damaged[0]))
        return found.all()

    async def vacuum(self) -> int:
        """See `Storage.vacuum`."""
        from pegboard_plugins.sqlite import integrity

        return await asyncio.to_thread(integrity.vacuum, self.path)

    async def children(self, session_id: str) -> tuple[Session, ...]:
        """See `Storage.children`."""
        return await self._read(reads.children, session_id)

    async def projects(self) -> tuple[Project, ...]:
        """See `Storage.projects`."""
        return await self._read(reads.projects)

    async def turns(self, session_id: str, *, limit: int | None = None) -> tuple[Turn, ...]:
        """See `Storage.turns`."""
        await self._bury(session_id)
        return (await self._read(reads.turns, session_id, limit=limit)).values()

    async def turns_json(
        self, session_id: str, *, limit: int | None = None, before: str | None = None
    ) -> bytes:
        """See `Storage.turns_json`."""
        await self._bury(session_id)
        return (await self._read(reads.turns, session_id, limit=limit, before=before)).json()

    async def turn(self, session_id: str, message_id: str) -> Turn:
        """See `Storage.turn`."""
        return await self._read(reads.turn, session_id, message_id)

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """See `Storage.todos`."""
        return await self._read(reads.todos, session_id)

    async def state(self, session_id: str, key: str) -> object:
        """See `Storage.state`."""
        return await self._read(reads.state, session_id, key)

    async def approvals(self, *keys: str) -> tuple[Approval, ...]:
        """See `Storage.approvals`."""
        return await self._read(reads.approvals, keys)

    async def session_approvals(self, project_id: str) -> tuple[Approval, ...]:
        """See `Storage.session_approvals`."""
        return await self._read(reads.session_approvals, project_id)

    async def events(self, after: int, *, limit: int = 1000) -> tuple[Event, ...]:
        """See `Storage.events`."""
        return await self._read(reads.events, after, limit)

    async def last_ids(self, session_id: str) -> LastIds:
        """See `Storage.last_ids`."""
        return await self._read(reads.last_ids, session_id)

    async def aclose(self) -> None:
        """Close the storage as described in `Storage.aclose`; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._releasing is not None:
            self._releasing.cancel()
        try:
            if self._copy is None:
                await self._writer.run(partial(owners.release_all, owner=self._owners.own))
        finally:
            await asyncio.to_thread(self._threads.shutdown)
            for reader in self._idle_readers:
                reader.close()
            await self._writer.aclose()
            self._owners.close()
            if self._copy is not None:
                await asyncio.to_thread(shutil.rmtree, self._copy, ignore_errors=True)

    async def _bury(self, session_id: str) -> None:
        """Mark unfinished work in the session as interrupted if the owner's process has died."""
        is_alive = self._owners.is_alive
        owner = await self._read(reads.owner, session_id)
        if owner is not None and not await asyncio.to_thread(is_alive, owner):
            await self._writer.run(lambda db: owners.bury(db, session_id, is_alive))

    async def _read(
        self,
        function: Callable[Concatenate[apsw.Connection, _Arguments], _Value],
        *arguments: _Arguments.args,
        **names: _Arguments.kwargs,
    ) -> _Value:
        """Run a function in one of the storage's reader threads, which tools cannot block.

        A read does not wait for writers, so it has no time limit of its own.
        """
        if self._closed:
            raise StorageError(f"the database {self.path} is closed")
        loop = asyncio.get_running_loop()
        call = partial(self._with_reader, lambda db: function(db, *arguments, **names))
        return await loop.run_in_executor(self._threads, call)

    def _connect(self) -> apsw.Connection:
        return connect_reader(self.path if self._copy is None else Path(self._copy, self.path.name))

    def _with_reader(self, read: Callable[[apsw.Connection], _Value]) -> _Value:
        try:
            db = self._idle_readers.pop() if self._idle_readers else self._connect()
            try:
                return read(db)
            finally:
                self._idle_readers.append(db)
        except apsw.Error as error:
            note_damage(self.path, error)
            raise StorageError(
                f"cannot read the database {self.path}: {reason_of(error)}"
            ) from error


def _open(path: Path, wait: LockWait) -> OpenDatabase:
    """Open the database, or a copy of a read-only database."""
    try:
        return open_database(path, wait)
    except StorageError as error:
        from pegboard_plugins.sqlite.readonly import open_copy  # few databases need it

        return open_copy(path, wait, error)


def _commit(
    db: apsw.Connection, *, changes: tuple[Change, ...], fence: Fence | None
) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    if fence is not None:
        writes.check_fence(db, fence)
    events = writes.apply(db, changes)
    return events, events
