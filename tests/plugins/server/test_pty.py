"""Terminals over the wire: made, worked at, resumed, and ended with all that they started."""

import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from support.wire.served import Served, served

LIMIT_S = 30.0
NAP = 79_000_000 + os.getpid()
"""A number of seconds that no other process sleeps."""
PLAIN = {"command": "bash", "args": ["--norc"], "env": {"PS1": "$ "}}


@pytest.fixture
def pty(client: httpx.Client) -> Iterator[str]:
    made = client.post("/pty", json=PLAIN).json()["id"]
    yield made
    client.delete(f"/pty/{made}")


def address(server: Served, pty: str, **query: str) -> str:
    url = httpx.URL(f"{server.url}/pty/{pty}/connect", params=query)
    return str(url).replace("http://", "ws://")


def at(server: Served, pty: str, **query: str) -> ClientConnection:
    headers = {"authorization": f"Bearer {server.token}"}
    return connect(address(server, pty, **query), additional_headers=headers, open_timeout=LIMIT_S)


def until(socket: ClientConnection, text: str) -> str:
    """What is shown, up to and with the message that brings the text."""
    shown = ""
    while text not in shown:
        message = socket.recv(LIMIT_S)
        shown += message if isinstance(message, str) else ""
    return shown


def screen(socket: ClientConnection) -> tuple[str, int]:
    """What was shown before the connection, and the place behind it."""
    shown = ""
    while isinstance(message := socket.recv(LIMIT_S), str):
        shown += message
    assert message[:1] == b"\0"
    return shown, json.loads(message[1:])["cursor"]


