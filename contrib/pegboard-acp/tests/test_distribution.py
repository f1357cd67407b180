"""What the distribution brings: a command, a program for `uvx`, and the registry's entry."""

import asyncio
import json
import sys
import tomllib
from xml.etree import ElementTree as ET

from support.clients.acp_editor import FOLDER, Editor, require_valid

PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]


def test_the_registry_s_entry_is_that_of_this_version() -> None:
    entry = json.loads((FOLDER / "agent.json").read_text())

    assert {"id", "name", "version", "description", "distribution", "license_url"} <= set(entry)
    assert entry["version"] == PROJECT["version"]
    assert entry["license"] == PROJECT["license"]
    package = f"{PROJECT['name']}=={PROJECT['version']}"
    assert entry["distribution"] == {"uvx": {"package": package}}
    assert PROJECT["name"] in PROJECT["scripts"]  # what uvx runs


def test_the_registry_s_icon_is_a_small_square_in_the_editor_s_colour() -> None:
    icon = ET.parse(FOLDER / "icon.svg").getroot()

    assert (icon.get("width"), icon.get("height")) == ("16", "16")
    assert icon.get("fill") == "currentColor"


async def test_the_program_for_uvx_is_the_command(environment: dict[str, str]) -> None:
    module, _, function = PROJECT["scripts"]["pegboard-acp"].partition(":")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"from {module} import {function}; {function}()"),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    editor = Editor(process)
    try:
        require_valid("InitializeResponse", await editor.initialized())
        assert await editor.closed() == 0
    finally:
        await editor.aclose()


async def test_what_was_asked_before_the_end_is_answered(environment: dict[str, str]) -> None:
    module = PROJECT["scripts"]["pegboard-acp"].partition(":")[0]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"from {module} import main; main()"),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    stdout, _ = await process.communicate(line)

    assert json.loads(stdout)["result"]["protocolVersion"] == 1
    assert process.returncode == 0
