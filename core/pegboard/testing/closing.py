"""The closing of a test's server, even while the server accepts a connection."""

import asyncio

ACCEPT_TURNS = 5
"""More turns of the event loop than asyncio takes from an accepted socket to its handler."""


async def stop_accepting(server: asyncio.Server) -> None:
    """Close a server once a handler runs for each connection that the server has accepted.

    asyncio would leave a connection open that it accepts just when its server is closed.
    """
    for listener in server.sockets:
        asyncio.get_running_loop().remove_reader(listener.fileno())
    for _ in range(ACCEPT_TURNS):
        await asyncio.sleep(0)
    server.close()
