"""Hooks of subagents, summaries and notifications, and what is not honoured."""

import json
from pathlib import Path

import pytest

from pegboard import App
from pegboard_plugins.commandhooks.hookfiles import read_hooks
from support.plugins.hook_house import CLAUDE, CODEX, SHELL, WRITE, House, Json, own


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_a_subagent_has_hooks_of_its_own(house: House) -> None:
    house.hook("SubagentStart", house.saying(own("SubagentStart", additionalContext="be brief")))
    task = {"description": "d", "prompt": "SUB", "subagent_type": "general"}
    calls = [{"tool": "task", "input": task}]
    scripts = [
        {"when": {"prompt": "SUB"}, "steps": [{"text": "Brief."}]},
        {"when": {"prompt": "Do it"}, "steps": [{"calls": calls}, {"text": "."}]},
    ]
    async with house.played(scripts) as app:
        await app.prompt(await app.create_session(), "Do it")
        first, *_ = await app.list_turns(house.given["agent_id"])

    assert house.given["hook_event_name"] == "SubagentStart"
    assert house.given["agent_type"] == "general"
    assert "be brief" in first.text


async def test_words_before_a_summary_are_instructions(house: House) -> None:
    house.hook("PreCompact", house.saying("name each colour"))
    scripts = [
        {"when": {"tools": False, "prompt": "name each colour"}, "steps": [{"text": "Red."}]},
        {"steps": [{"text": "Hello."}]},
    ]
    transcript = house.home / "scripts.json"
    transcript.write_text(json.dumps({"scripts": scripts}))
    config = {"model": f"scripted/{transcript}"}
    async with App.open(house.project, house.options(config=config)) as app:
        session = await app.create_session()
        await app.prompt(session, "Hi")
        summary = await app.summarize(session.id)

    assert summary.text == "Red."
    assert house.given["hook_event_name"] == "PreCompact"


async def test_the_user_s_programs_hear_that_the_user_is_asked(house: House) -> None:
    house.hook("Notification", house.saying(""), matcher="permission_prompt")
    config = {"permission": {"*": "allow", "bash": "ask"}}
    await house.run_asked(config)

    assert house.given["hook_event_name"] == "Notification"
    assert house.given["notification_type"] == "permission_prompt"


@pytest.mark.parametrize(
    ("event", "hook", "wanted"),
    [
        ("BeforeModel", {"type": "command", "command": "x"}, "the event BeforeModel"),
        ("PreToolUse", {"type": "http", "url": "x"}, "the type http"),
        ("PreToolUse", {"type": "prompt", "prompt": "x"}, "the type prompt"),
        ("PreToolUse", {"type": "command", "command": "x", "once": True}, "the field once"),
        ("PreToolUse", {"type": "command", "command": "x", "shell": "powershell"}, "powershell"),
    ],
)
def test_what_is_not_honoured_is_named(tmp_path: Path, event: str, hook: Json, wanted: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}]}}))
    read = read_hooks("claude", file, is_project=False)

    assert read is not None
    assert [note for note in read.notes if wanted in note and str(file) in note] != []


async def test_hooks_in_toml_are_read(house: House) -> None:
    file = house.home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(
        'model = "x"\n[[hooks.PreToolUse]]\nmatcher = "Bash"\n'
        '[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "echo no >&2; exit 2"\n'
    )
    read = read_hooks("codex", file, is_project=False)

    assert read is not None
    assert [(each.event, each.matcher) for each in read.hooks] == [("PreToolUse", "Bash")]


async def test_a_request_is_told_with_the_arguments_of_its_call(house: House) -> None:
    house.hook("PermissionRequest", house.saying(""), matcher="Write")
    await house.run(WRITE, config={"permission": {"*": "allow", "edit": "ask"}})

    assert house.given["tool_name"] == "Write"
    assert house.given["tool_input"]["file_path"] == str(house.project / "made.txt")


async def test_the_user_switches_the_hooks_of_a_project_off(house: House) -> None:
    house.write(house.project / CLAUDE, "PreToolUse", "echo no >&2; exit 2")
    (house.home / ".claude").mkdir()
    settings = house.home / CLAUDE
    settings.write_text("{}")
    await house.run(SHELL, trust=True)
    stopped = not house.ran
    settings.write_text(json.dumps({"disableAllHooks": True}))
    await house.run(SHELL, trust=True)

    assert (stopped, house.ran) == (True, True)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (own("PreToolUse", permissionDecision="ask"), "ask"),
        ({"suppressOutput": True}, "suppressOutput"),
        (own("PreToolUse", updatedInput={}), "updatedInput` without `allow"),
        (own("PreToolUse", permissionDecision="deny"), ""),
    ],
)
async def test_what_codex_refuses_of_its_hooks_is_named(
    house: House, answer: Json, named: str
) -> None:
    house.hook("PreToolUse", house.saying(answer), at=CODEX)
    await house.run(SHELL)

    lines = [each for each in house.warnings if "Codex itself refuses" in each]
    assert len(lines) == bool(named)
    assert all(f"`{named}`; here it counts" in each for each in lines)
