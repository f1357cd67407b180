"""Interim responses, which come before the status of an answer."""

import asyncio
import socket
import threading

import httpx
import uvicorn

from pegboard_plugins.server.connection import BoundedProtocol, send_interim


async def answer(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    send_interim(scope)
    await send({"type": "http.response.start", "status": 409, "headers": []})
    send_interim(scope)
    await send({"type": "http.response.body", "body": b"{}"})


def test_interim_responses_come_before_the_status_and_never_after_it() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(answer, http=BoundedProtocol, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    address = listener.getsockname()
    try:
        with socket.create_connection(address, timeout=30) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            newer = b"".join(iter(lambda: raw.recv(4096), b""))
        with socket.create_connection(address, timeout=30) as raw:
            raw.sendall(b"GET / HTTP/1.0\r\nhost: x\r\n\r\n")
            older = b"".join(iter(lambda: raw.recv(4096), b""))
        told = httpx.get(f"http://127.0.0.1:{address[1]}/")
    finally:
        server.should_exit = True
        thread.join()

    assert newer.startswith(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 409")
    assert (newer.count(b" 102 "), older.count(b" 102 ")) == (1, 0)
    assert (told.status_code, told.text) == (409, "{}")
