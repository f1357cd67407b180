"""Bundles: folders of other agents' parts, installed and then at work in real turns."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard import App
from pegboard.paths import UserFolders
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard_plugins.shared.frontend import (
    BundleStore,
    CommandOrder,
    read_bundle,
    read_bundles,
    run_command,
)
from pegboard_plugins.shared.frontend.bundlemanifest import SCHEMAS, BundleError
from support.plugins.hook_house import SHELL, House

PLUGIN = {"$schema": f"{SCHEMAS}/plugin.schema.json", "name": "house-kit"}
MCP = f"{SCHEMAS}/mcp.schema.json"
Change = Callable[[Path], object]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def write(root: Path, name: str, content: object) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def claude_bundle(root: Path, command: str) -> Path:
    """Write a plugin of Claude Code with a part of each kind, and a hook with this command."""
    write(root, ".claude-plugin/plugin.json", {"name": "house-rules", "version": "1.0"})
    write(root, "commands/greet.md", "Greet $ARGUMENTS by ${CLAUDE_PLUGIN_ROOT}.")
    write(root, "agents/judge.md", "---\nname: judge\ndescription: Judges.\n---\nJudge it.")
    write(root, "skills/release/SKILL.md", "---\nname: release\ndescription: d\n---\nTag it.")
    hook = {"type": "command", "command": command}
    write(root, "hooks/hooks.json", {"hooks": {"PreToolUse": [{"hooks": [hook]}]}})
    write(root, ".mcp.json", {"mcpServers": {"tickets": {"command": "./serve", "args": ["-q"]}}})
    write(root, ".lsp.json", {})
    return root


def guarding(root: Path) -> Path:
    """Write a bundle whose hook's script denies each call."""
    bundle = claude_bundle(root, 'sh "${CLAUDE_PLUGIN_ROOT}"/check.sh')
    write(bundle, "check.sh", 'echo "the bundle says no" >&2; exit 2\n')
    return bundle


def places(house: House) -> UserFolders:
    return UserFolders(**house.folders)


def add(house: House, source: object) -> str:
    return house.trust("plugins", "bundle", "add", str(source))


async def test_the_parts_of_a_bundle_work_once_it_is_trusted(house: House, tmp_path: Path) -> None:
    printed = add(house, guarding(tmp_path / "bundle"))
    task = {"description": "d", "prompt": "SUB", "subagent_type": "house-rules:judge"}
    scripts = [
        {"when": {"system": "Judge it"}, "steps": [{"text": "Judged."}]},
        {"when": {"prompt": "Greet Ada"}, "steps": [{"text": "Hello, Ada."}]},
        {"steps": [{"calls": [SHELL]}, {"text": "."}]},
    ]
    async with house.played(scripts) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        order = CommandOrder(name="house-rules:greet", arguments="Ada")
        greeted = await run_command(app, session.id, order)
        turns = await app.list_turns(session.id)
        agents, servers = set(app.agents), app.config.mcp
    (part,) = [each for turn in turns for each in turn.parts if isinstance(each, ToolPart)]

    assert isinstance(part.state, Failed)
    assert "the bundle says no" in part.state.error
    assert greeted.text == "Hello, Ada."
    assert task["subagent_type"] in agents
    assert servers["tickets"]["command"][1:] == ["-q"]
    assert "PLUGIN_ROOT" in servers["tickets"]["environment"]
    assert "hook: PreToolUse" in printed
    assert "language servers is not honoured" in printed


async def test_a_skill_of_a_bundle_can_be_read(house: House, tmp_path: Path) -> None:
    add(house, claude_bundle(tmp_path / "bundle", "true"))
    await house.run({"tool": "skill", "input": {"name": "release"}})

    assert isinstance(house.ended, Completed)
    assert "Tag it." in house.ended.output


async def _acts(house: House) -> bool:
    """Return whether anything of the bundle acts in a new App."""
    await house.run(SHELL)
    async with App.open(house.project, house.options(config={"model": "scripted/demo"})) as app:
        parts = [*app.commands, *app.agents, *app.config.mcp]
    return not house.ran or any("house-rules" in each or each == "tickets" for each in parts)


