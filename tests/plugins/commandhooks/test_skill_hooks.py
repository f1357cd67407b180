"""Hooks in the front matter of skills count from the use of the skill on, and by digest."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import App
from pegboard.schema.event import SessionWarned
from pegboard.testing import EventRecorder
from pegboard.unstable import TrustStore
from pegboard_plugins.commandhooks.hookfiles import read_hooks
from pegboard_plugins.shared.frontend import CommandOrder, UnseenDocuments, run_command
from support.plugins.hook_house import SHELL, House

USE = {"tool": "skill", "input": {"name": "safe"}}
DENY = "echo guarded >&2; exit 2"
SKILL = """---
name: safe
description: Work safely.
hooks:
  {event}:
    - matcher: "{matcher}"
      hooks:
        - type: command
          command: {command}
{more}
---
Work safely.
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def skill(folder: Path, event: str, command: str, *, matcher: str = "", **more: str) -> Path:
    """Write a skill with a hook into the folder's `.claude/skills`, and return its file."""
    file = folder / ".claude" / "skills" / "safe" / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    fields = "\n".join(f"          {name}: {value}" for name, value in more.items())
    line = json.dumps(command)
    text = SKILL.format(event=event, command=line, matcher=matcher, more=fields)
    file.write_text(text)
    return file


def script(*calls: dict[str, Any], when: str = "") -> dict[str, Any]:
    steps = [*({"calls": [each]} for each in calls), {"text": "Done."}]
    return {"when": {"prompt": when}, "steps": steps} if when else {"steps": steps}


async def test_a_hook_of_a_skill_counts_from_its_use_on(house: House) -> None:
    skill(house.home, "PreToolUse", DENY, matcher="Bash")

    await house.run(SHELL, USE)
    assert house.ran
    (house.project / "ran.txt").unlink()

    await house.run(USE, SHELL)
    assert not house.ran
    assert house.warnings == []


async def test_a_hook_of_a_skill_counts_in_sessions_that_use_it(house: House) -> None:
    skill(house.home, "PreToolUse", DENY, matcher="Bash")
    async with house.played([script(USE, when="Use it"), script(SHELL)]) as app:
        await app.prompt(await app.create_session(), "Use it")
        await app.prompt(await app.create_session(), "Do it")

    assert house.ran


async def test_a_slash_command_uses_the_skill(house: House) -> None:
    skill(house.home, "UserPromptExpansion", f"touch {house.trap}")
    async with house.played([script(SHELL)]) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="safe", arguments=""))

    assert house.sprung


async def test_a_hook_counts_in_the_subagents_of_a_session_that_used_the_skill(
    house: House,
) -> None:
    skill(house.home, "PreToolUse", DENY, matcher="Bash")
    task = {"description": "Do", "prompt": "Run it.", "subagent_type": "general"}
    delegate = {"tool": "task", "input": task}
    child = script(SHELL, when="Run it")
    async with house.played([child, script(delegate)]) as app:
        await app.prompt(await app.create_session(), "Do it")
    assert house.ran
    (house.project / "ran.txt").unlink()

    async with house.played([child, script(USE, delegate)]) as app:
        await app.prompt(await app.create_session(), "Do it")
    assert not house.ran


async def test_a_hook_of_a_skill_that_forks_counts_in_the_subagent(house: House) -> None:
    file = skill(house.home, "PreToolUse", DENY, matcher="Bash")
    file.write_text(file.read_text().replace("hooks:", "context: fork\nhooks:", 1))
    async with house.played([script(SHELL)]) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="safe", arguments=""))
        assert await app.children(session.id) != []

    assert not house.ran


@pytest.mark.parametrize("by", ["call", "command"])
async def test_a_hook_counts_after_the_session_is_opened_again(house: House, by: str) -> None:
    skill(house.home, "PreToolUse", DENY, matcher="Bash")
    async with house.played([script(*([USE] if by == "call" else []))]) as app:
        session = await app.create_session()
        if by == "call":
            await app.prompt(session, "Use it")
        else:
            await run_command(app, session.id, CommandOrder(name="safe", arguments="a b"))
    async with house.played([script(SHELL)]) as app:
        await app.prompt(session.id, "Do it")

    assert not house.ran


