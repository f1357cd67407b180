# ruff: noqa: S608 - conditions are our own words
"""The servers of a fleet: who runs which session, by the leases of their processes."""

from pegboard_postgres.storage import PostgresStorage
from pegboard_postgres.workers import ALIVE

from pegboard import App
from pegboard.errors import ConfigError
from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.fleet.options import VARIABLE
from pegboard_plugins.server import FleetServer

_PUT = (
    "INSERT INTO fleet_server(owner, server, host, url) VALUES(%s, %s, %s, %s) "
    "ON CONFLICT(owner) DO NOTHING"
)
# One that was stopped and wakes up has its row of `worker` again.
_FORGET = "DELETE FROM fleet_server WHERE NOT EXISTS(SELECT 1 FROM worker WHERE id = owner)"
_OTHERS = (
    f"SELECT DISTINCT server, host, url FROM fleet_server WHERE server <> %s AND EXISTS({ALIVE})"
)
_OWNER = f"{_OTHERS} AND owner = (SELECT owner FROM session WHERE id = %s)"
_LEAVE = "DELETE FROM fleet_server WHERE server = %s"


class ServerMembership:
    """The membership of a server, from `begin` to `aclose`; see `FleetMembership`.

    `storage` has the lease of the server, also while none of its Apps is open.
    """

    def __init__(
        self, database: FleetDatabase, storage: PostgresStorage, server: FleetServer
    ) -> None:
        self._database = database
        self._storage = storage
        self._server = server

    async def begin(self) -> None:
        """Let the other servers find this one.

        :raises StorageError: when the database cannot be used.
        """
        await self._database.run(_FORGET)
        await self._put(self._storage.own)

    async def add(self, app: App) -> None:
        """Record that sessions which this App claims run on this server.

        :raises ConfigError: when its sessions are in no database of PostgreSQL.
        """
        if not isinstance(app.storage, PostgresStorage):
            raise ConfigError(
                f"the sessions of {app.workspace.directory} are not in PostgreSQL, which the "
                f"servers of a fleet share; set {VARIABLE}",
                key=VARIABLE,
            )
        await self._put(app.storage.own)

    async def owner(self, session_id: str) -> FleetServer | None:
        """Return the other living server that runs the session."""
        rows = await self._database.run(_OWNER, self._server.id, session_id)
        return next((FleetServer(id=id_, host=host, url=url) for id_, host, url in rows), None)

    async def others(self) -> tuple[FleetServer, ...]:
        """Return the other living servers."""
        rows = await self._database.run(_OTHERS, self._server.id)
        return tuple(FleetServer(id=id_, host=host, url=url) for id_, host, url in rows)

    async def aclose(self) -> None:
        """Leave the fleet."""
        async with self._database:
            try:
                await self._database.run(_LEAVE, self._server.id)
            finally:
                await self._storage.aclose()

    async def _put(self, owner: str) -> None:
        await self._database.run(_PUT, owner, self._server.id, self._server.host, self._server.url)