def wait_for(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_terminal_lives_from_its_making_to_its_end(server, client):
    made = client.post("/pty", json={**PLAIN, "title": "mine"}).json()
    path = f"/pty/{made['id']}"

    changed = client.put(path, json={"title": "other", "size": {"rows": 10, "cols": 33}}).json()
    listed = client.get("/pty").json()
    removed = client.delete(path).json()

    assert made.keys() == {"id", "title", "command", "args", "cwd", "status", "pid"}
    assert made["id"].startswith("pty_")
    assert (made["title"], made["cwd"], made["args"]) == ("mine", str(server.directory), ["--norc"])
    assert made["status"] == "running"
    assert changed == {**made, "title": "other"}
    assert changed in listed
    assert removed is True
    gone = client.get(path)
    assert (gone.status_code, gone.json()["_tag"]) == (404, "PtyNotFoundError")
    wait_for(lambda: not Path(f"/proc/{made['pid']}/cwd").exists())


def test_what_is_typed_is_run(server, client, pty):
    client.put(f"/pty/{pty}", json={"size": {"rows": 10, "cols": 33}})
    with at(server, pty) as socket:
        socket.send("stty size; pwd; echo h\u00e9-$((40+2))\n")
        shown = until(socket, "h\u00e9-42")
        socket.send(b"echo bytes-$((1+1))\n")
        until(socket, "bytes-2")

    assert "10 33" in shown
    assert str(server.directory) in shown


def test_who_comes_back_goes_on_where_it_was(server, pty):
    with at(server, pty) as socket:
        screen(socket)
        socket.send("echo '\U0001f600' one-$((1+1))\n")
        if not until(socket, "one-2\r\n").endswith("$ "):
            until(socket, "$ ")  # the shell says nothing more
    with at(server, pty) as socket:
        everything, end = screen(socket)
    units = everything.encode("utf-16-le")
    middle = units.index("\U0001f600".encode("utf-16-le")) // 2 + 2

    places = {"": everything, "-1": "", "999999": "", "x": everything, "-7": everything}
    for cursor, expected in places.items():
        with at(server, pty, cursor=cursor) as socket:
            assert screen(socket) == (expected, end), cursor
    with at(server, pty, cursor=str(middle)) as socket:
        assert screen(socket) == (units[2 * middle :].decode("utf-16-le"), end)
    assert len(units) == 2 * end


def test_two_can_look_at_one_terminal(server, pty):
    with at(server, pty) as one, at(server, pty) as other:
        one.send("echo both-$((1+1))\n")

        assert "both-2" in until(one, "both-2")
        assert "both-2" in until(other, "both-2")


def test_a_long_output_leaves_its_latest_part(server, pty):
    with at(server, pty) as socket:
        socket.send("head -c 3000000 /dev/zero | tr '\\0' x; echo end-$((1+1))\n")
        until(socket, "end-2")
    with at(server, pty) as socket:
        shown, end = screen(socket)

    assert end > 3_000_000
    assert 1_900_000 < len(shown) < 2_300_000
    assert "end-2" in shown


def test_the_end_of_the_program_ends_the_connection_and_is_told(server, client, pty):
    with client.stream("GET", "/event") as stream:
        lines = (json.loads(line[6:]) for line in stream.iter_lines() if line)
        next(lines)
        with at(server, pty) as socket:
            socket.send("exit 3\n")
            with pytest.raises(ConnectionClosedOK):
                until(socket, "never shown")
        told = list(islice((each for each in lines if each["properties"].get("id") == pty), 2))

    assert [(each["type"], each["properties"]) for each in told] == [
        ("pty.exited", {"id": pty, "exitCode": 3}),
        ("pty.deleted", {"id": pty}),
    ]
    assert client.get(f"/pty/{pty}").status_code == 404


def test_removing_a_terminal_ends_the_whole_tree(server, client, pty):
    with at(server, pty) as socket:
        socket.send(f"trap '' HUP; setsid sleep {NAP}.1 & sleep {NAP}.1 & echo up-$((1+1))\n")
        until(socket, "up-2")
    wait_for(lambda: len(_sleeping(f"{NAP}.1")) == 2)

    client.delete(f"/pty/{pty}")

    wait_for(lambda: not _sleeping(f"{NAP}.1"))


def test_a_stop_ends_terminals_and_their_connections(model_port, tmp_path):
    with served(tmp_path, model_port) as own, own.client() as client:
        made = client.post("/pty", json=PLAIN).json()["id"]
        with at(own, made) as socket:
            socket.send(f"sleep {NAP}.2\n")
            wait_for(lambda: _sleeping(f"{NAP}.2"))
            own.process.terminate()
            with pytest.raises(ConnectionClosed):
                until(socket, "never shown")
        assert own.process.wait(LIMIT_S) == 0

    wait_for(lambda: not _sleeping(f"{NAP}.2"))


def test_a_disposed_directory_has_no_terminals(client, tmp_path):
    where = {"directory": str(tmp_path)}
    made = client.post("/pty", json=PLAIN, params=where).json()

    elsewhere = client.get(f"/pty/{made['id']}")
    client.post("/instance/dispose", params=where)

    assert elsewhere.status_code == 404
    assert client.get("/pty", params=where).json() == []
    wait_for(lambda: not Path(f"/proc/{made['pid']}/cwd").exists())


def test_a_terminal_has_no_keys_of_providers(model_port, tmp_path):
    env = {"OPENAI_API_KEY": "very-secret", "PEGBOARD_SERVER_PASSWORD": "p", "GREETING": "hi"}
    with served(tmp_path, model_port, env=env) as own, own.client() as client:
        made = client.post("/pty", json={"command": "bash", "args": ["--norc"]}).json()["id"]
        with at(own, made) as socket:
            socket.send("env; echo end-$((1+1))\n")
            shown = until(socket, "end-2")

    assert "GREETING=hi" in shown
    assert "TERM=xterm-256color" in shown
    assert "very-secret" not in shown
    assert "PASSWORD" not in shown


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"cwd": "/"}, 403),
        ({"cwd": "../.."}, 403),
        ({"cwd": "no/such"}, 400),
        ({"cwd": "a\0b"}, 400),
        ({"command": "no-such-program"}, 400),
        ({"command": "bash", "args": ["\0"]}, 400),
        ({"env": {"A=B": "c"}}, 400),
        ({"args": "text"}, 400),
    ],
)
def test_a_terminal_that_cannot_be_is_refused(client, body, status):
    answer = client.post("/pty", json=body)

    assert answer.status_code == status, answer.text
    assert answer.json()["data"]["message"]


