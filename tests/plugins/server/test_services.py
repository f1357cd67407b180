"""What clients are told of language servers and formatters."""

import json
from pathlib import Path

import pytest

from support.wire.served import served

PLUGIN = """
from pegboard import hookimpl
from pegboard.schema.config import Service

@hookimpl
async def services(app):
    root = str(app.workspace.worktree)
    return [
        Service(kind="lsp", name="own", root=root + "/sub", state="running"),
        Service(kind="lsp", name="dead", root=root, state="failed"),
        Service(kind="formatter", name="tidy", extensions=(".own",), state="ready"),
        Service(kind="database", name="elsewhere", state="running"),
    ]
"""


@pytest.mark.fires("services")
def test_a_plugin_tells_what_it_runs(model_port: int, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "plugin"
    folder.mkdir(parents=True)
    (folder / "teller.py").write_text(PLUGIN)
    paths = json.dumps([str(folder / "teller.py")])
    (tmp_path / "config" / "pegboard.toml").write_text(f"plugin_paths = {paths}\n")

    with served(tmp_path, model_port) as server, server.client() as client:
        (server.directory / "ruff.toml").write_text("")
        servers = client.get("/lsp").json()
        formatters = {each["name"]: each for each in client.get("/formatter").json()}

    assert servers == [
        {"id": "own", "name": "own", "root": "sub", "status": "connected"},
        {"id": "dead", "name": "dead", "root": ".", "status": "error"},
    ]
    assert formatters["tidy"] == {"name": "tidy", "extensions": [".own"], "enabled": True}
    assert formatters["ruff"]["extensions"] == [".py", ".pyi"]
    assert formatters["clang-format"]["enabled"] is False
    assert "prettier" not in formatters


def test_a_language_server_is_told_of_once_it_was_started(client) -> None:
    assert client.get("/lsp").json() == []