async def test_a_hook_with_once_runs_once_per_session(house: House) -> None:
    skill(house.home, "PreToolUse", f"echo x >> {house.trap}", matcher="Bash", once="true")
    async with house.played([script(USE, SHELL, SHELL), script(USE, SHELL, SHELL)]) as app:
        for _ in range(2):
            await app.prompt(await app.create_session(), "Do it")

    assert house.trap.read_text() == "x\nx\n"


def test_fields_of_front_matter_have_the_types_of_json(house: House) -> None:
    fields = {"timeout": "7", "async": "true", "onFailure": "block", "once": "true"}
    file = skill(house.home, "Stop", "true", **fields)
    read = read_hooks("claude", file, is_project=False)

    assert read is not None
    assert read.notes == ()
    (hook,) = read.hooks
    assert (hook.command, hook.timeout_s, hook.is_async, hook.once) == ("true", 7, True, True)
    assert hook.blocks_on_failure


@pytest.mark.parametrize(
    ("hooks", "why"),
    [
        ("hooks: all of them", "its `hooks` are not a table of events"),
        ("hooks: &a\n  Stop: [*a]", "its `hooks` are not a table of events"),
        ("x: &a []\nhooks:\n  Stop: *a\n  SessionEnd: *a", "a YAML alias"),
    ],
)
def test_hooks_of_a_skill_that_cannot_be_read_are_named(house: House, hooks: str, why: str) -> None:
    file = house.project / "SKILL.md"
    file.write_text(f"---\nname: safe\ndescription: d\n{hooks}\n---\nx")
    read = read_hooks("claude", file, is_project=False)

    assert read is not None
    assert read.hooks == ()
    assert why in read.notes[0]


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop", "SessionEnd"])
@pytest.mark.parametrize("code", [False, True])
async def test_no_hook_of_a_project_s_skill_runs_without_trust(
    house: House, event: str, *, code: bool
) -> None:
    skill(house.project, event, f"touch {house.trap}")
    if code:
        async with App.open(house.project, house.options()) as app:
            TrustStore(app.places.trust).allow(app.trust)
    await house.run(USE, SHELL)

    assert house.ran
    assert not house.sprung
    assert [each for each in house.warnings if ".claude/skills/safe/SKILL.md" in each] != []


async def test_no_hook_of_a_project_s_slash_command_runs_without_trust(house: House) -> None:
    skill(house.project, "UserPromptExpansion", f"touch {house.trap}")
    for may_run in (False, True):
        if may_run:
            house.trust()
        async with house.played([script()]) as app:
            session = await app.create_session()
            await run_command(app, session.id, CommandOrder(name="safe", arguments=""))
        assert house.sprung is may_run


@pytest.mark.parametrize("words", [("hooks", "trust"), ("trust", "allow")])
async def test_a_trusted_hook_of_a_skill_runs_until_its_files_change(
    house: House, words: tuple[str, ...]
) -> None:
    file = skill(house.project, "PreToolUse", 'sh "$CLAUDE_SKILL_DIR"/check.sh', matcher="Bash")
    (file.parent / "check.sh").write_text(f"{DENY}\n")
    listed = house.trust(*words)
    assert str(file) in listed
    await house.run(USE, SHELL)
    assert not house.ran

    (file.parent / "check.sh").write_text(f"touch {house.trap}\n")
    await house.run(USE, SHELL)
    assert house.ran

    (file.parent / "check.sh").write_text(f"{DENY}\n")
    file.write_text(file.read_text().replace("check.sh", f"check.sh; touch {house.trap}"))
    await house.run(USE, SHELL)
    assert not house.sprung


