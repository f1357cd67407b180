"""What the first request of a session costs in bytes, as they go over the wire."""

import json
import os
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from pegboard import App
from pegboard.schema.model import ModelApi
from pegboard_plugins.agents import Family, family
from support.models import model_server as ms
from support.models.model_server import ModelServer
from support.sessions.long_session import Body, asked, options
from support.sessions.session_views import MODEL
from support.tools.worktrees import git

FIRST_BYTES = 10 << 10
"""Without instruction files, whatever the name of the model says."""
FAMILIES: dict[Family, tuple[str, ...]] = {
    "gpt": ("gpt-5.2-codex", "gpt-4.1-mini-2025-04-14", "o3-2025-04-16"),
    "claude": ("claude-sonnet-4-5-20250929", "claude-opus-4-5"),
    "gemini": ("gemini-3-pro-preview", "gemini-2.5-flash"),
    "open_weights": ("kimi-k2-instruct", "qwen3-coder-480b-a35b-instruct"),
    "small": ("qwen3:4b", "llama-3.2-3b-instruct"),
}
"""Long names of models that are in use, by family: the request has the name twice."""


async def first_request(folder: Path, model: str) -> tuple[Body, int]:
    """The first request of a session, and its bytes with a short path and a short platform."""
    project = folder / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    git(project, "init", "-q")
    async with ModelServer(ms.by_step(ms.say("Hi."))) as server:
        given = options(folder, server.url)
        provider = {"options": {"baseURL": server.url, "apiKey": "key"}, "models": {model: {}}}
        config = {"model": f"fake/{model}", "provider": {"fake": provider}}
        async with App.open(project, replace(given, config=config)) as app:
            session = await app.create_session()
            await app.prompt(session.id, "Hello")
        request = asked(server)[0]
    body = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    body = body.replace(str(project), "/project").replace(os.uname().release, "6.1.0-13-amd64")
    return request, len(body.encode())


async def test_the_first_request_is_short(tmp_path: Path) -> None:
    request, size = await first_request(tmp_path, "m")

    assert size <= FIRST_BYTES
    names = [tool["function"]["name"] for tool in request["tools"]]
    assert {"bash", "edit", "glob", "grep", "read", "task", "todowrite", "write"} <= {*names}


@pytest.mark.parametrize("name", [name for names in FAMILIES.values() for name in names])
async def test_the_first_request_of_every_family_is_short(tmp_path: Path, name: str) -> None:
    _, size = await first_request(tmp_path, name)

    assert size <= FIRST_BYTES


def test_every_family_is_measured() -> None:
    assert {*FAMILIES} == {*get_args(Family)}
    for known, names in FAMILIES.items():
        apis = [ModelApi(id=name) for name in names]
        assert {family(replace(MODEL, api=api)) for api in apis} == {known}


async def test_a_schema_has_nothing_that_a_model_takes_for_granted(tmp_path: Path) -> None:
    request, _ = await first_request(tmp_path, "m")

    schemas = [tool["function"]["parameters"] for tool in request["tools"]]
    fields = [each for schema in schemas for each in schema["properties"].values()]
    assert all("additionalProperties" not in schema for schema in schemas)
    defaults = [(each["default"], each.get("enum", [])) for each in fields if "default" in each]
    assert [each for each, choices in defaults if not each or each in choices[:1]] == []
    assert any(each.get("default") for each in fields)
