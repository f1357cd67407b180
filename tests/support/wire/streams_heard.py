"""What a client of a server's event streams hears, and the prompt that it is about."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.wire.served import Served


def prompt(text: str, **facts: Any) -> dict[str, Any]:
    return {"parts": [{"type": "text", "text": text}], **facts}


@contextmanager
def heard(
    server: Served, path: str = "/event", *, about: str = ""
) -> Iterator[list[dict[str, Any]]]:
    """The first event and those from here on, as they come; of one session, if it is named."""
    events: list[dict[str, Any]] = []
    place = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    with socket.create_connection(place) as connection, connection.makefile("rb") as lines:
        head = f"GET {path} HTTP/1.1\r\nhost: {place[0]}:{place[1]}\r\n"
        connection.sendall(f"{head}authorization: Bearer {server.token}\r\n\r\n".encode())
        opened = threading.Event()

        def listen() -> None:
            for line in lines:
                if line.startswith(b"data: "):
                    if not opened.is_set() or about.encode() in line:
                        events.append(json.loads(line[6:]))
                    opened.set()

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            assert opened.wait(60)
            yield events
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            thread.join()


def until(events: list[dict[str, Any]], kind: str, limit_s: float = 60) -> dict[str, Any]:
    end = time.monotonic() + limit_s
    kinds: list[str] = []
    while time.monotonic() < end:
        kinds = [event.get("payload", event)["type"] for event in events]
        if kind in kinds:
            return events[kinds.index(kind)]
        time.sleep(0.02)
    raise AssertionError(f"no {kind} among {kinds}")
