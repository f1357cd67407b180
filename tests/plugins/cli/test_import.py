"""`pegboard import` says what becomes of each part of another agent's files, and loses none."""

import json
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from plugins.cli.commands import CommandLine

CLAUDE: dict[str, Any] = {
    "permissions": {
        "allow": ["Bash(npm test:*)", "Read(~/notes/**)"],
        "deny": ["Bash(curl:*)", "Teleport"],
        "defaultMode": "acceptEdits",
    },
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
    "model": "opus",
    "env": {"TOKEN": "sk-secret-token"},
    "statusLine": {"type": "command", "command": "x"},
    "brandNewKey": 1,
}
CODEX = """
model = "gpt-5.1"
sandbox_mode = "workspace-write"
approval_policy = "on-request"
[mcp_servers.clock]
command = "uvx"
args = ["mcp-server-time"]
env = { TOKEN = "sk-secret-token" }
[mcp_servers.web]
url = "https://mcp.example.com"
bearer_token_env_var = "WEB_TOKEN"
[profiles.fast]
model = "gpt-5.1-mini"
"""
GEMINI: dict[str, Any] = {
    "model": {"name": "gemini-3-pro"},
    "context": {"fileName": ["GEMINI.md", "NOTES.md"]},
    "mcpServers": {"clock": {"command": "uvx", "env": {"TOKEN": "sk-secret-token"}}},
    "ui": {"theme": "x"},
}
OPENCODE: dict[str, Any] = {
    "model": "anthropic/claude-sonnet-4-5",
    "plugin": ["opencode-x"],
    "mcp": {"clock": {"type": "local", "command": ["uvx", "mcp-server-time"]}},
    "provider": {"x": {"options": {"apiKey": "sk-secret-token"}}},
}


def write(path: Path, content: str | dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture
def used(pegboard: CommandLine) -> CommandLine:
    """A home and a project in which all four products have been used."""
    home, project = pegboard.home, pegboard.project
    pegboard.env["HOME"] = str(home)
    write(home / ".claude" / "settings.json", CLAUDE)
    write(home / ".claude" / "CLAUDE.md", "Be brief.")
    write(home / ".claude" / "commands" / "ship.md", "Ship $1.")
    write(home / ".claude" / "agents" / "a.md", "---\nname: a\ndescription: d\nmemory: user\n---\n")
    write(home / ".claude.json", {"mcpServers": {"clock": {"command": "uvx"}}})
    write(home / ".codex" / "config.toml", CODEX)
    write(home / ".codex" / "AGENTS.md", "Be brief.")
    write(home / ".codex" / "auth.json", {"token": "sk-secret-token"})
    write(home / ".codex" / "prompts" / "ship.md", "---\nargument-hint: x\n---\nShip $1.")
    write(home / ".gemini" / "settings.json", GEMINI)
    write(home / ".gemini" / "GEMINI.md", "Be brief.")
    prompt = 'description = "Plan"\nprompt = "Plan {{args}} with !{git log} and @{a.md}."'
    write(home / ".gemini" / "commands" / "git" / "plan.toml", prompt)
    write(home / ".config" / "opencode" / "opencode.json", OPENCODE)
    write(home / ".config" / "opencode" / "agent" / "b.md", "---\ndescription: d\n---\nx")
    write(home / ".config" / "opencode" / "agent" / "c.md", "---\ntools:\n  x: true\n---\nx")
    write(project / ".claude" / "settings.json", {"permissions": {"allow": ["Edit"]}})
    write(project / ".mcp.json", {"mcpServers": {}})
    write(project / ".gemini" / "commands" / "here.toml", 'prompt = "Here."')
    return pegboard


PRODUCTS = ("claude", "codex", "gemini", "opencode")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and not {"state", "cache", "data"} & set(path.relative_to(folder).parts[:1])
    }


async def rows(pegboard: CommandLine, product: str) -> list[dict[str, Any]]:
    done = await pegboard("import", product, "--dry-run", "--format", "json")
    assert done.code in (0, 1), done.err
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


@pytest.mark.parametrize("product", PRODUCTS)
async def test_nothing_is_unexplained_and_a_dry_run_writes_nothing(
    used: CommandLine, product: str
) -> None:
    before = contents(used.home)

    found = await rows(used, product)

    assert found
    assert [each for each in found if each["becomes"] is None and each["reason"] is None] == []
    assert contents(used.home) == before
    assert not [*used.home.rglob("pegboard.db*")]


