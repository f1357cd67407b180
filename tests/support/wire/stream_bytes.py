"""The bytes that clients of a server get while an answer is streamed, counted at their sockets."""

import socket
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from support.wire.served import Served

FIRST, ENDED = b'"server.connected"', b'"session.idle"'
HEARD_WITHIN_S = 120


@dataclass(slots=True)
class Counted:
    """What one client got: with `coding` it asks for that; `text` is what it reads."""

    path: str
    coding: str = ""
    bytes: int = 0
    text: bytearray = field(default_factory=bytearray)
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def counting(server: Served, clients: Sequence[Counted]) -> Iterator[None]:
    """A block in which the clients listen; at its end all have heard that the turn has ended."""
    with ExitStack() as opened:
        for client in clients:
            opened.enter_context(_listening(server, client))
        yield
        for client in clients:
            assert client.ended.wait(HEARD_WITHIN_S)


@contextmanager
def _listening(server: Served, client: Counted) -> Iterator[None]:
    host, _, port = server.url.removeprefix("http://").partition(":")
    lines = [
        f"GET {client.path} HTTP/1.1",
        f"host: {host}:{port}",
        f"authorization: Bearer {server.token}",
        *([f"accept-encoding: {client.coding}"] if client.coding else []),
    ]
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        opened = threading.Event()
        thread = threading.Thread(target=_listen, args=(connection, client, opened))
        thread.start()
        try:
            assert opened.wait(60)  # its first frame says nothing of the answer
            client.bytes = 0
            yield
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            thread.join()


def _listen(connection: socket.socket, client: Counted, opened: threading.Event) -> None:
    """Count all that comes, the frames of HTTP too, and read what is in it."""
    unpack = zlib.decompressobj(31).decompress if client.coding else bytes
    # Closed from here, it may be reset at the other end; whether all came, `ended` says.
    with connection.makefile("rb") as stream, suppress(ConnectionResetError):
        while stream.readline().strip():
            pass
        while size_line := stream.readline():
            size = int(size_line, 16)
            piece = stream.read(size + 2)
            client.bytes += len(size_line) + len(piece)
            client.text += unpack(piece[:-2])
            if FIRST in client.text:
                opened.set()
            if ENDED in client.text:
                client.ended.set()
            if not size:
                return
