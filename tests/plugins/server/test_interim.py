"""Interim responses, which come before the status of an answer."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse

from pegboard_plugins.server import waiting
from pegboard_plugins.server.connection import BoundedProtocol, send_interim


async def answer(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    send_interim(scope)
    await send({"type": "http.response.start", "status": 409, "headers": []})
    send_interim(scope)
    await send({"type": "http.response.body", "body": b"{}"})


@contextmanager
def listening(application) -> Iterator[tuple[str, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, http=BoundedProtocol, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join()


def test_interim_responses_come_before_the_status_and_never_after_it() -> None:
    with listening(answer) as address:
        with socket.create_connection(address, timeout=30) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            newer = b"".join(iter(lambda: raw.recv(4096), b""))
        with socket.create_connection(address, timeout=30) as raw:
            raw.sendall(b"GET / HTTP/1.0\r\nhost: x\r\n\r\n")
            older = b"".join(iter(lambda: raw.recv(4096), b""))
        told = httpx.get(f"http://127.0.0.1:{address[1]}/")

    assert newer.startswith(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 409")
    assert (newer.count(b" 102 "), older.count(b" 102 ")) == (1, 0)
    assert (told.status_code, told.text) == (409, "{}")


@pytest.fixture
def often(monkeypatch) -> float:
    """The seconds between interim responses."""
    monkeypatch.setattr(waiting, "INTERIM_AFTER_S", 0.02)
    return 0.02


def test_the_status_is_the_outcomes_however_many_interim_responses_precede_it(often) -> None:
    ended = threading.Event()

    async def application(scope, receive, send):
        task = asyncio.create_task(asyncio.to_thread(ended.wait, 30))
        await waiting.wait_for(Request(scope, receive), task)
        await JSONResponse({}, status_code=409)(scope, receive, send)

    with (
        listening(application) as address,
        socket.create_connection(address, timeout=30) as raw,
    ):
        raw.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        received = b""
        while received.count(b" 102 ") < 2 * waiting.MOST_FOR_GO:
            received += raw.recv(4096)
        ended.set()
        received += b"".join(iter(lambda: raw.recv(4096), b""))

    statuses = [line.split(b" ")[1] for line in received.split(b"\r\n") if b"HTTP/1.1 " in line]
    assert set(statuses[:-1]) == {b"102"}
    assert statuses[-1] == b"409"


@pytest.mark.parametrize("agent", ["Go-http-client/1.1", "Opencode/Go 0.19.1"])
def test_a_client_of_go_gets_no_more_interim_responses_than_it_takes(often, agent) -> None:
    async def application(scope, receive, send):
        task = asyncio.create_task(asyncio.sleep(20 * often))
        await waiting.wait_for(Request(scope, receive), task)
        await JSONResponse({}, status_code=409)(scope, receive, send)

    with listening(application) as address, socket.create_connection(address, timeout=30) as raw:
        head = f"GET / HTTP/1.1\r\nhost: x\r\nuser-agent: {agent}\r\nconnection: close\r\n\r\n"
        raw.sendall(head.encode())
        received = b"".join(iter(lambda: raw.recv(4096), b""))

    assert 0 < received.count(b" 102 ") <= waiting.MOST_FOR_GO
    assert b"HTTP/1.1 409" in received


def test_an_interim_response_restarts_a_clients_limit_on_silence(often) -> None:
    limit_s = 3.0

    async def application(scope, receive, send):
        task = asyncio.create_task(asyncio.sleep(2 * limit_s))
        await waiting.wait_for(Request(scope, receive), task)
        await JSONResponse({}, status_code=409)(scope, receive, send)

    with listening(application) as address:
        told = httpx.get(f"http://127.0.0.1:{address[1]}/", timeout=limit_s)

    assert told.status_code == 409
