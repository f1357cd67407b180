"""Who is let in, from where, and with how much."""

import asyncio
import json
import socket
import stat
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException

from pegboard_plugins.server import guard
from support.processes import forks
from support.wire.served import Served, served


def port_of(server: Served) -> int:
    return int(server.url.rpartition(":")[2])


def spoken(server: Served, request: bytes, limit_s: float = 30) -> bytes:
    """What the server says to these bytes, until it closes or goes quiet."""
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=limit_s) as connection:
        connection.sendall(request)
        heard = b""
        try:
            while piece := connection.recv(65536):
                heard += piece
                if b"\r\n\r\n" in heard and b"content-length: 0" in heard:
                    break
        except (TimeoutError, ConnectionResetError):
            pass
        return heard


def raw(server: Served, *lines: str, body: bytes = b"", limit_s: float = 30) -> bytes:
    host = f"host: 127.0.0.1:{port_of(server)}"
    auth = f"authorization: Bearer {server.token}"
    named = any(line.lower().startswith("host") for line in lines)
    head = [lines[0], *([] if named else [host]), auth, "connection: close", *lines[1:]]
    return spoken(server, "\r\n".join([*head, "", ""]).encode("latin-1") + body, limit_s)


@pytest.mark.parametrize("path", ["/session", "/no/such/route", "/global/health", "/doc", "/event"])
def test_nobody_without_credentials_learns_which_routes_there_are(server, path):
    answers = [
        httpx.get(server.url + path),
        httpx.get(server.url + path, headers={"authorization": "Bearer wrong"}),
        httpx.get(server.url + path, auth=("opencode", "wrong")),
        httpx.get(f"{server.url}{path}?token={server.token}"),
    ]

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].headers["www-authenticate"] == 'Basic realm="Secure Area"'


def test_the_token_is_a_password_too(server):
    assert httpx.get(server.url + "/path", auth=("opencode", server.token)).status_code == 200


def test_a_thousand_wrong_tokens_do_not_fill_the_log(server):
    with httpx.Client(base_url=server.url, headers={"authorization": "Bearer no"}) as stranger:
        for _ in range(1000):
            assert stranger.get("/session").status_code == 401

    lines = (server.places / "server.log").read_text().splitlines()
    assert sum("refused" in line for line in lines) < 10


def test_the_runtime_file_is_the_owner_s_alone(server):
    facts = json.loads(server.runtime_file.read_text())

    assert stat.S_IMODE(server.runtime_file.stat().st_mode) == 0o600
    assert facts == {
        "url": server.url,
        "pid": server.process.pid,
        "directory": str(server.directory),
        "token": server.token,
    }


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1",
        "localhost:1",
        "[::ffff:127.0.0.1]",
        "",
    ],
)
def test_another_name_of_the_server_is_refused(server, host):
    answer = raw(server, "GET /session HTTP/1.1", f"Host: {host}")

    assert answer.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


