"""A rule about a tool of a server has one verdict: in a run, over HTTP, and foreseen."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes.forks import PEGBOARD, run
from support.wire.served import Served, served

HERE = Path(__file__).parent
RULES = {"raw_a": "deny", "mcp__raw__b": "deny", "raw_d": "ask", "mcp__raw__e": "ask"}
VERDICTS = {"a": "deny", "b": "deny", "c": "allow", "d": "ask", "e": "ask"}
CALLS = "\n".join(f"%tool raw_{name} {{}}" for name in VERDICTS)
TASK = {"subagent_type": "general", "description": "work", "prompt": CALLS}
CALLERS = pytest.mark.parametrize(
    "prompt", [CALLS, f"%tool task {json.dumps(TASK)}"], ids=["agent", "subagent"]
)
Command = Callable[..., str]


@pytest.fixture
def server(
    tmp_path: Path,
    model_port: int,
    surroundings: Mapping[str, str],
    raw_server: Callable[..., dict[str, Any]],
) -> Iterator[Served]:
    """Start a server of Pegboard whose rules name MCP tools in both spellings."""
    listing = tmp_path / "tools.json"
    tool = {"description": "d", "inputSchema": {"type": "object"}}
    listing.write_text(json.dumps([{**tool, "name": name} for name in VERDICTS]))
    settings = {
        "plugin_paths": [str(HERE.parent / "pegboard_mcp")],
        "mcp": {"raw": raw_server("file", listing)},
    }
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "opencode.json").write_text(json.dumps(settings))
    config = json.loads(surroundings["PEGBOARD_CONFIG_CONTENT"])
    config["permission"] = {"*": "allow", **RULES}
    env = {"PYTHONPATH": str(HERE.parent), "PEGBOARD_CONFIG_CONTENT": json.dumps(config)}
    with served(tmp_path, model_port, env=env) as running:
        yield running


@pytest.fixture
def command(server: Served) -> Command:
    """Review the MCP server's tools; return a function that runs a command of Pegboard."""

    def called(*words: str) -> str:
        return run([PEGBOARD, "-C", directory, *words], cwd=Path.cwd(), env=server.env).stdout

    directory = str(server.directory)
    review = [sys.executable, str(HERE / "mcp_program.py"), directory, "review", "raw", "--yes"]
    assert "5 of 5 tools" in run(review, cwd=Path.cwd(), env=server.env).stdout
    return called


def test_what_is_foreseen_is_what_the_rule_says(command: Command) -> None:
    explained, tried = {}, {}
    for name in VERDICTS:
        tool = f"raw_{name}"
        call = json.loads(command("explain", "--tool", tool, "--args", "{}", "--format", "json"))
        explained[name] = call["verdict"]
        tried[name] = json.loads(command("tool", "call", "--dry-run", tool, "{}"))["verdict"]

    assert explained == tried == VERDICTS


@CALLERS
def test_a_run_follows_the_rule(server: Served, command: Command, prompt: str) -> None:
    events = [json.loads(line) for line in command("run", "--format", "json", prompt).splitlines()]

    with server.client() as client:
        assert verdicts(client, events[-1]["sessionID"]) == VERDICTS


@CALLERS
def test_the_user_of_a_client_is_asked_as_the_rule_says(
    server: Served, command: Command, prompt: str
) -> None:
    asked = []
    with server.client() as client, ThreadPoolExecutor() as threads:
        session = client.post("/session", json={}).json()["id"]
        body = {"parts": [{"type": "text", "text": prompt}]}
        answer = threads.submit(client.post, f"/session/{session}/message", json=body)
        while not answer.done():
            for request in client.get("/permission").json():
                asked.append(request["permission"].removeprefix("raw_"))
                client.post(f"/permission/{request['id']}/reply", json={"reply": "once"})
            wait([answer], timeout=0.05)
        found = verdicts(client, session)

    assert asked == ["d", "e"]
    assert found == VERDICTS | {"d": "allow", "e": "allow"}


def verdicts(client: httpx.Client, session: str) -> dict[str, str]:
    """Return what came of the call of each tool: one that is denied is not even offered."""
    children = [each["id"] for each in client.get(f"/session/{session}/children").json()]
    views = [client.get(f"/session/{each}/message").json() for each in (session, *children)]
    parts = [part for view in views for message in view for part in message["parts"]]
    found = {}
    for part in parts:
        if part["type"] == "tool" and part["tool"].startswith("raw_"):
            is_asked = "needs a permission (asked by rule" in part["state"].get("error", "")
            is_allowed = part["state"]["status"] == "completed"
            word = "allow" if is_allowed else "ask" if is_asked else "deny"
            found[part["tool"].removeprefix("raw_")] = word
        elif part["type"] == "tool" and part["tool"] == "invalid":
            found[part["state"]["input"]["tool"].removeprefix("raw_")] = "deny"
    return found
