"""No connection is left open by a server of the tests."""

import asyncio
import gc
import socket
import warnings
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from pegboard.testing import ScriptedServer
from support.models import model_server as ms
from support.wire import web_server

SERVERS: dict[str, Callable[[], AbstractAsyncContextManager[Any]]] = {
    "model": lambda: ms.ModelServer(ms.in_order([])),
    "web": lambda: web_server.serving({}),
    "scripted": ScriptedServer,
}


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("kind", SERVERS)
def test_a_connection_that_is_just_being_accepted_is_closed(kind: str, turns: int) -> None:
    async def come_and_go() -> None:
        async with SERVERS[kind]() as server:
            client = socket.create_connection(("127.0.0.1", server.port))
            for _ in range(turns):
                await asyncio.sleep(0)
        client.close()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        asyncio.run(come_and_go())
        gc.collect()

    assert [each for each in found if each.category is ResourceWarning] == []
