"""The MCP servers of an editor: used with the plugin for them, else named."""

import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from support.clients.acp_editor import FOLDER, Launch

PLUGIN = FOLDER.parent / "pegboard-mcp"
needs_sdk = pytest.mark.skipif(find_spec("mcp") is None, reason="the SDK of MCP is not installed")


def server(name: str = "files") -> dict[str, Any]:
    program = str(PLUGIN / "tests" / "raw_server.py")
    args = ["-P", program, "env"]
    variables = [{"name": "BIRD", "value": "wren"}]
    return {"name": name, "command": sys.executable, "args": args, "env": variables}


@pytest.mark.skipif(
    any(metadata.distributions(name="pegboard-mcp")), reason="the plugin for MCP is installed"
)
async def test_servers_of_the_editor_are_named_where_nothing_uses_them(
    launch: Launch, project: Path
) -> None:
    async with launch({"text": "."}) as editor:
        about = await editor.initialized()
        await editor.call("session/new", cwd=str(project), mcpServers=[server()])
        await editor.until(lambda: "files" in editor.text())

    assert about["agentCapabilities"]["mcpCapabilities"] == {"http": False, "sse": False}
    assert "Pegboard does not use the editor's MCP server files; `pip install" in editor.text()


@needs_sdk
async def test_the_first_prompt_has_the_tools_of_the_editor_s_servers(
    launch: Launch, project: Path, environment: dict[str, str]
) -> None:
    environment["PYTHONPATH"] += f":{PLUGIN}"
    step = {"calls": [{"tool": "files_t", "input": {"a": "x"}}]}
    settings = {"plugin_paths": [str(PLUGIN / "pegboard_mcp")]}

    async with launch(step, {"text": "done"}, **settings) as editor:
        about = await editor.initialized()
        made = await editor.call("session/new", cwd=str(project), mcpServers=[server()])
        await editor.prompt(made["sessionId"], "Go")

    assert about["agentCapabilities"]["mcpCapabilities"]["http"]
    assert '"BIRD": "wren"' in str(editor.updates)


@needs_sdk
async def test_a_server_of_the_user_keeps_its_name(
    launch: Launch, project: Path, environment: dict[str, str]
) -> None:
    environment["PYTHONPATH"] += f":{PLUGIN}"
    own = {"type": "local", "command": ["/bin/false"], "enabled": False}
    settings = {"plugin_paths": [str(PLUGIN / "pegboard_mcp")], "mcp": {"files": own}}

    async with launch({"text": "."}, **settings) as editor:
        await editor.initialized()
        await editor.call("session/new", cwd=str(project), mcpServers=[server()])
        await editor.until(lambda: "files" in editor.text())

    assert "the editor's MCP server files has the name of one of yours" in editor.text()
