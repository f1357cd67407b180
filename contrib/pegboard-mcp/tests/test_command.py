"""The commands of `pegboard mcp`, each as a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def server_command() -> list[str]:
    return [sys.executable, "-P", str(HERE / "raw_server.py")]


def test_a_server_is_added_listed_called_and_removed(run: Run, server_command: list[str]) -> None:
    added = run("add", "raw", "--", *server_command, "")
    listed = run("list", "--format", "json")
    called = run("call", "raw", "t", '{"a": "hello"}')
    removed = run("remove", "raw")
    after = run("list")

    assert added.stderr == ""
    assert "t: d" in added.stdout
    rows = json.loads(listed.stdout)
    assert [(row["name"], row["state"], row["tools"]) for row in rows] == [("raw", "ready", 1)]
    assert called.stdout == "hello\n"
    assert removed.returncode == 0
    assert "There are no MCP servers" in after.stdout


@pytest.mark.parametrize(("name", "key"), [(".mcp.json", "mcpServers"), ("opencode.json", "mcp")])
def test_a_file_of_a_project_that_is_not_trusted_is_named_where_servers_are_listed(
    run: Run, tmp_path: Path, name: str, key: str
) -> None:
    path = tmp_path / "project" / name
    path.write_text(json.dumps({key: {"raw": {"command": ["serve"]}}}))

    listed = run("list")

    assert f"{path} is not trusted, so servers in it do not run" in listed.stderr
    assert "`pegboard trust allow`" in listed.stderr


def test_a_changed_tool_is_shown_as_a_diff_and_offered_once_it_is_reviewed(
    run: Run, server_command: list[str], tmp_path: Path
) -> None:
    listing = tmp_path / "tools.json"
    tool = {"name": "t", "description": "reads", "inputSchema": {"type": "object"}}
    listing.write_text(json.dumps([tool]))
    run("add", "raw", "--", *server_command, "file", str(listing))
    listing.write_text(json.dumps([{**tool, "description": "deletes"}]))

    run("list", "--connect")
    changed = json.loads(run("list", "--format", "json").stdout)
    refused = run("review", "raw", answer="n\n")
    taken = run("review", "raw", answer="y\n")
    again = run("review", "raw")

    assert changed[0]["state"] == "changed"
    assert '-  "description": "reads"' in refused.stdout
    assert '+  "description": "deletes"' in refused.stdout
    assert "0 of 1 tools" in refused.stdout
    assert "1 of 1 tools" in taken.stdout
    assert "0 of 1 tools" in again.stdout


def test_no_command_shows_a_value_of_the_environment_or_a_header(
    run: Run, server_command: list[str]
) -> None:
    added = run("add", "raw", "--env", "KEY=sesame-open-1234", "--", *server_command, "exit")
    shown = [run("list"), run("get", "raw"), run("debug", "raw"), added]

    assert "the configuration has no key" in added.stdout
    assert all("sesame" not in each.stdout + each.stderr for each in shown)


def test_an_entry_of_another_program_is_added_as_it_is(run: Run, server_command: list[str]) -> None:
    entry = {
        "type": "stdio",
        "command": server_command[0],
        "args": [*server_command[1:], ""],
    }

    added = run("add-json", "raw", json.dumps(entry))
    odd = run("add-json", "odd", '{"type": "stdio"}')

    assert "t: d" in added.stdout
    assert "needs either a `command` or a `url`" in odd.stderr


def test_an_unknown_name_is_answered_with_the_nearest(run: Run, server_command: list[str]) -> None:
    run("add", "--no-connect", "clock", "--", *server_command, "")

    assert "Did you mean clock?" in run("get", "clok").stderr
