"""Long waits for an answer, with interim responses that keep the connection alive.

The final status can then still describe the outcome. A client of HTTP/1.1 skips an interim response
(RFC 9110 §15.2). It restarts the timeouts of Python's client (60 s) and of `fetch` in node (300 s),
but not that of `fetch` in Bun (300 s), which OpenCode's clients switch off.
"""

import asyncio
import re
from typing import Any

from fastapi import Request

from pegboard_plugins.server.connection import send_interim
from pegboard_plugins.server.serverstate import ServerState

INTERIM_AFTER_S = 45.0
MOST_FOR_GO = 5
"""Go gives up at a sixth one before 1.24; it has no limit on silence of its own."""
_GO = re.compile(r"\bgo\b", re.IGNORECASE)


async def wait_for(request: Request, task: asyncio.Task[Any]) -> None:
    """Wait for a task without a limit; send an interim response now and then."""
    is_go = _GO.search(request.headers.get("user-agent", "")) is not None
    sent = 0
    while not task.done():
        await asyncio.wait({task}, timeout=INTERIM_AFTER_S)
        if not task.done() and (sent < MOST_FOR_GO or not is_go):
            send_interim(request.scope)
            sent += 1


async def wait_while_connected(
    request: Request, state: ServerState, task: asyncio.Task[Any]
) -> None:
    """Wait as `wait_for` does, and cancel the task when the client disconnects."""
    left = state.start(_left(request), "wait for a client to leave")
    left.add_done_callback(lambda _: task.cancel())
    await wait_for(request, task)
    left.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
