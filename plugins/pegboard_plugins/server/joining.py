"""The start of a server's membership in a fleet."""

from pegboard.errors import ConfigError
from pegboard_plugins.server import FleetServer, join_fleet
from pegboard_plugins.server.fleet import ServerFleet
from pegboard_plugins.server.serverstate import ServerState


async def join(state: ServerState, own: FleetServer, secret: bytes) -> None:
    """Join the fleet of servers that share the database, before the server takes requests.

    :raises ConfigError: when no plugin provides the fleet.
    """
    app = await state.pool.app(state.directory)
    membership = await app.hooks.first(join_fleet, server=own)
    if membership is None:
        raise ConfigError(
            "--fleet: no plugin joins a fleet; `pip install 'pegboard-fleet[postgres]'` installs "
            "one, and PEGBOARD_DATABASE names its database"
        )
    state.fleet = ServerFleet(membership, own, secret, state.pool, state.feed)
    state.pool.on_open = membership.add
    await membership.add(app)
    await state.fleet.begin()
