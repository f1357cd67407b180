"""Pages in a browser: how they are let in, and how little they may do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers

from pegboard_plugins.server.browserdoor import (
    KEY_WITHIN_S,
    MOST_KEYS,
    PROOF_HEADER,
    SESSION_WITHIN_S,
    BrowserDoor,
)
from support.wire.served import Served

SAME = {"sec-fetch-site": "same-origin"}


def port_of(server: Served) -> int:
    return int(server.url.rpartition(":")[2])


@contextmanager
def entered(server: Served, *, approve: bool = False) -> Iterator[httpx.Client]:
    """A client that has what a page of the server has, and nothing else."""
    with server.client() as client:
        key = client.post("/pegboard/browser/key", json={"approve": approve}).json()["key"]
    site = {"origin": server.url}
    with httpx.Client(base_url=server.url, headers=site, timeout=60) as page:
        opened = page.post("/pegboard/browser/session", json={"key": key})
        assert opened.status_code == 200, opened.text
        page.headers[PROOF_HEADER] = opened.json()["proof"]
        yield page


def test_the_cookie_is_for_no_script_and_no_other_site(server):
    with server.client() as client:
        key = client.post("/pegboard/browser/key", json={}).json()["key"]

    answer = httpx.post(
        f"{server.url}/pegboard/browser/session", json={"key": key}, headers={"origin": server.url}
    )

    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"pegboard_{port_of(server)}=")
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert answer.headers["cache-control"] == "no-store"


def test_a_key_opens_one_session(server):
    with server.client() as client:
        key = client.post("/pegboard/browser/key", json={}).json()["key"]
    site = {"origin": server.url}
    answers = [
        httpx.post(f"{server.url}/pegboard/browser/session", json={"key": each}, headers=site)
        for each in (key, key, "", "made-up")
    ]

    assert [each.status_code for each in answers] == [200, 401, 401, 401]


def test_only_a_client_with_the_token_gets_a_key(server):
    with entered(server) as page:
        answers = [
            httpx.post(f"{server.url}/pegboard/browser/key", json={}),
            page.post("/pegboard/browser/key", json={"approve": True}),
        ]

    assert [each.status_code for each in answers] == [401, 401]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"host": "evil.example"},
    ],
)
def test_a_stolen_cookie_with_its_proof_opens_nothing_from_elsewhere(server, headers):
    with entered(server) as page:
        del page.headers["origin"]
        answer = page.get("/session", headers=headers)
        own = page.get("/session", headers=SAME)

    assert answer.status_code in (401, 403, 421)
    assert own.status_code == 200


def test_neither_half_of_a_session_opens_anything_alone(server):
    with entered(server) as page:
        proof = page.headers.pop(PROOF_HEADER)
        cookie_alone = page.get("/session")
        page.cookies.clear()
        page.headers[PROOF_HEADER] = proof
        proof_alone = page.get("/session")

    assert (cookie_alone.status_code, proof_alone.status_code) == (401, 401)


def test_another_name_of_the_server_is_another_site(server):
    with entered(server) as page:
        answer = page.get("/session", headers={"origin": f"http://localhost:{port_of(server)}"})

    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/config"),
        ("PATCH", "/config"),
        ("GET", "/file/content?path=README.md"),
        ("PUT", "/auth/openai"),
        ("POST", "/pty"),
        ("POST", "/session/ses_x/shell"),
        ("POST", "/session/ses_x/command"),
        ("DELETE", "/session/ses_x"),
        ("PATCH", "/session/ses_x"),
        ("POST", "/mcp"),
        ("POST", "/instance/dispose"),
    ],
)
def test_a_page_reaches_no_settings_files_keys_or_terminals(server, method, path):
    with entered(server, approve=True) as page:
        body: Any = None if method in ("GET", "DELETE") else {}
        answer = page.request(method, path, json=body)

    assert answer.status_code == 401


@pytest.mark.parametrize(
    "extra", [{"permission": []}, {"permission": [{}]}, {"metadata": {"a": 1}}]
)
def test_a_page_gives_a_session_no_rules_unless_it_may_approve(server, extra):
    rule = {"permission": "bash", "pattern": "*", "action": "allow"}
    body = {"permission": [rule]} if extra == {"permission": [{}]} else extra
    with entered(server) as page, entered(server, approve=True) as other:
        answers = [each.post("/session", json=body) for each in (page, other)]

    assert answers[0].status_code == (200 if body == {"permission": []} else 403)
    assert answers[1].status_code == 200


def test_a_page_allows_for_good_only_if_it_may_approve(server):
    reply = {"reply": "always", "scope": "user"}
    unknown = f"/permission/per_{'0' * 26}/reply"
    with entered(server) as page, entered(server, approve=True) as other:
        refused, passed = page.post(unknown, json=reply), other.post(unknown, json=reply)

    assert (refused.status_code, "--allow-approve" in refused.text) == (403, True)
    assert passed.status_code == 404


def test_the_page_of_a_server_of_another_port_is_refused(server):
    with entered(server) as page:
        answer = page.get("/session", headers={"origin": f"http://127.0.0.1:{port_of(server) - 1}"})

    assert answer.status_code == 403


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def headers_of(door: BrowserDoor, cookie: str, proof: str) -> Headers:
    return Headers({"cookie": f"other=1; {door.cookie}={cookie}; bad;", PROOF_HEADER: proof})


def test_keys_and_sessions_end(server):
    clock = _Clock()
    door = BrowserDoor(1, clock)
    late = door.new_key()
    clock.now += KEY_WITHIN_S
    assert door.open(late) is None

    opened = door.open(door.new_key())
    assert opened is not None
    cookie, session = opened
    headers = headers_of(door, cookie, session.proof)
    assert door.session("GET", "/session", headers) == session
    clock.now += SESSION_WITHIN_S
    assert door.session("GET", "/session", headers) is None


def test_many_keys_end_the_oldest_ones():
    door = BrowserDoor()
    keys = [door.new_key() for _ in range(MOST_KEYS + 1)]

    assert door.open(keys[0]) is None
    assert door.open(keys[1]) is not None
