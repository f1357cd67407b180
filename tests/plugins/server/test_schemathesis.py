"""Every route against what `/doc` says of it, with requests that hypothesis makes up.

`PEGBOARD_FUZZ_EXAMPLES=200` tries so many for each route, other ones each time: 20 minutes.
"""

import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import load_all_checks
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.wire.served import Served, served

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ_EXAMPLES", "0"))
FEW = 2
"""Well-formed requests of each route, and as many that are not, in the suite."""
WAITS = {"question.ask", "tui.control.next"}
"""They end when a person answers; a stream of events does not end at all."""
RUNS_WHAT_IT_IS_GIVEN = {"session.shell", "pty.create"}
"""No made-up text is to be a command line of this machine."""
CHANGES_THE_REST = {"config.update", "global.config.update"}
"""Tried last: with a made-up model every prompt would be refused."""
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]

pytestmark = [pytest.mark.long, pytest.mark.timeout(300 if not EXAMPLES else 7200)]


@pytest.fixture(scope="module")
def own(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("fuzzed"), model_port, "--quiet") as running:
        yield running


@pytest.fixture(scope="module")
def document(own: Served) -> dict[str, Any]:
    with own.client() as client:
        found: dict[str, Any] = client.get("/doc").json()
    for path in found["paths"].values():
        for entry in path.values():
            # A made-up folder is refused before anything else is looked at.
            entry["parameters"] = [
                each
                for each in entry["parameters"]
                if each["name"] not in {"directory", "workspace"}
            ]
    return found


def operations(document: dict[str, Any]) -> list[Any]:
    schema = schemathesis.openapi.from_dict(document)
    found = [each.ok() for each in schema.get_all_operations()]
    left_out = WAITS | RUNS_WHAT_IT_IS_GIVEN
    wanted = [each for each in found if not _is_stream(each) and _name(each) not in left_out]
    return sorted(wanted, key=lambda each: _name(each) in CHANGES_THE_REST)


def _is_stream(operation: Any) -> bool:
    answers = operation.definition.raw["responses"].values()
    return any("text/event-stream" in answer.get("content", {}) for answer in answers)


def _name(operation: Any) -> str:
    return str(operation.definition.raw["operationId"])


def test_every_answer_is_as_the_document_says(own: Served, document: dict[str, Any]) -> None:
    load_all_checks()
    broken: list[str] = []
    with own.client() as client:
        for operation in operations(document):
            known = _known(client, operation.path)
            broken += _tried(client, operation, GenerationMode.POSITIVE, known)
            broken += _tried(client, operation, GenerationMode.NEGATIVE, None)
        assert client.get("/global/health").status_code == 200

    assert broken == []


def _known(client: httpx.Client, path: str) -> dict[str, str] | None:
    """Ids that are there, made for one route, since some routes end what they are given."""
    known = {"providerID": "fake", "name": "none"}
    if "{projectID}" in path:
        known["projectID"] = client.get("/project/current").json()["id"]
    if "{ptyID}" in path:
        sleeping = {"command": "sleep", "args": ["1000"]}
        known["ptyID"] = client.post("/pty", json=sleeping).json()["id"]
    if "{sessionID}" in path:
        known["sessionID"] = client.post("/session").json()["id"]
        note = {"parts": [{"type": "text", "text": "a note"}], "noReply": True}
        noted = client.post(f"/session/{known['sessionID']}/message", json=note).json()
        known |= {"messageID": noted["info"]["id"], "partID": noted["parts"][0]["id"]}
    return {name: value for name, value in known.items() if f"{{{name}}}" in path} or None


def _tried(
    client: httpx.Client,
    operation: Any,
    mode: GenerationMode,
    known: dict[str, str] | None,
) -> list[str]:
    """What was wrong with the answers of a route."""

    @given(case=operation.as_strategy(generation_mode=mode, path_parameters=known))
    @settings(
        max_examples=EXAMPLES or FEW,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        answer = case.call(base_url=str(client.base_url), headers=dict(client.headers), timeout=60)
        assert answer.status_code < 500 or answer.status_code == 501, answer.text[:300]
        case.validate_response(answer, checks=CHECKS)

    try:
        ask()
    except ExceptionGroup as group:
        return [f"{operation.label}: {each}" for each in group.exceptions]
    except (AssertionError, Unsatisfiable) as error:
        return [f"{operation.label}: {error}"] if isinstance(error, AssertionError) else []
    return []


def test_nobody_gets_an_answer_without_credentials(own: Served, document: dict[str, Any]) -> None:
    answers = set()
    with httpx.Client(base_url=own.url) as stranger:
        for path, entries in document["paths"].items():
            for method in entries:
                answers.add((stranger.request(method, path).status_code, path))

    assert {status for status, _ in answers} == {401}
