"""A project with everything that Claude Code has works at the first try."""

import json
from typing import Any

import pytest

from model_server import ModelServer, say
from plugins.cli.commands import CommandLine

SETTINGS = {
    "permissions": {
        "allow": ["Bash(npm run test:*)"],
        "deny": ["Bash(curl:*)", "Read(./secrets/**)"],
        "ask": ["Bash(git push:*)"],
    },
    "hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "x"}]}]},
}
FILES = {
    "CLAUDE.md": "See @docs/a.md.\n\n```\n@docs/b.md\n```\n",
    "CLAUDE.local.md": "Only mine.",
    "docs/a.md": "The imported text.",
    "docs/b.md": "The fenced text.",
    "secrets/a": "the-hidden-word",
    ".claude/settings.json": json.dumps(SETTINGS),
    ".claude/rules/style.md": "Use tabs.",
    ".claude/agents/reviewer.md": (
        "---\nname: reviewer\ndescription: Reviews changes.\ntools: Read, Grep\n---\nReview."
    ),
    ".claude/commands/frontend/test.md": (
        "---\ndescription: Test it\nallowed-tools: Bash(ls:*)\n---\nTest $0 and $1 of: !`ls docs`"
    ),
    ".claude/skills/release/SKILL.md": "---\nname: release\ndescription: Releases.\n---\nTag it.",
    ".mcp.json": '{"mcpServers": {"clock": {"command": "uvx", "args": ["mcp-server-time"]}}}',
}


@pytest.fixture
def project(pegboard: CommandLine) -> CommandLine:
    pegboard.env["HOME"] = str(pegboard.home)
    for name, content in FILES.items():
        path = pegboard.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return pegboard


async def test_what_is_denied_is_denied_before_any_trust(project: CommandLine) -> None:
    explained = await project("explain", "curl x")
    pushed = await project("explain", "git push")
    read = await project("tool", "call", "read", '{"filePath": "secrets/a"}', "--dry-run")
    line = json.dumps({"command": "cat secrets/a", "description": "x"})
    printed = await project("tool", "call", "bash", line)
    wrote = await project("tool", "call", "write", '{"filePath": "secrets/b", "content": "x"}')

    assert "deny: denied by rule bash" in explained.out
    assert ".claude/settings.json" in explained.out
    assert "ask: asked by rule bash" in pushed.out
    assert json.loads(read.out)["verdict"] == "deny"
    assert (printed.code, wrote.code) == (5, 5)
    assert "the-hidden-word" not in printed.out + printed.err
    assert not (project.project / "secrets" / "b").exists()


async def test_the_model_gets_what_the_files_say(project: CommandLine) -> None:
    bodies: list[dict[str, Any]] = []

    def script(body: dict[str, Any]) -> Any:
        bodies.append(body)
        return say("Done.")

    async with ModelServer(script) as server:
        project.use_model(server.url)
        untrusted = await project("run", "/frontend:test a b")
        done = await project("run", "--trust", "/frontend:test a b")
        sent = json.dumps(bodies)
        tools = {each["function"]["name"]: each for each in bodies[0]["tools"]}

    assert untrusted.code != 0
    assert done.code == 0, done.err
    assert "Test a and b of:" in sent
    assert sent.count("The imported text.") == len(bodies)
    assert "The fenced text." not in sent
    assert "Only mine." in sent
    assert "Use tabs." in sent
    assert "reviewer: Reviews changes." in json.dumps(tools["task"])
    assert "release: Releases." in json.dumps(tools["skill"])
    assert "Traceback" not in done.err


async def test_trust_shows_what_would_count(project: CommandLine) -> None:
    shown = await project("trust", "allow", "--yes")

    for name in (".claude/agents/reviewer.md", ".claude/commands/frontend/test.md"):
        assert name in shown.out
