"""The operations of the protocol: each is answered, or the docs name it as one that is not."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from jsonschema import Draft202012Validator

from pegboard_plugins.server import factory, remote
from pegboard_plugins.server.unsupported import unsupported_routes

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reference/server.md").read_text()
PROTOCOL = (ROOT / "tests/data/opencode_operations.txt").read_text().splitlines()
"""Method, path and name of each operation of OpenCode 1.18.33."""
NOT_HERE = "/api/"
OWN = re.compile(
    r"/doc|/pegboard/.*|/session/\{sessionID\}/(question|message/\{messageID\}/withdraw)"
)


@pytest.fixture(scope="module")
def document(server) -> Any:
    with server.client() as client:
        return client.get("/doc").json()


def documented(document: Any) -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path): entry
        for path, entries in document["paths"].items()
        for method, entry in entries.items()
        if not path.startswith("/plugin/")
    }


def protocol() -> dict[tuple[str, str], str]:
    rows = (row.split(" ") for row in PROTOCOL)
    return {(method, path): name for method, path, name in rows}


def test_each_operation_of_the_protocol_is_a_route_or_named_as_missing(document) -> None:
    missing = protocol().keys() - documented(document).keys()

    assert {path for _, path in missing if not path.startswith(NOT_HERE)} == set()
    assert f"`{NOT_HERE}*`" in PAGE


def test_each_route_that_is_not_of_the_protocol_is_one_of_pegboards_own(document) -> None:
    own = documented(document).keys() - protocol().keys()

    assert [path for _, path in own if not OWN.fullmatch(path)] == []


def test_each_operation_has_the_name_that_the_protocol_gives_it(document) -> None:
    known = protocol()
    found = {key: entry["operationId"] for key, entry in documented(document).items()}

    assert {key: name for key, name in found.items() if known.get(key, name) != name} == {}


def test_each_operation_that_answers_501_is_in_the_docs(document) -> None:
    absent = {
        path for (_, path), entry in documented(document).items() if "501" in entry["responses"]
    }

    assert [path for path in sorted(absent) if f"`{path}`" not in PAGE] == []


def test_the_document_has_each_route_once_with_all_that_its_path_names(document) -> None:
    routers = [each.routes for each in factory._RESOURCES]
    routers += [remote.order_routes(), unsupported_routes()]
    routes = {
        (method, route.path_format)
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }

    found = documented(document)

    assert found.keys() == routes
    for (_, path), entry in found.items():
        names = [(each["in"], each["name"]) for each in entry["parameters"]]
        assert len(names) == len(set(names)), path
        assert {name for place, name in names if place == "path"} == set(
            re.findall(r"\{(\w+)\}", path)
        )


ANSWERS = (
    "/vcs",
    "/vcs/status",
    "/vcs/diff?mode=git",
    "/session",
    "/session?path=",
    "/experimental/session",
    "/experimental/console/orgs",
    "/experimental/workspace/adapter",
    "/project/current",
)


@pytest.mark.parametrize("address", ANSWERS)
def test_an_answer_is_as_the_document_says(server, client, document, address) -> None:
    (server.directory / "changed.txt").write_text("one\n")
    client.post("/session", json={"title": "listed"})
    path = address.partition("?")[0]
    answer = client.get(address)

    (content,) = document["paths"][path]["get"]["responses"]["200"]["content"].values()
    schema = {**content["schema"], "components": document["components"]}
    closed = _closed(schema)
    assert [
        error.message for error in Draft202012Validator(closed).iter_errors(answer.json())
    ] == []


def _closed(schema: Any) -> Any:
    """The schema, in which objects have the properties that it names and no others."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(each) for name, each in schema.items()}
    has_all = isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema
    return {**closed, "additionalProperties": False} if has_all else closed


def test_an_agent_has_no_fields_but_those_of_the_protocol(client: httpx.Client) -> None:
    found = {name for agent in client.get("/agent").json() for name in agent}

    of_the_protocol = {
        *("name", "description", "mode", "native", "hidden", "topP", "temperature", "color"),
        *("permission", "model", "variant", "prompt", "options", "steps"),
    }
    assert found - of_the_protocol == set()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/agent", {"GET"}),
        ("PUT", "/session", {"GET", "POST"}),
        ("GET", "/experimental/worktree/reset", {"POST"}),
        ("POST", "/session/ses_x/message/msg_x", {"GET", "DELETE"}),
    ],
)
def test_a_method_that_a_path_has_not_is_answered_with_those_that_it_has(
    client: httpx.Client, method: str, path: str, allowed: set[str]
) -> None:
    answer = client.request(method, path)

    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize(
    ("method", "path"),
    [
        (method, path)
        for row in PROTOCOL
        for method, path, _ in [row.split(" ")]
        if path.startswith(("/sync/", "/vcs/apply", "/global/upgrade", "/experimental/project/"))
    ],
)
def test_an_operation_that_is_not_supported_says_what_to_do_instead(
    client: httpx.Client, method: str, path: str
) -> None:
    answer = client.request(method, re.sub(r"\{\w+\}", "x", path), json={})

    assert answer.status_code == 501
    assert answer.json()["name"] == "UnsupportedError"
    assert ": " in answer.json()["data"]["message"]