async def test_nothing_of_a_bundle_acts_before_it_is_trusted(house: House, tmp_path: Path) -> None:
    BundleStore(places(house)).add(str(guarding(tmp_path / "bundle")))

    assert not await _acts(house)
    named = [text for text in house.warnings if "plugins bundle trust house-rules" in text]
    assert named != []


def _executable(copy: Path) -> None:
    (copy / "check.sh").chmod(0o755)


def _linked(copy: Path) -> None:
    target = write(copy.parent, "elsewhere.sh", "exit 0\n")
    (copy / "check.sh").unlink()
    (copy / "check.sh").symlink_to(target)


@pytest.mark.parametrize(
    "change",
    [
        lambda copy: write(copy, "check.sh", "exit 2"),
        lambda copy: write(copy, "lib/new.sh", "exit 2"),
        lambda copy: (copy / "agents" / "judge.md").unlink(),
        _executable,
        _linked,
    ],
    ids=["script", "new file", "file gone", "executable", "link"],
)
async def test_a_bundle_that_has_changed_acts_no_more(
    house: House, tmp_path: Path, change: Change
) -> None:
    add(house, guarding(tmp_path / "bundle"))
    change(places(house).data / "bundles" / "house-rules")

    assert not await _acts(house)


async def test_a_bundle_that_changes_while_the_project_is_open_acts_no_more(
    house: House, tmp_path: Path
) -> None:
    add(house, guarding(tmp_path / "bundle"))
    async with house.played([{"steps": [{"calls": [SHELL]}, {"text": "."}]}]) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        denied = not house.ran
        copy = places(house).data / "bundles" / "house-rules"
        write(copy, "check.sh", f"touch {house.trap}; exit 2")
        await app.prompt(session, "Do it")

    assert denied
    assert not house.sprung
    assert house.ran


async def test_a_bundle_can_be_removed(house: House, tmp_path: Path) -> None:
    add(house, guarding(tmp_path / "bundle"))
    BundleStore(places(house)).remove("house-rules")

    assert not await _acts(house)
    assert not (places(house).data / "bundles" / "house-rules").exists()


def test_a_bundle_comes_from_a_git_repository(house: House, tmp_path: Path) -> None:
    root = guarding(tmp_path / "bundle")
    run = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v1"]):
        subprocess.run([*run, *words], check=True, timeout=60)
    write(root / ".git" / "hooks", "post-checkout", f"touch {house.trap}").chmod(0o755)
    add(house, f"{root.as_uri()}#v1")
    found = BundleStore(places(house)).installed()["house-rules"]

    assert len(found.revision) == len("da39a3ee5e6b4b0d3255bfef95601890afd80709")
    assert [each.name for each in read_bundles(places(house), house.project, {}).active] == [
        "house-rules"
    ]
    assert not (places(house).data / "bundles" / "house-rules" / ".git").exists()
    assert not house.sprung


def test_an_update_needs_trust_anew_and_keeps_the_storage(house: House, tmp_path: Path) -> None:
    root = guarding(tmp_path / "bundle")
    add(house, root)
    kept = write(places(house).data / "bundle-data" / "house-rules", "state", "x")
    write(root, "check.sh", "exit 0")
    BundleStore(places(house)).add(str(root))

    assert kept.exists()
    assert read_bundles(places(house), house.project, {}).active == ()


def _agent_plugin(root: Path, facts: object = PLUGIN, servers: object = None) -> Path:
    write(root, "plugin.json", facts)
    write(root, "skills/release/SKILL.md", "---\nname: release\ndescription: d\n---\nTag it.")
    if servers is not None:
        write(root, "mcp.json", {"$schema": MCP, "mcpServers": servers})
    return root


