"""A client of Pegboard's server: `AsyncClient` for asyncio code, `Client` for synchronous code.

::

    from pegboard_client import Client

    with Client.discover("/my/project") as client:
        session = client.sessions.create(title="Sums")
        turn = client.prompt(session.id, "What is 2 + 2?")

Both clients have the same methods. They open no connection before the first request, and start
neither tasks nor threads.
"""

from pegboard.errors import ServerError as ServerError
from pegboard.errors import ServerUnreachableError as ServerUnreachableError
from pegboard_client.aio.client import AsyncClient as AsyncClient
from pegboard_client.aio.stream import AsyncEventStream as AsyncEventStream
from pegboard_client.events import GlobalEvent as GlobalEvent
from pegboard_client.events import Resync as Resync
from pegboard_client.sync.client import Client as Client
from pegboard_client.sync.stream import EventStream as EventStream