def test_two_names_are_refused(server):
    own = f"host: 127.0.0.1:{port_of(server)}"

    assert raw(server, "GET /session HTTP/1.1", own, own).startswith(b"HTTP/1.1 421")


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://localhost:3000", "http://127.0.0.1:1"]
)
def test_other_sites_are_refused_and_told_nothing(server, client, origin):
    answers = [
        client.get("/session", headers={"origin": origin}),
        client.post("/session", headers={"origin": origin}),
        client.options("/session", headers={"origin": origin}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert not any("access-control" in name for each in answers for name in each.headers)


@pytest.mark.parametrize(
    ("site", "status"),
    [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)],
)
def test_a_page_elsewhere_cannot_show_what_the_server_has(client, site, status):
    answer = client.get("/path", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"})

    assert answer.status_code == status


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_a_form_can_send_is_refused(client, kind):
    answer = client.post("/session", content=b'{"title":"x"}', headers={"content-type": kind})

    assert answer.status_code == 415


def test_an_empty_body_may_call_itself_json(client):
    answer = client.post("/session", headers={"content-type": "application/json"})

    assert answer.status_code == 200


def test_a_body_that_is_announced_too_large_is_refused_unread(server):
    answer = raw(
        server,
        "POST /session HTTP/1.1",
        "content-type: application/json",
        "content-length: 1000000000",
    )

    assert answer.startswith(b"HTTP/1.1 413")


def test_a_body_without_an_end_is_refused_at_its_limit(server, client):
    def forever():
        for _ in range(80):
            yield b" " * (1 << 20)

    try:
        status = client.post(
            "/session", content=forever(), headers={"content-type": "application/json"}
        ).status_code
    except httpx.TransportError:  # the server has closed while more was sent
        status = 413

    assert status == 413
    assert client.get("/global/health").status_code == 200


@pytest.mark.parametrize(
    "lines",
    [
        ["GET /" + "x" * 1_000_000 + " HTTP/1.1"],
        ["GET /path HTTP/1.1", *(f"x-{at}: y" for at in range(100_000))],
        ["POST /session HTTP/1.1", "content-length: 2", "transfer-encoding: chunked"],
        ["POST /session HTTP/1.1", "content-length: two"],
        ["POST /session HTTP/1.1", "content-length: -1"],
        ["NONSENSE"],
    ],
    ids=["long path", "many headers", "two lengths", "no number", "negative", "no HTTP"],
)
def test_a_head_that_cannot_be_is_refused(server, client, lines):
    answer = raw(server, *lines)

    assert answer[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 431", b""}
    assert client.get("/global/health").status_code == 200


def test_a_request_is_not_split_into_two(server):
    body = b"0\r\n\r\nGET /session HTTP/1.1\r\nhost: x\r\n\r\n"
    answer = raw(
        server,
        "POST /session HTTP/1.1",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "transfer-encoding: chunked",
        body=body,
    )

    assert answer.count(b"HTTP/1.1") <= 1
    assert not answer.startswith(b"HTTP/1.1 200")


BODIES = {
    "broken": b"{",
    "not a number": b'{"title": NaN}',
    "deep": b'{"metadata":' * 100_000,
    "deep list": b'{"metadata":{"a":' + b"[" * 100_000,
    "surrogate": b'{"title": "\\ud800"}',
    "not UTF-8": b'{"title": "\xff"}',
    "wrong type": b'{"title": 5}',
    "no object": b"[]",
    "a key twice": b'{"title": "a", "title": "b"}',
    "a key twice in a long one": b'{"metadata": {"a": 1, "a": "' + b"x" * 100_000 + b'"}}',
    "long number": b'{"title": 1' + b"0" * 100_000 + b"}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_a_body_that_is_wrong_is_named_as_such(client, body):
    answer = client.post("/session", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 400
    assert answer.json()["name"] == "BadRequest"
    assert "Traceback" not in answer.text


def test_a_wrong_field_is_named_with_its_place(client):
    session = client.post("/session").json()["id"]

    answer = client.post(f"/session/{session}/message", json={"parts": [{"type": "text"}]})

    assert answer.status_code == 400
    assert "parts" in answer.json()["data"]["message"]


@pytest.mark.parametrize(
    "session_id",
    ["ses_nothing", "..", "%2e%2e", "1' OR '1'='1", "msg_x", "x" * 5000, "ses_%00", "ses_\u00e9"],
)
def test_an_id_that_nothing_has_is_not_found(client, session_id):
    assert client.get(f"/session/{session_id}").status_code in {404, 307}


def test_a_session_of_another_project_is_not_found(server, client, tmp_path):
    session = client.post("/session").json()["id"]

    elsewhere = client.get(f"/session/{session}", params={"directory": str(tmp_path)})

    assert elsewhere.status_code == 404


@pytest.mark.parametrize("path", ["relative", "/no/such/folder", "/etc/passwd", "/\0"])
def test_a_directory_that_cannot_be_is_refused(client, path):
    assert client.get("/path", params={"directory": path}).status_code == 400


def test_a_password_of_the_environment_opens_the_server(model_port, tmp_path):
    env = {"OPENCODE_SERVER_PASSWORD": "a pass:word", "OPENCODE_SERVER_USERNAME": "ada"}
    with served(tmp_path, model_port, env=env) as server:
        by_password = httpx.get(server.url + "/path", auth=("ada", "a pass:word"))
        other_user = httpx.get(server.url + "/path", auth=("eve", "a pass:word"))

    assert (by_password.status_code, other_user.status_code) == (200, 401)


def test_a_site_that_is_named_may_use_the_server(model_port, tmp_path):
    with served(tmp_path, model_port, "--cors=https://mine.example") as server:
        headers = {"origin": "https://mine.example"}
        asked = httpx.options(server.url + "/session", headers=headers)
        with server.client(headers=headers) as client:
            answer = client.get("/session")
            with client.stream("GET", "/event") as stream:
                vary = stream.headers["vary"]

    assert (asked.status_code, answer.status_code) == (204, 200)
    allowed = asked.headers["access-control-allow-headers"].split(", ")
    assert {"authorization", "content-type", "last-event-id", "x-opencode-ticket"} <= set(allowed)
    assert answer.headers["access-control-allow-origin"] == "https://mine.example"
    assert answer.headers["vary"] == "Origin"
    assert vary == "accept-encoding, Origin"


@pytest.mark.parametrize("options", [["--hostname=0.0.0.0"], ["--hostname=0.0.0.0", "--no-auth"]])
def test_other_machines_are_served_with_a_password_only(server, options):
    command = [forks.PEGBOARD, "serve", "--port=0", *options]

    done = forks.run(command, cwd=server.directory, env=server.env)

    assert done.returncode == 2
    assert "not this machine alone" in done.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--port=65536"], "0<=x<=65535"),
        (["--hostname="], "--hostname is empty"),
        (["--hostname=192.0.2.1"], "--hostname is an address of this machine"),
        (["--cors=*"], "--cors *: name each site"),
        (["--cors=null"], "name each site"),
        (["--cors=https://a.example/"], "without a path"),
    ],
)
def test_an_option_that_cannot_be_is_named(server, options, why):
    command = [forks.PEGBOARD, "serve", "--port=0", *options]
    env = {**server.env, "PEGBOARD_SERVER_PASSWORD": "x"}

    done = forks.run(command, cwd=server.directory, env=env)

    assert done.returncode == 2
    assert why in done.stderr


def test_a_port_that_is_taken_is_named(server):
    command = [forks.PEGBOARD, "serve", f"--port={port_of(server)}"]

    done = forks.run(command, cwd=server.directory, env=server.env)

    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port_of(server)}" in done.stderr
    assert server.runtime_file.exists()


def test_an_open_server_says_so_and_lets_in_this_machine(model_port, tmp_path):
    with served(tmp_path, model_port, "--no-auth") as server:
        answer = httpx.get(server.url + "/global/health")

    assert answer.json()["healthy"] is True
    assert "every program on this machine" in (tmp_path / "server.log").read_text()


@pytest.mark.parametrize(
    "credentials", ["Basic \xff\xfe", "Bearer \xff", "Basic", "Basic /w==", "\xff", "Digest x"]
)
def test_credentials_that_are_none_are_refused(server, credentials):
    port = port_of(server)
    head = f"GET /session HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: {credentials}"

    answer = spoken(server, f"{head}\r\nconnection: close\r\n\r\n".encode("latin-1"))

    assert answer.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("target", ["http://evil.example/session", "*", "http://{own}/session"])
def test_an_address_in_place_of_a_path_is_refused(server, target):
    target = target.replace("{own}", f"127.0.0.1:{port_of(server)}")

    assert raw(server, f"GET {target} HTTP/1.1").startswith(b"HTTP/1.1 400")


def test_what_is_no_http_does_not_fill_the_log(server):
    log = server.places / "server.log"
    before = log.read_text().count("Invalid HTTP")
    for _ in range(100):
        assert raw(server, "NONSENSE").startswith(b"HTTP/1.1 400")

    assert log.read_text().count("Invalid HTTP") == before


def test_a_slash_too_many_is_no_route(client):
    answer = client.get("/session/")

    assert (answer.status_code, answer.json()["name"]) == (404, "NotFoundError")


async def test_a_body_that_trickles_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(guard, "BODY_WITHIN_S", 0.2)
    body = guard._Body(trickle, 1 << 20)

    with pytest.raises(HTTPException, match="did not come"):
        await asyncio.wait_for(whole(body), 30)


async def whole(body: guard._Body) -> None:
    while (await body.receive())["more_body"]:
        pass


async def trickle() -> dict[str, Any]:
    await asyncio.sleep(0.01)
    return {"type": "http.request", "body": b" ", "more_body": True}


def test_a_switch_for_no_password_does_not_take_a_password_away(model_port, tmp_path):
    env = {"PEGBOARD_SERVER_PASSWORD": "pass \udcff word"}
    with served(tmp_path, model_port, "--no-auth", env=env) as server:
        by_password = httpx.BasicAuth("opencode", b"pass \xff word")
        answers = [
            httpx.get(server.url + "/path"),
            httpx.get(server.url + "/path", auth=by_password),
        ]

    assert [answer.status_code for answer in answers] == [401, 200]
    assert "every program on this machine" not in (tmp_path / "server.log").read_text()
