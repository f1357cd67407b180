"""The first programs that people write, each run as they write it."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import pegboard
from docs.pages import blocks
from support.models.model_server import Answer, ModelServer, call, in_order, say

STORIES = {each.file: each for each in blocks("py") if each.page.name == "hello.md"}
MODEL = "openai/gpt-6-luna"


def environment(folder: Path, url: str) -> Mapping[str, str]:
    """The environment of a program whose model is the server at this URL."""
    places = {
        f"PEGBOARD_{name}_DIR": str(folder / name.lower()) for name in ("DATA", "STATE", "CACHE")
    }
    config = folder / "config"
    config.mkdir()
    (config / "pegboard.toml").write_text(
        f"""model = "{MODEL}"
[plugins.title]
enabled = false
[provider.openai.options]
baseURL = "{url}"
apiKey = "k"
"""
    )
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "PEGBOARD_CONFIG_DIR": str(config),
        **places,
    }


async def outcome(folder: Path, name: str, *answers: Answer) -> tuple[str, ModelServer]:
    """What the program of the page prints, and the server that it asked."""
    project = folder / "project"
    project.mkdir()
    for each in STORIES.values():
        (project / each.file).parent.mkdir(parents=True, exist_ok=True)
        (project / each.file).write_text(each.text)
    async with ModelServer(in_order(*answers)) as server:
        done = await asyncio.create_subprocess_exec(
            sys.executable,
            name,
            cwd=project,
            env=environment(folder, server.url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await done.communicate()
    assert done.returncode == 0, err.decode()
    return out.decode(), server


async def test_a_script_with_a_tool(tmp_path: Path) -> None:
    said, server = await outcome(
        tmp_path, "area.py", call("area", {"width": 3, "height": 4}), say("It is 12.")
    )

    assert said == "It is 12.\n"
    first, second = server.requests
    assert [each["function"]["name"] for each in first["tools"]] == ["area"]
    assert second["messages"][-1]["content"] == "12.0"


async def test_a_script_with_a_value(tmp_path: Path) -> None:
    said, server = await outcome(tmp_path, "ship.py", say('{"name": "Fram", "year": 1892}'))

    assert said == "Fram was built in 1892\n"
    [request] = server.requests
    form = request["response_format"]
    assert (form["type"], set(form["json_schema"]["schema"]["properties"])) == (
        "json_schema",
        {"name", "year"},
    )
    assert "tools" not in request


async def test_an_embedded_agent(tmp_path: Path) -> None:
    said, server = await outcome(tmp_path, "embed.py", say("A demo."), say("Une démo."))

    assert said == "A demo.\nUne démo.\n"
    assert any("Now in French" in str(each["messages"][-1]) for each in server.requests)


async def test_a_provider_that_is_a_function(tmp_path: Path) -> None:
    said, server = await outcome(tmp_path, "echo.py")

    assert said == "You said: hello\n"
    assert server.requests == []


async def test_a_plugin_that_is_one_tool(tmp_path: Path) -> None:
    said, _ = await outcome(tmp_path, "uses_dice.py", call("roll", {"sides": 1}), say("A one."))

    assert said == "A one.\n"


async def test_it_refuses_to_block_a_loop_that_runs() -> None:
    with pytest.raises(RuntimeError, match=r"await app\.prompt\(\) instead"):
        pegboard.run("hello")