def test_a_bundle_is_known_by_the_whole_path_of_its_folder(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude_bundle(tmp_path / "bundle", "true")
    monkeypatch.chdir(tmp_path)
    store = BundleStore(places(house))
    store.add("bundle")

    assert store.installed()["house-rules"].source == str((tmp_path / "bundle").resolve())


@pytest.mark.parametrize("listed", ["./plugins/rules", "rules"])
def test_a_bundle_comes_from_the_list_of_a_marketplace(
    house: House, tmp_path: Path, listed: str
) -> None:
    market = tmp_path / "market"
    bundle = claude_bundle(market / "plugins" / "rules", "true")
    facts = {"metadata": {"pluginRoot": "./plugins"}}
    entry = {"name": "house-rules", "source": listed}
    write(market, ".claude-plugin/marketplace.json", {**facts, "plugins": [entry]})
    store = BundleStore(places(house))

    added = store.add("house-rules", market=str(market))
    write(bundle, ".claude-plugin/plugin.json", {"name": "house-rules", "version": "2.0"})
    known = store.installed()["house-rules"]
    again = store.add(known.source, market=known.market)

    assert (added.version, again.version) == ("1.0", "2.0")


def test_a_bundle_of_a_list_can_be_a_repository(house: House, tmp_path: Path) -> None:
    root = claude_bundle(tmp_path / "bundle", "true")
    run = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v1"]):
        subprocess.run([*run, *words], check=True, timeout=60)
    source = {"source": "url", "url": root.as_uri(), "ref": "v1"}
    listed = {"plugins": [{"name": "house-rules", "source": source}]}
    write(tmp_path / "market", ".claude-plugin/marketplace.json", listed)

    added = BundleStore(places(house)).add("house-rules", market=str(tmp_path / "market"))

    assert added.name == "house-rules"


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ({"plugins": []}, "it lists: none"),
        ({"plugins": [{"name": "a", "source": "../bundle"}]}, "is no folder of"),
        ({"plugins": [{"name": "a", "source": {"source": "npm"}}]}, "cannot be fetched"),
        ({"plugins": [{"name": "a"}]}, "is no list of bundles"),
        ([], "it lists: none"),
        ("x", "is no list of bundles"),
    ],
)
def test_a_list_that_has_no_such_bundle_says_why(
    house: House, tmp_path: Path, listed: object, why: str
) -> None:
    claude_bundle(tmp_path / "bundle", "true")
    write(tmp_path / "market", ".claude-plugin/marketplace.json", listed)

    with pytest.raises(BundleError, match=why):
        BundleStore(places(house)).add("a", market=str(tmp_path / "market"))


def test_an_agent_plugin_has_skills_and_servers(tmp_path: Path) -> None:
    local = {
        "type": "stdio",
        "command": "./bin/serve",
        "args": ["${PLUGIN_DATA}/x"],
        "cwd": "./bin",
    }
    remote = {"type": "streamable-http", "url": "https://tools.example/mcp"}
    root = _agent_plugin(tmp_path / "kit", servers={"local": local, "remote": remote})
    bundle = read_bundle(root, tmp_path / "data")

    assert (bundle.name, bundle.form, bundle.notes) == ("house-kit", "Agent Plugins", ())
    assert bundle.skills == (root / "skills" / "release",)
    assert bundle.servers["local"]["command"] == [
        str(root / "bin/serve"),
        f"{tmp_path / 'data'}/x",
    ]
    assert bundle.servers["remote"] == {"type": "remote", "url": "https://tools.example/mcp"}


@pytest.mark.parametrize(
    "facts",
    [
        {**PLUGIN, "name": name}
        for name in ("", "A", "a--b", "a..b", "-a", "a-", "a_b", "../a", "a" * 65, 7, None)
    ]
    + [
        {"name": "house-kit"},
        {**PLUGIN, "$schema": "https://agent-plugins.org/schemas/2.0.0/plugin.schema.json"},
        {**PLUGIN, "version": 1},
        {**PLUGIN, "description": ["x"]},
        {**PLUGIN, "author": "x"},
        {**PLUGIN, "author": {"name": 7}},
        {**PLUGIN, "author": {"name": "x", "phone": "7"}},
        {**PLUGIN, "homepage": 7},
        {**PLUGIN, "repository": {"url": "x"}},
        {**PLUGIN, "license": ["MIT"]},
        {**PLUGIN, "keywords": "x"},
        {**PLUGIN, "keywords": [7]},
        [],
        "{",
    ],
    ids=str,
)
def test_a_broken_manifest_is_refused(tmp_path: Path, facts: object) -> None:
    with pytest.raises(BundleError):
        read_bundle(_agent_plugin(tmp_path / "kit", facts), tmp_path / "data")


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not a bundle"):
        read_bundle(tmp_path, tmp_path / "data")


