"""What a client may send on one connection, and how long it may take."""

import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from pegboard_plugins.server.connection import LONGEST_HEAD_BYTES, MOST_WAITING
from support.wire.served import Served

LIMIT_S = 30


def address(server: Served) -> tuple[str, int]:
    return "127.0.0.1", int(server.url.rpartition(":")[2])


def head(server: Served, first: str, *lines: str) -> bytes:
    own = (f"host: 127.0.0.1:{address(server)[1]}", f"authorization: Bearer {server.token}")
    return "\r\n".join([first, *own, *lines, "", ""]).encode()


def posted(server: Served, *lines: str) -> bytes:
    kind = "content-type: application/json"
    return head(server, "POST /session HTTP/1.1", kind, "transfer-encoding: chunked", *lines)


def heard(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    pieces = b""
    try:
        while piece := connection.recv(65536):
            pieces += piece
    except ConnectionResetError:  # it has closed before it had read everything
        pass
    return pieces


def answered(connection: socket.socket) -> bytes:
    """A whole answer, of which the body is an error."""
    pieces = b""
    while not pieces.endswith(b"}}"):
        pieces += connection.recv(65536)
    return pieces


def said(server: Served, request: bytes) -> bytes:
    with socket.create_connection(address(server), timeout=LIMIT_S) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
        return heard(connection)


@contextmanager
def logged(server: Served) -> Iterator[list[str]]:
    """A list that has the lines of the server's log from inside the block once it has ended."""
    lines: list[str] = []
    with (server.places / "server.log").open() as log, server.client() as client:
        log.seek(0, os.SEEK_END)
        yield lines
        client.get("/path")  # the line of an earlier request is written by now
        lines += log.readlines()


def test_requests_may_follow_each_other_before_an_answer(server: Served) -> None:
    one = head(server, "GET /global/health HTTP/1.1")
    last = head(server, "GET /global/health HTTP/1.1", "connection: close")

    assert said(server, one * 3 + last).count(b"HTTP/1.1 200") == 4


def test_a_flood_of_requests_that_wait_ends_the_connection(server: Served) -> None:
    heard_of = said(server, b"GET / HTTP/1.1\r\n\r\n" * 5000)

    assert heard_of.count(b"HTTP/1.1") <= MOST_WAITING + 1


def test_what_follows_a_body_is_no_head(server: Served) -> None:
    body = b"2\r\n{}\r\n0\r\nhost: evil.example\r\norigin: null\r\n\r\n"

    answer = said(server, posted(server, "connection: close") + body)

    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "endless",
    [
        lambda: b"2\r\n{}\r\n0\r\n" + b"x: y\r\n" * LONGEST_HEAD_BYTES,
        lambda: b"2\r\n{}\r\n0\r\nx: " + b"y" * 32 * LONGEST_HEAD_BYTES,
        lambda: b"2;" + b"y" * 32 * LONGEST_HEAD_BYTES,
    ],
    ids=["trailers", "one trailer", "chunk extension"],
)
def test_what_stands_around_a_body_is_bounded(server: Served, endless: Callable[[], bytes]) -> None:
    before = server.resident_mb

    assert b"HTTP/1.1 200" not in said(server, posted(server) + endless())
    assert server.resident_mb - before < 20


@pytest.mark.parametrize("coding", ["gzip, chunked", "identity, chunked", "xchunked"])
def test_a_coding_that_is_not_understood_is_refused(server: Served, coding: str) -> None:
    first = head(server, "POST /session HTTP/1.1", f"transfer-encoding: {coding}")

    assert said(server, first + b"0\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_chunks_are_for_the_newer_protocol(server: Served) -> None:
    first = head(server, "POST /session HTTP/1.0", "transfer-encoding: chunked")

    assert said(server, first + b"0\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_a_terminal_is_not_asked_for_behind_a_request(server: Served) -> None:
    stream = head(server, "GET /event HTTP/1.1")
    upgrade = head(
        server,
        "GET /pty/pty_x/connect HTTP/1.1",
        "upgrade: websocket",
        "connection: upgrade",
        "sec-websocket-version: 13",
        "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
    )

    assert said(server, stream + upgrade).count(b"HTTP/1.1") <= 1


@pytest.mark.long
def test_no_client_holds_a_connection_for_long(server: Served) -> None:
    kind = ("content-type: text/plain", "content-length: 100")
    sent = (
        (b"GET / HTTP/1.1\r\nx: ", b"", b"HTTP/1.1 408"),
        (head(server, "GET /nothing HTTP/1.1"), b"\r\n", b"HTTP/1.1 404"),
        (head(server, "POST /nothing HTTP/1.1", *kind), b"{", b"HTTP/1.1 415"),
    )
    with ExitStack() as opened:
        connections = [
            opened.enter_context(socket.create_connection(address(server), timeout=LIMIT_S))
            for _ in sent
        ]
        for connection, (first, _, _) in zip(connections, sent, strict=True):
            connection.sendall(first)
        answers = [
            b"" if not rest else answered(each)
            for each, (_, rest, _) in zip(connections, sent, strict=True)
        ]
        for connection, (_, rest, _) in zip(connections, sent, strict=True):
            connection.sendall(rest)
        answers = [one + heard(each) for one, each in zip(answers, connections, strict=True)]

    assert [answer[:12] for answer in answers] == [status for _, _, status in sent]


def test_clients_that_only_connect_do_not_take_all_files(server: Served) -> None:
    process, kind = server.process.pid, resource.RLIMIT_NOFILE
    before = resource.prlimit(process, kind)
    with logged(server) as lines, server.client() as client, ExitStack() as opened:
        client.get("/global/health")
        resource.prlimit(process, kind, (256, before[1]))
        try:
            for _ in range(400):
                opened.enter_context(socket.create_connection(address(server), timeout=LIMIT_S))
            assert client.get("/global/health").status_code == 200
            assert client.get("/find", params={"pattern": "def"}).json() != []
        finally:
            resource.prlimit(process, kind, before)

    assert "no connection can be taken" not in (server.places / "server.log").read_text()
    [refused] = [line for line in lines if "connections are refused" in line]
    assert refused.endswith("128 are open, which is the most; raise `ulimit -n`\n")


@pytest.mark.parametrize("body", [b"ZZ\r\n", b"5\r\n{}\r\nZZ", b"2\r\n{}ZZ"])
def test_a_body_that_is_no_http_is_refused_without_a_traceback(server: Served, body: bytes) -> None:
    with logged(server) as lines:
        answer = said(server, posted(server) + body)

    assert answer.startswith(b"HTTP/1.1 400")
    assert "Traceback" not in "".join(lines)


@pytest.mark.parametrize("route", ["POST /session", "PATCH /config", "PUT /auth/x", "POST /log"])
def test_a_client_that_leaves_within_its_body_is_no_error_of_the_server(
    server: Served, route: str
) -> None:
    kind = "content-type: application/json"
    begun = head(server, f"{route} HTTP/1.1", kind, "content-length: 10") + b"{"
    with (
        logged(server) as lines,
        socket.create_connection(address(server), timeout=LIMIT_S) as connection,
    ):
        connection.sendall(begun)
        connection.shutdown(socket.SHUT_WR)
        heard(connection)

    assert "Traceback" not in "".join(lines)
