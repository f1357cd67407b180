"""Real servers and clients of MCP from npm, with ours."""

import asyncio
import json
from pathlib import Path

import pytest
from npm_packages import installed
from pegboard_mcp.tools import SERVERS

CLIENT = """
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"

const [command, ...args] = process.argv.slice(2)
const capabilities = { elicitation: { form: {} } }
const client = new Client({ name: "test", version: "1" }, { capabilities })
const content = { reply: "once" }
client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content }))
await client.connect(new StdioClientTransport({ command, args, env: process.env }))
const { tools } = await client.listTools()
const prompt = "%bash echo x > made.txt;;%say done"
const made = await client.callTool({ name: "pegboard", arguments: { prompt } })
const names = tools.map((tool) => tool.name)
console.log(JSON.stringify({ tools: names, made: made.structuredContent }))
await client.close()
"""


@pytest.fixture(scope="module")
def modules() -> Path:
    return installed()


def node(modules: Path, package: str, *words: object) -> dict[str, object]:
    """Return the configuration of a server from npm."""
    program = modules / "@modelcontextprotocol" / package / "dist" / "index.js"
    return {"command": ["node", str(program), *map(str, words)], "connect_timeout_s": 60}


async def test_the_everything_server_lists_and_answers(served_app, modules) -> None:
    calls = [
        ("everything_echo", {"message": "hello"}),
        ("everything_get-sum", {"a": 2, "b": 3}),
        ("everything_get-tiny-image", {}),
    ]
    async with served_app({"everything": node(modules, "server-everything")}, *calls) as scripted:
        turn = await scripted.turn()
        known = scripted.app.stash.get(SERVERS).named("everything").catalogue

    echo, total, image = turn.calls
    assert "hello" in echo.output
    assert "5" in total.output
    assert image.attachments
    assert known.prompts
    assert known.resources


async def test_the_everything_server_sees_no_secret(served_app, modules, monkeypatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sesame-open-1234")
    call: tuple[str, dict[str, str]] = ("everything_get-env", {})

    async with served_app({"everything": node(modules, "server-everything")}, call) as scripted:
        turn = await scripted.turn()

    assert "PATH" in turn.calls[0].output
    assert "sesame" not in turn.calls[0].output


async def test_the_filesystem_server_reads_and_writes(served_app, modules, tmp_path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    calls = [
        ("files_read_text_file", {"path": str(folder / "a.txt")}),
        ("files_write_file", {"path": str(folder / "b.txt"), "content": "two"}),
        ("files_read_text_file", {"path": "/etc/hostname"}),
    ]
    server = node(modules, "server-filesystem", folder)

    async with served_app({"files": server}, *calls) as scripted:
        turn = await scripted.turn()

    assert turn.calls[0].output == "one\n"
    assert (folder / "b.txt").read_text() == "two"
    assert "denied" in turn.calls[2].error


async def test_the_client_from_npm_has_our_agent_work(
    modules, tmp_path, command, surroundings
) -> None:
    program = tmp_path / "client.mjs"
    program.write_text(CLIENT)
    (tmp_path / "node_modules").symlink_to(modules)

    process = await asyncio.create_subprocess_exec(
        *("node", str(program), *command),
        env=dict(surroundings),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)

    found = json.loads(output)
    assert found["tools"] == ["pegboard", "pegboard_reply"]
    assert (found["made"]["outcome"], found["made"]["changed"]) == ("answered", ["made.txt"])