def test_a_link_out_of_a_bundle_is_refused(tmp_path: Path) -> None:
    root = _agent_plugin(tmp_path / "kit")
    (root / "skills" / "other").symlink_to(tmp_path)

    with pytest.raises(BundleError, match="leads out"):
        read_bundle(root, tmp_path / "data")


@pytest.mark.parametrize(
    "server",
    [
        {"command": "serve"},
        {"type": "http", "url": "https://tools.example"},
        {"type": "stdio"},
        {"type": "stdio", "command": "../bin/x"},
        {"type": "stdio", "command": "./../bin/x"},
        {"type": "stdio", "command": "/bin/sh"},
        {"type": "stdio", "command": "sh -c x"},
        {"type": "stdio", "command": "serve", "args": "x"},
        {"type": "stdio", "command": "serve", "env": {"A": 1}},
        {"type": "stdio", "command": "serve", "cwd": "../x"},
        {"type": "stdio", "command": "serve", "cwd": "x"},
        {"type": "stdio", "command": "serve", "url": "https://x.example"},
        {"type": "stdio", "command": "serve", "cwd": "${PLUGIN_ROOT}x"},
        {"type": "stdio", "command": "serve", "env": {"PLUGIN_DATA": "x"}},
        {"type": "stdio", "command": "${PLUGIN_ROOT}"},
        {"type": "sse", "url": "https://x.example", "headers": {"A": "1", "a": "2"}},
        {"type": "sse", "url": "http://tools.example"},
        {"type": "sse", "url": "https://x.example", "headers": {"A": 1}},
        "serve",
    ],
    ids=str,
)
def test_a_broken_server_is_left_out_and_named(tmp_path: Path, server: Any) -> None:
    good = {"type": "stdio", "command": "serve"}
    root = _agent_plugin(tmp_path / "kit", servers={"good": good, "bad": server})
    bundle = read_bundle(root, tmp_path / "data")

    assert list(bundle.servers) == ["good"]
    assert [note for note in bundle.notes if note.startswith("the server bad (")] != []


@pytest.mark.parametrize("change", [{"colour": "red"}, {"mcpServers": []}, {"mcpServers": None}])
def test_a_broken_list_of_servers_is_left_out_and_named(tmp_path: Path, change: Any) -> None:
    good = {"type": "stdio", "command": "serve"}
    root = _agent_plugin(tmp_path / "kit")
    write(root, "mcp.json", {"$schema": MCP, "mcpServers": {"good": good}, **change})
    bundle = read_bundle(root, tmp_path / "data")

    assert (dict(bundle.servers), len(bundle.notes), len(bundle.skills)) == ({}, 1, 1)
    assert bundle.notes[0].startswith("mcp.json is not honoured: ")


def test_a_folder_of_both_forms_has_the_parts_of_both(tmp_path: Path) -> None:
    root = claude_bundle(_agent_plugin(tmp_path / "kit", servers={}), "true")
    bundle = read_bundle(root, tmp_path / "data")

    assert (bundle.name, bundle.form, dict(bundle.servers)) == ("house-kit", "Agent Plugins", {})
    assert bundle.skills == (root / "skills" / "release",)
    assert (bundle.agents, bundle.commands) == ((root / "agents",), (root / "commands",))
    assert bundle.hooks == (root / "hooks" / "hooks.json",)


def test_a_server_of_an_agent_plugin_starts_in_its_folder(tmp_path: Path) -> None:
    root = _agent_plugin(tmp_path / "kit", servers={"a": {"type": "stdio", "command": "serve"}})

    assert read_bundle(root, tmp_path / "data").servers["a"]["cwd"] == str(root)
