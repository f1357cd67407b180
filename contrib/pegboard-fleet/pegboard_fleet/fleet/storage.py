"""The one database of a worker, which the Apps of all its jobs share."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from pegboard_postgres.storage import PostgresStorage
from pegboard_postgres.workers import LEASE_S

from pegboard import hookimpl
from pegboard.app import IdSource
from pegboard.schema.event import Event
from pegboard.storage import Change, Fence, OnCommit, OpenStorage, Storage
from pegboard_fleet.fleet.options import VARIABLE

_SCHEME = "fleet"
_LOOK_S = 0.05


class SharedStorage(PostgresStorage):
    """The storage of a worker, which stays open when an App closes it.

    `seen_at` is the instant, by `time.monotonic`, at which the worker was last seen to have its
    lease. A commit that was written before the process was stopped does not return before the
    lease is seen once more: its caller would start a tool that another worker has reported as
    interrupted.
    """

    seen_at = float("inf")

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        """See `Storage.commit`."""
        events = await super().commit(*changes, fence=fence)
        while time.monotonic() - self.seen_at > LEASE_S:  # noqa: ASYNC110 - the watch ends it
            await asyncio.sleep(_LOOK_S)
        return events

    async def aclose(self) -> None:
        """Leave the database open for the other Apps."""

    async def end(self) -> None:
        """Close the database."""
        await super().aclose()


class SharedDatabase:
    """The database of a worker, and the Apps that hear of its commits."""

    def __init__(self) -> None:
        self.listeners: list[OnCommit] = []

    async def open(self, url: str) -> SharedStorage:
        """Open the database; `SharedStorage.end` closes it.

        :raises StorageError: when it cannot be opened.
        """
        self.storage = await SharedStorage.open(url, ids=IdSource(), on_commit=self._tell)
        return self.storage

    def _tell(self, events: tuple[Event, ...]) -> None:
        for listener in tuple(self.listeners):
            listener(events)


class SharedAccess:
    """The plugin of one App that gives it a worker's database, under an address without a place."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database
        self._listener: OnCommit | None = None

    @classmethod
    def env(cls, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the App; no tool of it reads the database's address there."""
        return {**env, VARIABLE: f"{_SCHEME}://"}

    @hookimpl
    async def register_storage(self) -> Mapping[str, OpenStorage]:
        """Return what opens the worker's database."""
        return {_SCHEME: self._open}

    async def _open(
        self,
        url: str | Path,  # noqa: ARG002 - the database is open
        *,
        ids: IdSource,  # noqa: ARG002 - likewise
        on_commit: OnCommit | None = None,
    ) -> Storage:
        self._listener = on_commit
        if on_commit is not None:
            self._database.listeners.append(on_commit)
        return self._database.storage

    @hookimpl
    async def shutdown(self) -> None:
        """Hear of no commit any more."""
        if self._listener is not None:
            self._database.listeners.remove(self._listener)
