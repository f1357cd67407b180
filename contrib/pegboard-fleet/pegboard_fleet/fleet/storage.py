"""A worker's database, which the Apps of all its jobs share."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from pegboard_postgres.storage import PostgresStorage
from pegboard_postgres.workers import SURE_S, uptime

from pegboard import hookimpl
from pegboard.app import IdSource
from pegboard.schema.event import Event
from pegboard.storage import OnCommit, OpenStorage, Storage
from pegboard_fleet.fleet.options import VARIABLE

_SCHEME = "fleet"
_LOOK_S = 0.05


class SharedStorage(PostgresStorage):
    """The storage that all Apps of a worker share; closing an App does not close the storage.

    `seen_at` is the `uptime` at which the fleet last counted the worker as alive, infinite before
    the worker begins. If that is too long ago, the worker must assume that other workers have its
    jobs. `is_ending` says that the worker ends; its tools then start no process.
    """

    seen_at = float("inf")
    is_ending = False

    def lasts(self) -> bool:
        """See `PostgresStorage.lasts`."""
        return super().lasts() and not self.is_ending and uptime() - self.seen_at < SURE_S

    async def lasting(self) -> None:
        """Wait until the database lease is confirmed and the fleet counts this worker as alive."""
        await super().lasting()
        while not (self.is_ending or self.lasts()):  # noqa: ASYNC110 - the watch ends it
            await asyncio.sleep(_LOOK_S)

    async def aclose(self) -> None:
        """Do nothing, since other Apps of the worker still use the database."""

    async def end(self) -> None:
        """Close the database connections."""
        await super().aclose()


class SharedDatabase:
    """The database of a worker, which passes events of commits to the worker's Apps."""

    def __init__(self) -> None:
        self.listeners: list[OnCommit] = []

    async def open(self, url: str) -> SharedStorage:
        """Open the worker's database; `SharedStorage.end` closes the database.

        :raises StorageError: when the database cannot be opened.
        """
        self.storage = await SharedStorage.open(url, ids=IdSource(), on_commit=self._tell)
        return self.storage

    def _tell(self, events: tuple[Event, ...]) -> None:
        for listener in tuple(self.listeners):
            listener(events)


class SharedAccess:
    """The plugin that makes an App use the worker's open database (URL `fleet://`)."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database
        self._listener: OnCommit | None = None

    @classmethod
    def env(cls, env: Mapping[str, str]) -> dict[str, str]:
        """Return the App's environment, in which tools cannot read the database's address."""
        return {**env, VARIABLE: f"{_SCHEME}://"}

    @hookimpl
    async def register_storage(self) -> Mapping[str, OpenStorage]:
        """Register the URL scheme of the worker's database."""
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
        """Stop notifying the App of commits."""
        if self._listener is not None:
            self._database.listeners.remove(self._listener)
