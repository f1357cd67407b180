"""A distribution by somebody else, installed with pip, acts like a built-in plugin."""

import asyncio
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from support.models.model_server import ModelServer, by_step, call, say

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "pegboard-house"
version = "0.3.0"
dependencies = ["pegboard"]

[project.entry-points.pegboard]
house = "pegboard_house"

[tool.hatch.build.targets.wheel]
only-include = ["pegboard_house.py"]
"""
MODULE = '''
"""A tool, a text filter, a line of the system prompt, a stricter policy and a kind of database."""

from collections.abc import Sequence
from pathlib import Path

from pegboard import Tool, hookimpl, tool
from pegboard.app import open_storage
from pegboard.schema.session import PermissionRequest, Verdict


@tool
async def shout(text: str) -> str:
    """Say it loudly.

    Args:
        text: What to say.
    """
    return text.upper()


@hookimpl
async def register_tools() -> Sequence[Tool]:
    return (shout,)


@hookimpl
async def chat_system_transform(system: tuple[str, ...]) -> tuple[str, ...]:
    return (*system, "This house writes British English.")


@hookimpl
async def text_complete(text: str) -> str:
    return text.replace("color", "colour")


@hookimpl
async def permission_ask(request: PermissionRequest) -> Verdict | None:
    if request.permission == "bash" and any("rm" in pattern for pattern in request.patterns):
        return Verdict(action="deny", reason="nothing is removed in this house")
    return None


async def open_house(url, *, ids, on_commit=None):
    path = Path(str(url).removeprefix("house://"))
    return await open_storage(path, ids=ids, on_commit=on_commit)


@hookimpl
async def register_storage():
    return {"house": open_house}
'''
CLEAN_UP = {"command": "rm -r build", "description": "Remove the build"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with Pegboard and, by pip, the distribution.

    Pegboard and its libraries are those of the environment that runs the tests.
    """
    folder = tmp_path_factory.mktemp("third-party")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    interpreter = folder / "venv" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = folder / "venv" / "lib" / version / "site-packages"
    link = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (own / "_tested_environment.pth").write_text(link)
    source = folder / "pegboard-house"
    source.mkdir()
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "pegboard_house.py").write_text(MODULE)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(interpreter)]
    options = ["-q", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "install", *options, str(source)], check=True, stdin=subprocess.DEVNULL)
    return interpreter


async def _pegboard(python: Path, folder: Path, *words: str, **env: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line in a project of its own."""
    places = {
        f"PEGBOARD_{kind}_DIR": str(folder / kind.lower())
        for kind in ("DATA", "CONFIG", "STATE", "CACHE")
    }
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-c",
        "from pegboard.cli.main import main; main()",
        *words,
        cwd=folder / "project",
        env={**os.environ, **places, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(50):
        stdout, stderr = await process.communicate()
    assert process.returncode is not None
    return process.returncode, stdout.decode(), stderr.decode()


def _system(messages: list[dict[str, Any]]) -> str:
    return "\n".join(str(each["content"]) for each in messages if each["role"] == "system")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / "build").mkdir(parents=True)
    return tmp_path


async def test_an_installed_distribution_is_listed(python: Path, folder: Path) -> None:
    code, listed, errors = await _pegboard(python, folder, "plugins", "list")

    house = next((line for line in listed.splitlines() if "house" in line), "")
    assert (code, "house" in errors) == (0, False)
    assert "0.3.0" in house
    assert "shout" in house


async def test_its_tool_filter_prompt_and_policy_all_act_in_a_run(
    python: Path, folder: Path
) -> None:
    script = by_step(
        call("shout", {"text": "mind the gap"}),
        call("bash", CLEAN_UP),
        say("What color is it?"),
    )

    async with ModelServer(script) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        words = ("run", "-m", "openai/scripted", "Shout, clean up, ask.")
        _, answer, errors = await _pegboard(python, folder, *words, **env)
        asked = [request for request in server.requests if request.get("tools")]

    assert len(asked) == 3, errors
    first, second, third = (request["messages"] for request in asked)
    assert "This house writes British English." in _system(first)
    assert "shout" in {each["function"]["name"] for each in asked[0]["tools"]}
    assert second[-1]["content"] == "MIND THE GAP"
    assert "nothing is removed in this house" in third[-1]["content"]
    assert (folder / "project" / "build").is_dir()
    assert "What colour is it?" in answer


async def test_a_blocked_distribution_does_nothing(python: Path, folder: Path) -> None:
    async with ModelServer(by_step(say("What color is it?"))) as server:
        env = {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "k",
            "PEGBOARD_DISABLE_PLUGINS": "house",
        }
        code, answer, _ = await _pegboard(
            python, folder, "run", "-m", "openai/scripted", "Ask.", **env
        )
        request = server.requests[0]

    assert code == 0
    assert "shout" not in {each["function"]["name"] for each in request["tools"]}
    assert "British" not in _system(request["messages"])
    assert "What color is it?" in answer


async def test_its_database_is_that_of_runs_and_of_commands_without_an_app(
    python: Path, folder: Path
) -> None:
    async with ModelServer(by_step(say("Kept."))) as server:
        env = {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "k",
            "PEGBOARD_DATABASE": f"house://{folder}/house.db",
        }
        words = ("run", "-m", "openai/scripted", "Keep this.")
        assert (await _pegboard(python, folder, *words, **env))[0] == 0

    code, sizes, errors = await _pegboard(python, folder, "session", "du", **env)
    blocked = await _pegboard(
        python, folder, "session", "du", PEGBOARD_DISABLE_PLUGINS="house", **env
    )

    assert (code, errors) == (0, "")
    assert "Keep this." in sizes
    assert (folder / "house.db").is_file()
    assert not (folder / "data" / "pegboard.db").exists()
    assert blocked[0] == 3
    assert "house is not loaded: switched off by PEGBOARD_DISABLE_PLUGINS" in blocked[2]