def entries(folder: Path) -> dict[str, bytes | str]:
    """All below a folder: bytes of files, kinds of the rest."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else "folder"
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("product", PRODUCTS)
async def test_a_dry_run_makes_no_folder_either_in_the_strictest_sandbox(
    used: CommandLine, product: str
) -> None:
    known = {"options": {"baseURL": "http://127.0.0.1:9"}, "models": {"m": {}}}
    used.configure(
        sandbox="strict",
        provider={"x": known},
        plugins={"audit": {"enabled": True}},
        permission={"*": "ask"},
    )
    write(used.home / ".config" / "opencode" / "opencode.json", {"model": "x/m"})
    write(used.home / ".codex" / "config.toml", CODEX.replace("gpt-5.1", "x/m"))
    write(used.project / "AGENTS.md", "Be brief.")
    before = entries(used.home)

    for words in ((), ("--project",), ("--format", "json")):
        done = await used("import", product, "--dry-run", *words)
        assert done.code in (0, 1), done.err

    assert entries(used.home) == before


async def test_what_acts_already_and_what_cannot_be_had_are_told_apart(used: CommandLine) -> None:
    found = {each["found"]: each for each in await rows(used, "claude")}

    assert found["deny Bash(curl:*)"]["state"] == "acts"
    assert found["allow Bash(npm test:*)"]["state"] == "import"
    assert found["command ship"]["state"] == "acts"
    assert "`$0` the first" in found["command ship"]["reason"]
    assert found["hook Stop"]["state"] == "acts"
    for name in ("deny Teleport", "model opus", "env", "brandNewKey", "agent a: memory"):
        assert (found[name]["state"], found[name]["becomes"]) == ("cannot", None), name
    assert 'permission.edit."*" = "allow"' in found["allow Edit"]["reason"]
    assert found["MCP servers"]["file"] in {".mcp.json", "~/.claude.json"}


@pytest.mark.parametrize("product", PRODUCTS)
async def test_without_a_terminal_only_the_plan_that_was_shown_is_written(
    used: CommandLine, product: str
) -> None:
    before = contents(used.home)
    refused = await used("import", product, "--yes")
    wrong = await used("import", product, "--yes=0123456789abcdef")
    unchanged = contents(used.home)
    shown = await used("import", product, "--dry-run")
    digest = shown.err.rpartition("--yes=")[2].split()[0]
    done = await used("import", product, f"--yes={digest}")
    after = contents(used.home)
    again = await used("import", product, "--dry-run")

    assert (refused.code, wrong.code) == (2, 2)
    assert unchanged == before
    assert "written:" in done.err
    assert "--yes=" not in again.err  # a second one has nothing to write
    assert contents(used.home) == after
    new = b"".join(content for name, content in after.items() if before.get(name) != content)
    assert b"sk-secret-token" not in new
    doctor = await used("config", "show")
    assert doctor.code == 0, doctor.err


async def test_what_was_written_works(used: CommandLine) -> None:
    for product in PRODUCTS:
        shown = await used("import", product, "--dry-run")
        await used("import", product, f"--yes={shown.err.rpartition('--yes=')[2].split()[0]}")
    shown = await used("config", "show", "--format", "json")
    settings = {key: each["value"] for key, each in json.loads(shown.out).items()}
    config = used.home / "config"

    assert settings["plugins.foreignfiles.options.permissions"] == "all"
    assert settings["sandbox"] == "workspace"
    if "mcp" in {each.name for each in entry_points(group="pegboard")}:
        assert settings["mcp.clock.command"] == ["uvx", "mcp-server-time"]
    assert {f"{used.home}/.codex/AGENTS.md", f"{used.home}/.gemini/GEMINI.md"} < {
        *settings["instructions"]
    }
    assert (config / "command" / "ship.md").read_text() == "Ship $1.\n"
    plan = "Plan $ARGUMENTS with !`git log` and @a.md."
    assert plan in (config / "command" / "git" / "plan.md").read_text()
    assert (config / "agent" / "b.md").exists()
    assert not (config / "agent" / "c.md").exists()
    assert (config / "pegboard.toml.bak").exists()


async def test_a_broken_file_is_named_and_the_rest_goes_on(used: CommandLine) -> None:
    write(used.home / ".gemini" / "settings.json", "{ not json")
    write(used.home / ".gemini" / "commands" / "bad.toml", "prompt = 1")

    done = await used("import", "gemini", "--dry-run", "--format", "json")
    found = json.loads(done.out)

    assert done.code == 3
    assert {each["file"] for each in found if each["state"] == "broken"} == {
        *("~/.gemini/settings.json", "~/.gemini/commands/bad.toml"),
    }
    assert any(each["found"] == "command git/plan" for each in found)


async def test_a_project_s_part_is_written_to_the_project(used: CommandLine) -> None:
    shown = await used("import", "gemini", "--project", "--dry-run")
    digest = shown.err.rpartition("--yes=")[2].split()[0]
    await used("import", "gemini", "--project", f"--yes={digest}")

    assert (used.project / ".pegboard" / "command" / "here.md").read_text() == "Here.\n"


async def test_nothing_to_find_is_nothing_lost(pegboard: CommandLine) -> None:
    pegboard.env["HOME"] = str(pegboard.home)
    done = await pegboard("import", "codex")

    assert (done.code, done.out) == (0, "")
    assert "nothing was found" in done.err


async def test_a_model_that_nothing_here_serves_is_named_and_not_written(
    pegboard: CommandLine,
) -> None:
    pegboard.env["HOME"] = str(pegboard.home)
    codex = """
    model = "m1"
    model_provider = "corp"
    [model_providers.corp]
    base_url = "https://models.example.com"
    [profiles.corp]
    model = "m2"
    [profiles.ours]
    model = "gpt-5"
    model_provider = "openai"
    [profiles.unknown]
    model = "no-such-model"
    model_provider = "openai"
    """
    write(pegboard.home / ".codex" / "config.toml", codex)

    found = {each["found"]: each for each in await rows(pegboard, "codex")}
    shown = await pegboard("import", "codex", "--dry-run")

    assert found["profile ours"]["becomes"] == 'profile.ours.model = "openai/gpt-5"'
    for name in ("model m1", "profile corp"):
        assert (found[name]["state"], found[name]["becomes"]) == ("cannot", None), name
        assert "model_provider corp" in found[name]["reason"]
    assert found["profile unknown"]["state"] == "cannot"
    assert "openai lists no model no-such-model" in found["profile unknown"]["reason"]
    assert shown.out.count("+model = ") == 1


async def test_what_the_other_file_of_settings_gets_is_not_called_written(
    used: CommandLine,
) -> None:
    own = await used("import", "gemini", "--dry-run")
    project = await used("import", "gemini", "--dry-run", "--project")

    (here,) = (line for line in own.out.splitlines() if line.startswith("command here"))
    (plan,) = (line for line in project.out.splitlines() if line.startswith("command git/plan"))
    assert "written with --project" in here
    assert "written without --project" in plan
    assert "pegboard import gemini --project --yes=" in project.err


async def test_each_part_of_opencode_is_named(pegboard: CommandLine) -> None:
    pegboard.env["HOME"] = str(pegboard.home)
    top, inner = pegboard.home / ".config" / "opencode", pegboard.project / ".opencode"
    write(top / "AGENTS.md", "Be brief.")
    write(pegboard.project / "AGENTS.md", "Be brief.")
    write(pegboard.project / "opencode.json", {"mcp": {"clock": {"command": ["x"]}, "b": {}}})
    for folder in (top, inner):
        write(folder / "skill" / "s" / "SKILL.md", "---\nname: s\ndescription: d\n---\n")
        write(folder / "plugin" / "p.ts", "")
        write(folder / "plugins" / "q.js", "")
        write(folder / "tool" / "t.ts", "")
        write(folder / "themes" / "dark.json", "{}")

    found = await rows(pegboard, "opencode")

    named = [each["found"] for each in found]
    for name in ("instructions", "skill s", "plugin p", "plugin q", "tool t", "theme dark"):
        assert named.count(name) == 2, name
    assert {each["state"] for each in found if each["found"] == "skill s"} == {"acts"}
    assert {each["state"] for each in found if each["found"] == "tool t"} == {"cannot"}
    servers = [each for each in found if each["found"].startswith("MCP server ")]
    has_mcp = "mcp" in {each.name for each in entry_points(group="pegboard")}
    assert [each["found"] for each in servers] == ["MCP server clock", "MCP server b"]
    assert {each["state"] for each in servers} == {"trust" if has_mcp else "cannot"}


async def test_a_terminal_shows_all_of_a_report_and_a_table_only_where_it_fits(
    used: CommandLine,
) -> None:
    long = "x" * 80
    write(used.home / ".claude" / "commands" / f"{long[:60]}.md", "Ship $1.")
    write(used.home / ".claude" / "settings.json", {"permissions": {"deny": [f"Teleport({long})"]}})
    found = await rows(used, "claude")
    shown: list[list[str]] = []
    for columns in (60, 1000):
        async with used.terminal("import", "claude", "--dry-run", columns=columns) as terminal:
            await terminal.end()
        shown.append(terminal.shown.splitlines())
    narrow, (header, *wide) = shown

    assert f"deny Teleport({long})" in {each["found"] for each in found}
    assert header.split() == ["FOUND", "FILE", "STATE", "BECOMES"]
    for n, each in enumerate(found):
        becomes = "; ".join(filter(None, (each["becomes"], each["reason"])))
        assert narrow[2 * n].startswith(f"{each['found']} ({each['file']}): ")
        assert narrow[2 * n + 1] == f"  {becomes}"
        assert re.split("  +", wide[n])[:2] == [each["found"], each["file"]]
        assert wide[n].endswith(f"  {becomes}")
