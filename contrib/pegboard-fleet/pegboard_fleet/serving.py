"""Servers that share one database, joined with `pegboard serve --fleet`."""

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from pegboard import hookimpl
from pegboard.app import IdSource
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard_plugins.server import FleetMembership, FleetServer


@hookimpl(optionalhook=True)
async def join_fleet(server: "FleetServer") -> "FleetMembership | None":
    """Join the servers that share the database in PEGBOARD_DATABASE.

    :raises ConfigError: when the variable names no database, or the driver is not installed.
    :raises StorageError: when the database cannot be used.
    """
    try:
        from pegboard_postgres.storage import PostgresStorage

        from pegboard_fleet.fleet.database import FleetDatabase, database_url
        from pegboard_fleet.fleet.servers import ServerMembership
    except ImportError as error:
        way = "pip install 'pegboard-fleet[postgres]' installs it"
        raise ConfigError(f"a fleet of servers needs {error.name}: {way}") from error
    url = database_url(os.environ)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(FleetDatabase(url))
        await database.require_tables()
        storage = await PostgresStorage.open(url, ids=IdSource())
        stack.push_async_callback(storage.aclose)
        membership = ServerMembership(database, storage, server)
        await membership.begin()
        stack.pop_all()  # the membership closes both
    return membership
