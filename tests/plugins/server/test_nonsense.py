"""Nonsense for every route: it is refused in the protocol's shape, and never a crash."""

from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.long
BODIES: tuple[Any, ...] = (
    None,
    {},
    [],
    5,
    "text",
    {"parts": None},
    {"parts": [None]},
    {"title": {"a": 1}, "name": 1, "reply": "maybe", "command": [], "answers": [[1]]},
    {"type": "api"},
    {"messageID": "../x", "parts": [], "parentID": "\x00", "time": {"archived": "soon"}},
)
QUERIES: tuple[dict[str, str], ...] = (
    {},
    {"start": "1e400"},
    {"start": "nan"},
    {"start": "-5"},
    {"search": "\x00%_\\'\""},
    {"path": "a" * 4000},
    {"query": "\x00"},
    {"pattern": "\x00"},
    {"limit": "abc", "start": "abc", "roots": "maybe", "query": "\x00", "path": "\x00"},
    {"limit": "-1", "start": "1e400", "context": "x", "pattern": "(", "path": "/", "query": ""},
    {"limit": "99999999999999999999", "start": "nan", "query": "\ud7ff" * 10, "path": "a" * 4000},
    {"messageID": "'", "search": "%_\\'\"", "provider": "", "model": "/", "mode": "x"},
)
STREAMS = {"/event", "/global/event", "/pegboard/fleet/event", "/tui/control/next"}
ENDS_WORK = {"/global/dispose", "/instance/dispose"}


def refused(answer: httpx.Response) -> bool:
    """Whether this is an answer that a client can make something of."""
    if answer.status_code < 400:
        return True
    said = answer.json()
    known = answer.status_code < 500 or answer.status_code == 501
    return known and bool(said["name"]) and bool(said["data"]["message"])


@pytest.fixture
def operations(client: httpx.Client) -> list[tuple[str, str]]:
    document = client.get("/doc").json()["paths"]
    found = [(method.upper(), path) for path, each in document.items() for method in each]
    return [each for each in found if each[1] not in STREAMS | ENDS_WORK]


@pytest.mark.parametrize("value", ["nonsense", "ses_nothing", "msg_0", "%00", "ä/ö"])
def test_no_route_crashes_on_ids_bodies_or_queries(client, operations, value):
    broken = []
    for method, path in operations:
        steps = [value if step.startswith("{") else step for step in path.split("/")]
        for body in BODIES if method not in {"GET", "DELETE"} else (None,):
            answer = client.request(method, "/".join(steps), json=body)
            if not refused(answer):
                broken.append((method, path, body, answer.status_code, answer.text[:200]))

    assert broken == []


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_no_route_crashes_on_its_query(client, operations, query):
    session = client.post("/session").json()["id"]
    broken = []
    for path in [path for method, path in operations if method == "GET"]:
        answer = client.get(path.replace("{sessionID}", session), params=query)
        if not refused(answer):
            broken.append((path, answer.status_code, answer.text[:200]))

    assert broken == []


def test_no_body_crashes_a_session(client, operations):
    session = client.post("/session").json()["id"]
    broken = []
    for method, path in operations:
        if "{sessionID}" not in path or method not in {"POST", "PATCH"}:
            continue
        for body in BODIES:
            answer = client.request(method, path.replace("{sessionID}", session), json=body)
            if not refused(answer):
                broken.append((method, path, body, answer.status_code, answer.text[:200]))

    assert broken == []
