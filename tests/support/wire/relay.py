"""A relay before a server, which reads the content codings of the event streams."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_STREAM = re.compile(rb"GET /(?:global/)?event[ ?]")
_HEAD = re.compile(rb"HTTP/1\.1 200 [^\r]*\r\n((?:[^\r]+\r\n)+)\r\n")


@dataclass(slots=True)
class Relay:
    """`codings` are the content codings of the streams that were begun, "" for none."""

    url: str
    codings: list[str] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)

    def read(self, asked: bytes, given: bytes) -> bool:
        """Whether this connection is an event stream; its coding is noted then."""
        if not _STREAM.search(asked):
            return False
        heads = [each[1].lower() for each in _HEAD.finditer(given)]
        streams = [each for each in heads if b"text/event-stream" in each]
        if streams:
            found = re.search(rb"content-encoding: *(\S+)", streams[-1])
            self.codings.append(found[1].decode() if found else "")
            self.begun.set()
        return bool(streams)


@contextmanager
def relayed(url: str) -> Iterator[Relay]:
    """A relay to the server at `url`, which is told its own address as the host."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_server((host, 0)) as listening:
        ours = f":{listening.getsockname()[1]}"
        relay = Relay(f"http://{host}{ours}")
        names = (ours.encode(), f":{port}".encode())
        ends: list[tuple[socket.socket, threading.Thread]] = []
        facts = (listening, relay, int(port), names, ends)
        accepting = threading.Thread(target=_accept, args=facts)
        accepting.start()
        try:
            yield relay
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for end, _ in ends:
                _end(end, socket.SHUT_RDWR)
            for end, thread in ends:
                thread.join()
                end.close()


def _accept(
    listening: socket.socket,
    relay: Relay,
    port: int,
    names: tuple[bytes, bytes],
    ends: list[tuple[socket.socket, threading.Thread]],
) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # the relay ends
            return
        server = socket.create_connection(("127.0.0.1", port))
        asked = bytearray()
        up = threading.Thread(target=_up, args=(client, server, asked, names), daemon=True)
        down = threading.Thread(target=_down, args=(server, client, asked, relay), daemon=True)
        ends += [(client, up), (server, down)]
        up.start()
        down.start()


def _up(
    client: socket.socket, server: socket.socket, asked: bytearray, names: tuple[bytes, bytes]
) -> None:
    while piece := _received(client):
        asked += piece
        try:
            server.sendall(piece.replace(*names))
        except OSError:  # it has gone
            return
    _end(server)


def _down(server: socket.socket, client: socket.socket, asked: bytearray, relay: Relay) -> None:
    given, known = bytearray(), False
    while piece := _received(server):
        given += piece
        known = known or relay.read(bytes(asked), bytes(given))
        try:
            client.sendall(piece)
        except OSError:  # it has gone
            return
    _end(client)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


def _end(connection: socket.socket, how: int = socket.SHUT_WR) -> None:
    try:
        connection.shutdown(how)
    except OSError:
        return
