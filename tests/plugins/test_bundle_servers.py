"""Servers of bundles that cannot be used, each with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard_plugins.shared.frontend import read_bundle
from pegboard_plugins.shared.frontend.bundlemanifest import SCHEMAS

PLUGIN = {"$schema": f"{SCHEMAS}/plugin.schema.json", "name": "kit"}
MCP = f"{SCHEMAS}/mcp.schema.json"


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ({"type": "sse", "url": "https://"}, "the url 'https://' has no host"),
        ({"type": "sse", "url": "https:///mcp"}, "the url 'https:///mcp' has no host"),
        ({"type": "sse", "url": "https://:443/"}, "the url 'https://:443/' has no host"),
        ({"type": "sse", "url": "https://[::1"}, "the url 'https://[::1' has no host"),
        (
            {"type": "stdio", "command": "${PLUGIN_ROOT}"},
            "the command '${PLUGIN_ROOT}' is a folder",
        ),
        ({"type": "stdio", "command": "./skills"}, "the command './skills' is a folder"),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["Agent Plugins", "Claude Code"])
def test_a_server_without_a_host_or_a_program_says_so(
    tmp_path: Path, server: Any, reason: str, form: str
) -> None:
    root = tmp_path / "kit"
    (root / ".claude-plugin").mkdir(parents=True)
    (root / "skills").mkdir()
    if form == "Agent Plugins":
        files = {"plugin.json": PLUGIN, "mcp.json": {"$schema": MCP, "mcpServers": {"bad": server}}}
    else:
        manifest = {".claude-plugin/plugin.json": {"name": "kit"}}
        files = {**manifest, ".mcp.json": {"mcpServers": {"bad": server}}}
    for name, content in files.items():
        (root / name).write_text(json.dumps(content))
    bundle = read_bundle(root, tmp_path / "data")

    assert dict(bundle.servers) == {}
    assert any(note.startswith(f"the server bad ({reason}") for note in bundle.notes)