@pytest.mark.parametrize("size", [{"rows": 0, "cols": 5}, {"rows": 5}, {"rows": 5, "cols": 99999}])
def test_a_size_that_cannot_be_is_refused(client, pty, size):
    assert client.put(f"/pty/{pty}", json={"size": size}).status_code == 400


def refusal(url: str, **headers: str) -> int:
    with pytest.raises(InvalidStatus) as refused:
        connect(url, additional_headers=headers, open_timeout=LIMIT_S).close()
    return refused.value.response.status_code


def test_nobody_connects_without_credentials(server, pty):
    url = address(server, pty)

    assert refusal(url) == 401
    assert refusal(url, authorization="Bearer wrong") == 401
    assert refusal(address(server, pty, ticket="wrong")) == 401
    assert refusal(address(server, "pty_none")) == 401
    assert refusal(url.replace("/pty/", "/no/such/")) == 401


def test_no_other_site_and_no_other_name_connects(server, pty):
    url, known = address(server, pty), f"Bearer {server.token}"

    assert refusal(url, authorization=known, origin="https://evil.example") == 403
    assert refusal(url, authorization=known, origin="null") == 403
    assert refusal(url, authorization=known, host="evil.example") == 421


def test_a_terminal_that_is_not_there_is_not_found(server):
    known = f"Bearer {server.token}"

    assert refusal(address(server, "pty_none"), authorization=known) == 404
    assert refusal(address(server, "pty_none", directory="relative"), authorization=known) == 400


def test_a_ticket_opens_one_connection_to_its_terminal(server, client, pty):
    other = client.post("/pty", json=PLAIN).json()["id"]
    header = {"x-opencode-ticket": "1"}
    unasked = client.post(f"/pty/{pty}/connect-token")
    first, second = (
        client.post(f"/pty/{pty}/connect-token", headers=header).json() for _ in range(2)
    )

    with connect(address(server, pty, ticket=first["ticket"])) as socket:
        socket.send("echo let-in-$((1+1))\n")
        until(socket, "let-in-2")

    assert unasked.status_code == 403
    assert unasked.json()["_tag"] == "PtyForbiddenError"
    assert first["expires_in"] == 60
    assert refusal(address(server, pty, ticket=first["ticket"])) == 401
    assert refusal(address(server, other, ticket=second["ticket"])) == 401
    client.delete(f"/pty/{other}")


def test_a_connection_without_an_upgrade_is_told_so(client, pty):
    answer = client.get(f"/pty/{pty}/connect")

    assert answer.status_code == 400
    assert "WebSocket" in answer.json()["data"]["message"]


def test_there_are_only_so_many_terminals(client, tmp_path):
    where = {"directory": str(tmp_path)}
    body = {"command": "sleep", "args": [f"{NAP}.3"]}

    answers = [client.post("/pty", json=body, params=where) for _ in range(33)]
    client.post("/instance/dispose", params=where)

    assert {answer.status_code for answer in answers[:32]} == {200}
    assert answers[32].status_code == 429
    wait_for(lambda: not _sleeping(f"{NAP}.3"))


def test_the_shells_of_the_machine_are_listed(client):
    shells = client.get("/pty/shells").json()

    assert all(os.access(shell["path"], os.X_OK) for shell in shells)
    assert "bash" in {shell["name"] for shell in shells}


def _sleeping(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", word.encode()]:
            found.append(path.parent.name)
    return found