@pytest.mark.parametrize("link", ["skill", "environment"])
async def test_a_skill_behind_a_link_is_the_project_s(house: House, link: str) -> None:
    if link == "skill":
        file = skill(house.project, "PreToolUse", f"touch {house.trap}")
        place = house.home / ".claude" / "skills"
        place.mkdir(parents=True)
        (place / "safe").symlink_to(file.parent.rename(house.project / "elsewhere"))
    else:
        skill(house.home, "PreToolUse", f"touch {house.trap}")
        (house.project / ".claude").symlink_to(house.project / "inner", target_is_directory=True)
        (house.home / ".claude").rename(house.project / "inner")
    await house.run(USE, SHELL)

    assert not house.sprung
    assert house.warnings != []


async def test_a_skill_that_an_agent_wrote_runs_nothing(house: House) -> None:
    file = skill(house.home, "PreToolUse", f"touch {house.trap}")
    async with house.played([script()]) as app:
        UnseenDocuments(app.places.unseen_documents).note([file.resolve()])
    await house.run(USE, SHELL)

    assert house.ran
    assert not house.sprung
    assert [each for each in house.warnings if "an agent wrote the file" in each] != []


async def test_the_list_of_hooks_has_those_of_skills(house: House) -> None:
    mine = skill(house.home, "PreToolUse", DENY, matcher="Bash")
    theirs = skill(house.project, "Stop", "true")
    theirs.write_text(theirs.read_text().replace("name: safe", "name: other"))
    listed = house.command("hooks", "list")

    assert f"{mine} (runs with its skill)\n  PreToolUse Bash: {DENY} (" in listed
    assert f"{theirs} (not trusted)\n  Stop *: true (" in listed


async def test_a_lock_covers_the_hooks_of_skills(house: House) -> None:
    file = skill(house.project, "PreToolUse", DENY, matcher="Bash")
    house.lock()
    await house.run(USE, SHELL)
    assert not house.ran

    file.write_text(file.read_text().replace(DENY, f"touch {house.trap}"))
    await house.run(USE, SHELL)
    assert not house.sprung


async def test_hooks_of_an_agent_are_named_and_do_not_run(house: House) -> None:
    file = skill(house.home, "PreToolUse", f"touch {house.trap}")
    agent = house.home / ".claude" / "agents" / "safe.md"
    agent.parent.mkdir()
    file.rename(agent)
    task = {"description": "Do", "prompt": "Run it.", "subagent_type": "safe"}
    scripts = [script(SHELL, when="Run it"), script({"tool": "task", "input": task})]
    async with house.played(scripts) as app, EventRecorder(app) as seen:
        await app.prompt(await app.create_session(), "Do it")

    assert house.ran
    assert not house.sprung
    (warning,) = seen.of(SessionWarned)
    assert "~/.claude/agents/safe.md: hooks" in warning.message


async def test_a_hook_with_args_needs_no_shell(house: House) -> None:
    house.hook("PreToolUse", "sh", args=["-c", "test \"$1\" = '$HOME' || exit 2", "x", "$HOME"])
    await house.run(SHELL)
    assert house.ran
    (house.project / "ran.txt").unlink()

    house.hook("PreToolUse", "sh", args=["-c", DENY])
    await house.run(SHELL)
    assert not house.ran


@pytest.mark.parametrize("whose", ["user", "project"])
async def test_a_hook_of_a_bundle_s_skill_runs_once_the_bundle_is_trusted(
    house: House, whose: str
) -> None:
    place = house.project / ".agents" / "plugins" if whose == "project" else house.home
    root = place / "kit"
    file = skill(root, "PreToolUse", 'sh "${CLAUDE_PLUGIN_ROOT}"/check.sh', matcher="Bash")
    (root / ".claude-plugin").mkdir()
    (root / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "kit"}))
    (root / "check.sh").write_text(f"{DENY}\n")
    (root / "skills").mkdir()
    file.parent.rename(root / "skills" / "safe")
    await house.run(USE, SHELL)
    assert house.ran
    (house.project / "ran.txt").unlink()

    words = ["plugins", "bundle", "add", str(root)] if whose == "user" else ["trust", "allow"]
    house.trust(*words)
    await house.run(USE, SHELL)
    assert not house.ran
