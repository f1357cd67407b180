"""Every answer to a GET is as the protocol's own document says it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator, ValidationError, validators

from support.wire.served import Served

pytestmark = pytest.mark.timeout(240)
STREAMS = {"/event", "/global/event", "/tui/control/next"}
"""What is answered when something happens."""
OTHER_FAMILIES = ("/api/", "/sync/", "/tui/", "/plugin/")
METHODS = {"get", "post", "put", "patch", "delete"}
TEXTS = {"/vcs/diff/raw"}
NO_JSON = {"/pty/{ptyID}/connect", "/doc"} | TEXTS
OLDER = {"keybinds", "theme", "tui", "before", "after", "delta"}
"""What only clients of the older generation read, and the newer document does not list."""
QUERIES = {
    "/find": {"pattern": "def add"},
    "/find/file": {"query": "calc"},
    "/find/symbol": {"query": "add"},
    "/file": {"path": "."},
    "/file/content": {"path": "calc.py"},
    "/experimental/tool": {"provider": "fake", "model": "fake-model"},
    "/vcs/diff": {"mode": "git"},
}
LEAST = 40


def test_every_answer_is_as_the_protocol_s_document_says(document: Path, server: Served) -> None:
    known = json.loads(document.read_text())
    with server.client() as client:
        ids = _worked_in(client)
        common = [
            path
            for path in _paths(client.get("/doc").json())
            if "get" in known["paths"].get(path, {})
        ]
        wrong = {path: found for path in common if (found := _wrong(client, known, path, ids))}
        client.delete(f"/pty/{ids['ptyID']}")

    assert wrong == {}
    assert len(common) >= LEAST


def test_the_list_of_operations_is_that_of_the_protocol_s_document(document: Path) -> None:
    known = json.loads(document.read_text())["paths"]
    operations = {
        f"{method.upper()} {path} {entry['operationId']}"
        for path, entries in known.items()
        for method, entry in entries.items()
        if method in METHODS
    }

    listed = Path(__file__).parents[1] / "data/opencode_operations.txt"
    assert set(listed.read_text().splitlines()) == operations


def test_every_route_of_the_protocol_is_answered_in_json(document: Path, server: Served) -> None:
    known = json.loads(document.read_text())["paths"]
    wrong = []
    with server.client() as client:
        for path, entries in known.items():
            for method in set(entries) & METHODS if path not in STREAMS | TEXTS else ():
                answer = client.request(method, re.sub(r"\{[^}]+\}", "none", path))
                if not _is_told(answer):
                    wrong.append((method, path, answer.status_code, answer.text[:200]))

    assert wrong == []


def _is_told(answer: httpx.Response) -> bool:
    """Whether a client can make something of it."""
    if answer.status_code == httpx.codes.NO_CONTENT:
        return True
    is_json = answer.headers["content-type"] == "application/json"
    if not is_json or answer.status_code < 400:
        return is_json
    known = answer.status_code < 500 or answer.status_code == 501
    return known and bool(answer.json()["name"] and answer.json()["data"]["message"])


def _paths(document: dict[str, Any]) -> Iterator[str]:
    for path, entries in document["paths"].items():
        if (
            "get" in entries
            and path not in STREAMS | NO_JSON
            and not path.startswith(OTHER_FAMILIES)
        ):
            yield path


def _worked_in(client: httpx.Client) -> dict[str, str]:
    """The ids of a session in which something was done."""
    session = client.post("/session", json={"title": "worked in"}).json()["id"]
    text = "do;;%think hm;;%todo one|two;;%write made.txt hello;;%bash echo free"
    prompt = {"parts": [{"type": "text", "text": text}]}
    turn = client.post(f"/session/{session}/message", json=prompt).json()
    client.post("/session", json={"parentID": session})
    return {
        "sessionID": session,
        "messageID": turn["info"]["id"],
        "projectID": client.get("/project/current").json()["id"],
        "ptyID": client.post("/pty", json={"command": "sleep", "args": ["1000"]}).json()["id"],
    }


def _wrong(
    client: httpx.Client, known: dict[str, Any], path: str, ids: dict[str, str]
) -> list[str]:
    answer = client.get(path.format(**ids), params=QUERIES.get(path))
    if answer.status_code != 200:
        return [f"{answer.status_code} {answer.text[:200]}"]
    said = known["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    schema = {**said, "components": known["components"]}
    return [_told(error) for error in _Validator(schema).iter_errors(answer.json())]


def _told(error: ValidationError) -> str:
    deepest = min(error.context or [error], key=lambda each: -len(each.absolute_path))
    return f"{deepest.json_path}: {deepest.message[:200]}"


def _only_older(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """The check of further properties, less those that older clients need."""
    if isinstance(instance, dict) and allowed is False:
        has_id = {"content", "priority"} <= instance.keys()
        kept = {
            name: value
            for name, value in instance.items()
            if name not in OLDER or name in schema.get("properties", {})
        }
        if has_id:
            kept.pop("id", None)
        instance = kept
    yield from Draft202012Validator.VALIDATORS["additionalProperties"](
        validator, allowed, instance, schema
    )


_Validator = validators.extend(  # type: ignore[no-untyped-call] # the stubs lack its types
    Draft202012Validator, {"additionalProperties": _only_older}
)
