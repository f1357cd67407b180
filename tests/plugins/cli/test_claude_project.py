"""A project with everything that Claude Code has works at the first try."""

import json
import re
from importlib.metadata import entry_points
from typing import Any

import pytest

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, say

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

_STOP = [{"hooks": [{"type": "command", "command": "sh ok.sh"}, {"type": "prompt"}]}]
_JUDGE = "---\nname: judge\ndescription: d\nmodel: sonnet\nmemory: user\n---\nJudge."
BUNDLE = {
    ".claude-plugin/plugin.json": '{"name": "house-rules", "version": "1.0", "engines": {}}',
    "commands/greet.md": "Greet $ARGUMENTS.",
    "commands/old.md": "Fix $1.",
    "agents/judge.md": _JUDGE,
    "agents/mute.md": "---\nname: mute\n---\nNothing.",
    "skills/release/SKILL.md": "---\nname: release\ndescription: d\n---\nTag it.",
    "skills/release/notes.md": "A page of the skill.",
    "hooks/hooks.json": json.dumps({"hooks": {"Stop": _STOP, "Setup": _STOP}}),
    ".mcp.json": '{"mcpServers": {"clock": {"command": "clock"}, "bad": {}}}',
    "output-styles/a.md": "Shout.",
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


async def test_what_has_no_effect_is_named_once_and_in_full(project: CommandLine) -> None:
    handlers = [{"type": "http", "url": "http://127.0.0.1:1"}, {"type": "command", "command": "x"}]
    hooks = {"Stop": [{"hooks": handlers}], "ConfigChange": [{"hooks": handlers}]}
    folder = project.project / ".claude"
    (folder / "settings.json").write_text(json.dumps({**SETTINGS, "hooks": hooks}))
    (folder / "commands" / "old.md").write_text("Fix $1.")
    text = "---\nname: judge\ndescription: d\nmodel: sonnet\n---\nJudge."
    (folder / "agents" / "judge.md").write_text(text)
    (project.home / "mine.md").write_text("Mine.")
    (project.project / "CLAUDE.md").write_text("See @~/mine.md.")

    async with ModelServer(lambda _: say("Done.")) as server:
        project.use_model(server.url)
        ran = await project("run", "Hi", "--trust")
    listed = await project("import", "claude", "--dry-run")
    health = await project("doctor")

    assert "plugin commandhooks: plugin commandhooks" not in ran.err
    assert ran.err.count("a hook of the type http is not honoured") == 1
    assert ran.err.count("warning: not honoured: .claude/agents/judge.md: model sonnet") == 1
    lines = {" ".join(line.split()) for line in listed.out.splitlines()}
    path = ".claude/settings.json"
    assert f"hook Stop {path} acts after `pegboard trust allow` command hook" in lines
    kind = "a hook of the type http is not honoured: only commands run"
    assert f"hooks {path} cannot {kind}" in lines
    never = "the event ConfigChange is not honoured: Pegboard has no such event"
    assert f"hooks {path} cannot {never}" in lines
    assert any(line.endswith("the session's model") for line in lines)
    assert any(line.startswith("import @~/mine.md CLAUDE.md cannot") for line in lines)
    assert not any("…" in line for line in lines)
    assert "pegboard import claude --dry-run" in health.out
    assert ".claude/commands/old.md: `$1` is the second word" in health.out
    assert "`pegboard trust allow` shows and trusts them" in health.out


async def test_one_command_trusts_all_that_a_project_can_run(project: CommandLine) -> None:
    hook = {"type": "command", "command": "echo the-hook-s-word"}
    hooks = {"UserPromptSubmit": [{"hooks": [hook]}]}
    settings = project.project / ".claude" / "settings.json"
    settings.write_text(json.dumps({"hooks": hooks}))

    async with ModelServer(lambda _: say("Done.")) as server:
        project.use_model(server.url)
        before = await project("run", "Hi")
        trusted = await project("trust", "allow", "--yes")
        after = await project("run", "Hi")
        again = await project("trust", "allow", "--yes")
    asked = [json.dumps(body) for body in server.requests if body.get("tools")]

    assert before.err.count("`pegboard trust allow` shows and trusts them") == 2
    assert "UserPromptSubmit *: echo the-hook-s-word" in trusted.out
    assert (after.code, again.code) == (0, 0)
    assert "not trusted" not in after.err
    assert ["the-hook-s-word" in each for each in asked] == [False, True]
    assert "trusted hooks" not in again.out


async def test_servers_that_nothing_can_start_are_named(project: CommandLine) -> None:
    async with ModelServer(lambda _: say("Done.")) as server:
        project.use_model(server.url)
        ran = await project("run", "Hi")

    is_missing = not entry_points(group="pegboard", name="mcp")
    assert ("pip install 'pegboard[mcp]'" in ran.err) == is_missing


async def test_programs_can_list_hooks(project: CommandLine) -> None:
    before = await project("hooks", "list", "--format", "json")
    refused = await project("hooks", "trust")
    await project("trust", "allow", "--yes")
    asked = await project("hooks", "trust")
    await project("hooks", "trust", "--yes")
    after = await project("hooks", "list", "--format", "json")

    (file,) = json.loads(before.out)
    hook = {"event": "PostToolUse", "matcher": "Edit", "command": "x", "args": None}
    runs = {"runs": 0, "mean_ms": None, "last": None}
    assert file["hooks"] == [{**hook, "timeout_s": 600.0, **runs}]
    assert (file["trusted"], json.loads(after.out)[0]["trusted"]) == (False, True)
    assert "`pegboard trust allow` shows and trusts its code, and its hooks" in refused.err
    assert (asked.code, "pass --yes" in asked.err) == (3, True)


async def test_each_hook_is_listed_with_its_runs_in_all_processes(project: CommandLine) -> None:
    entry = {"hooks": [{"type": "command", "command": "exit 3"}]}
    settings = project.home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": {"Stop": [entry], "PreCompact": [entry]}}))

    async with ModelServer(lambda _: say("Done.")) as server:
        project.use_model(server.url)
        await project("run", "Hi")
        await project("run", "Hi")
    listed = await project("hooks", "list")
    told = await project("hooks", "list", "--format", "json")

    assert re.search(r"\n  Stop \*: exit 3 \(2 runs, \d+ ms each, last: code 3\)\n", listed.out)
    assert "\n  PreCompact *: exit 3 (no runs)\n" in listed.out
    stop, compact = json.loads(told.out)[0]["hooks"]
    assert (stop["runs"], stop["last"], stop["mean_ms"] > 0) == (2, "code 3", True)
    assert (compact["runs"], compact["last"], compact["mean_ms"]) == (0, None, None)


async def test_a_bundle_waits_for_trust_where_nobody_can_be_asked(project: CommandLine) -> None:
    bundle = project.project / "house-rules"
    (bundle / ".claude-plugin").mkdir(parents=True)
    manifest = bundle / ".claude-plugin" / "plugin.json"
    manifest.write_text('{"name": "house-rules", "version": "1.0"}')

    added = await project("plugins", "bundle", "add", "house-rules")
    listed = await project("plugins", "bundle", "list")
    trusted = await project("plugins", "bundle", "trust", "house-rules", "--yes")
    same = await project("plugins", "bundle", "update", "house-rules")
    manifest.write_text('{"name": "house-rules", "version": "2.0"}')
    changed = await project("plugins", "bundle", "update", "house-rules")

    assert (added.code, trusted.code, same.code, changed.code) == (3, 0, 0, 3)
    assert "`pegboard plugins bundle trust house-rules --yes`" in added.err
    assert listed.out == f"house-rules 1.0 (not trusted): {bundle.resolve()}\n"
    assert same.out == "house-rules has not changed\n"
    assert "is not trusted" in changed.err


async def test_info_of_a_bundle_names_its_parts_and_what_has_no_effect_and_why(
    project: CommandLine,
) -> None:
    root = project.project / "house-rules"
    for name, content in BUNDLE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    await project("plugins", "bundle", "add", "house-rules")
    before = await project("plugins", "bundle", "info", "house-rules")
    await project("plugins", "bundle", "trust", "house-rules", "--yes")
    after = await project("plugins", "bundle", "info", "house-rules")
    missing = await project("plugins", "bundle", "info", "other")

    no_server = "  its servers do not start: Pegboard needs `pip install 'pegboard[mcp]'`"
    assert after.out.splitlines() == [
        "house-rules (Claude Code)",
        "  skill: skills/release/SKILL.md",
        "  agent: agents/judge.md",
        "  agent: agents/mute.md",
        "  command: commands/greet.md",
        "  command: commands/old.md",
        "  hook: Stop *: sh ok.sh",
        "  server: clock: clock",
        "  the key engines is not honoured: Pegboard has nothing like it",
        "  output styles is not honoured: an agent's prompt says how to answer",
        "  the server bad (it has no command) is not honoured",
        "  agents/judge.md: model sonnet is not honoured: the session's model answers",
        "  agents/judge.md: memory is not honoured: Pegboard has nothing like it",
        "  agents/mute.md: it has no description",
        "  commands/old.md: `$1` is the second word of its arguments, `$0` the first",
        "  hooks/hooks.json: a hook of the type prompt is not honoured: only commands run",
        "  hooks/hooks.json: the event Setup is not honoured: Pegboard has no such event",
        *([no_server] if not entry_points(group="pegboard", name="mcp") else []),
        f"from {root.resolve()}",
        "trusted: its parts act",
    ]
    assert "not trusted as it is: nothing of it acts before `pegboard plugins" in before.out
    assert (missing.code, "no bundle 'other'; installed: house-rules" in missing.err) == (2, True)


async def test_check_names_each_folder_that_is_no_bundle(project: CommandLine) -> None:
    manifest = project.project / "good" / ".claude-plugin" / "plugin.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"name": "good"}')

    done = await project("plugins", "bundle", "check", "docs", "good", "secrets")

    assert (done.code, done.out) == (2, "good (Claude Code)\n")
    assert "docs is not a bundle" in done.err
    assert "secrets is not a bundle" in done.err


async def test_trust_shows_what_would_count(project: CommandLine) -> None:
    shown = await project("trust", "allow", "--yes")

    for name in (".claude/agents/reviewer.md", ".claude/commands/frontend/test.md"):
        assert name in shown.out
