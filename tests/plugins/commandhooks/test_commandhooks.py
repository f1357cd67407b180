"""Hook files of other agents, with real shells, scripts and runs of a scripted model."""

import json
from pathlib import Path

import pytest

from pegboard.errors import PromptRefusedError
from pegboard.schema.message import AssistantMessage, StoppedFailure
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard_plugins.commandhooks.toolnames import foreign_calls
from support.plugins.hook_house import (
    CLAUDE,
    CODEX,
    GEMINI,
    SHELL,
    WRITE,
    House,
    Json,
    decided,
    own,
)

MISSING = {"tool": "read", "input": {"filePath": "none.txt"}}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.parametrize(
    ("at", "event", "answer", "code"),
    [
        (CLAUDE, "PreToolUse", decided("deny"), 0),
        (CLAUDE, "PreToolUse", decided("ask"), 0),
        (CLAUDE, "PreToolUse", decided("defer"), 0),
        (CLAUDE, "PreToolUse", {"decision": "block", "reason": "no"}, 0),
        (CODEX, "PreToolUse", decided("deny"), 0),
        (GEMINI, "BeforeTool", {"decision": "deny", "reason": "no"}, 0),
        (GEMINI, "BeforeTool", {"decision": "block", "reason": "no"}, 3),
        (GEMINI, "BeforeTool", "no", 3),
        (GEMINI, "BeforeTool", "no", 2),
    ],
)
async def test_a_call_that_a_hook_denies_does_not_run(
    house: House, at: str, event: str, answer: Json | str, code: int
) -> None:
    house.hook(event, house.saying(answer, code=code), at=at)
    await house.run(SHELL)

    assert not house.ran
    assert isinstance(house.ended, Failed)
    assert "no" in house.ended.error


@pytest.mark.parametrize("at", [CLAUDE, CODEX])
async def test_exit_code_2_blocks_with_the_text_of_stderr(house: House, at: str) -> None:
    house.hook("PreToolUse", "echo house rule >&2; exit 2", at=at, matcher="Bash")
    await house.run(SHELL)

    assert not house.ran
    assert isinstance(house.ended, Failed)
    assert "house rule" in house.ended.error


@pytest.mark.parametrize(
    ("at", "event", "command"),
    [
        (CLAUDE, "PreToolUse", "exit 1"),
        (CLAUDE, "PreToolUse", "echo x >&2; exit 3"),
        (CLAUDE, "PreToolUse", "echo '{broken'"),
        (CLAUDE, "PreToolUse", "/no/such/program"),
        (CODEX, "PreToolUse", "exit 2"),
        (GEMINI, "BeforeTool", "exit 2"),
        (GEMINI, "BeforeTool", "echo warned; exit 1"),
    ],
)
async def test_a_failure_lets_the_call_run_as_it_does_elsewhere(
    house: House, at: str, event: str, command: str
) -> None:
    house.hook(event, command, at=at)
    await house.run(SHELL)

    assert house.ran


@pytest.mark.parametrize("command", ["exit 1", "echo '{broken'", "sleep 30"])
async def test_a_failure_blocks_where_the_file_says_so(house: House, command: str) -> None:
    house.hook("PreToolUse", command, onFailure="block", timeout=1)
    await house.run(SHELL)

    assert not house.ran


async def test_an_allow_of_a_hook_loosens_nothing(house: House) -> None:
    house.hook("PreToolUse", house.saying(own("PreToolUse", permissionDecision="allow")))
    await house.run(SHELL, config={"permission": {"*": "allow", "bash": "deny"}})

    assert not house.ran


async def test_of_two_hooks_the_deny_wins(house: House) -> None:
    house.hook("PreToolUse", house.saying(own("PreToolUse", permissionDecision="allow")))
    house.hook("PreToolUse", "echo no >&2; exit 2", at=CODEX)
    await house.run(SHELL)

    assert not house.ran


@pytest.mark.parametrize(
    ("at", "event", "answer"),
    [
        (
            CLAUDE,
            "PreToolUse",
            own("PreToolUse", updatedInput={"file_path": "other.txt", "content": "new\n"}),
        ),
        (GEMINI, "BeforeTool", own("BeforeTool", tool_input={"file_path": "other.txt"})),
    ],
)
async def test_a_hook_changes_the_arguments_of_a_call(
    house: House, at: str, event: str, answer: Json
) -> None:
    house.hook(event, house.saying(answer), at=at)
    await house.run(WRITE)

    assert (house.project / "other.txt").exists()
    assert not (house.project / "made.txt").exists()


@pytest.mark.parametrize(
    ("at", "event", "name", "path"),
    [
        (CLAUDE, "PreToolUse", "Write", "file_path"),
        (GEMINI, "BeforeTool", "write_file", "file_path"),
    ],
)
async def test_a_hook_is_given_their_names_and_absolute_paths(
    house: House, at: str, event: str, name: str, path: str
) -> None:
    house.hook(event, house.saying(""), at=at)
    await house.run(WRITE)

    given = house.given
    assert given["hook_event_name"] == event
    assert given["tool_name"] == name
    assert given["tool_input"] == {
        "file_path": str(house.project / "made.txt"),
        "content": "text\n",
    }
    assert given["cwd"] == str(house.project)
    assert {"session_id", "transcript_path"} <= set(given)


@pytest.mark.parametrize(
    ("matcher", "fits"),
    [
        *((None, True), ("", True), ("*", True), ("Bash", True), ("Read|Bash", True)),
        *(("Read, Bash", True), ("Bas", False), ("^Ba", True), ("Rea.*", False), ("[", True)),
    ],
)
async def test_a_matcher_chooses_the_calls(
    house: House, matcher: str | None, *, fits: bool
) -> None:
    house.hook("PreToolUse", "exit 2", matcher=matcher)
    await house.run(SHELL)

    assert house.ran is not fits


@pytest.mark.parametrize(
    ("rule", "command", "fits"),
    [
        ("Bash(git push:*)", "git push origin", True),
        ("Bash(git push:*)", "true && git push", True),
        ("Bash(git push:*)", "A=1 git push", True),
        ("Bash(git push:*)", "echo x", False),
        ("Bash(git push:*)", "echo $(git push)", True),
        ("Bash(git push:*)", "echo 'unclear'", True),
        ("Read(*)", "echo x", False),
    ],
)
async def test_a_rule_chooses_the_calls(
    house: House, rule: str, command: str, *, fits: bool
) -> None:
    house.hook("PreToolUse", "echo stopped >&2; exit 2", **{"if": rule})
    await house.run({"tool": "bash", "input": {"command": command, "description": "x"}})

    stopped = isinstance(house.ended, Failed) and "stopped" in house.ended.error
    assert stopped is fits


def test_each_file_of_a_patch_is_a_call_for_claude_s_hooks(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Update File: b.txt\n@@\n-b\n+c\n"
    calls = list(foreign_calls("claude", "apply_patch", "", {"patchText": patch}, tmp_path))
    (whole,) = foreign_calls("codex", "apply_patch", "", {"patchText": patch}, tmp_path)

    assert [(each.name, each.subject) for each in calls] == [
        ("Write", str(tmp_path / "a.txt")),
        ("Edit", str(tmp_path / "b.txt")),
    ]
    assert whole.input == {"command": patch}
    assert whole.names == ("apply_patch", "Edit", "Write")


def test_a_tool_of_an_mcp_server_has_the_name_that_others_give_it(tmp_path: Path) -> None:
    (call,) = foreign_calls("claude", "git_status", "git", {"repo": "."}, tmp_path)

    assert call.names == ("mcp__git__status", "git_status")


@pytest.mark.parametrize(
    ("at", "event", "answer", "wanted"),
    [
        (CLAUDE, "PostToolUse", own("PostToolUse", additionalContext="seen"), "seen"),
        (CLAUDE, "PostToolUse", {"decision": "block", "reason": "seen"}, "seen"),
        (CLAUDE, "PostToolUse", own("PostToolUse", updatedToolOutput="only this"), "only this"),
        (GEMINI, "AfterTool", own("AfterTool", additionalContext="seen"), "seen"),
    ],
)
async def test_a_hook_adds_to_a_result(
    house: House, at: str, event: str, answer: Json, wanted: str
) -> None:
    house.hook(event, house.saying(answer), at=at)
    await house.run(SHELL)

    assert isinstance(house.ended, Completed)
    assert wanted in house.ended.output
    assert set(house.given["tool_response"]) >= {"stdout", "llmContent"}
    assert house.ended.output == wanted or wanted != "only this"


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [("plain words", "plain words"), (own("X", additionalContext="added"), "added")],
)
@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
async def test_words_behind_a_prompt_reach_the_model(
    house: House, event: str, answer: Json | str, wanted: str
) -> None:
    house.hook(event, house.saying(answer))
    await house.run()

    assert wanted in house.turns[0].text
    if event == "UserPromptSubmit":
        assert house.given["prompt"] == "Do it"
    else:
        assert house.given["source"] == "startup"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"decision": "block", "reason": "a key in it"}, 0),
        ({"continue": False, "stopReason": "a key in it"}, 0),
        (">&2 a key in it", 2),
    ],
)
async def test_a_prompt_that_a_hook_refuses_is_not_read_by_the_model(
    house: House, answer: Json | str, code: int
) -> None:
    house.hook("UserPromptSubmit", house.saying(answer, code=code))
    scripts = [
        {"when": {"prompt": "secret"}, "steps": [{"text": "I saw it."}]},
        {"when": {"prompt": "next"}, "steps": [{"text": "Next."}]},
    ]
    async with house.played(scripts) as app:
        session = await app.create_session()
        with pytest.raises(PromptRefusedError, match="a key in it"):
            await app.prompt(session, "my secret")
        (house.home / "answer").write_text("{}")
        house.hook("UserPromptSubmit", "true")
        after = await app.prompt(session, "next")
        turns = await app.list_turns(session.id)

    assert after.text == "Next."
    assert "my secret" in turns[0].text


@pytest.mark.parametrize(
    ("answer", "code", "denied"),
    [
        (own("PermissionRequest", decision={"behavior": "deny", "message": "no"}), 0, True),
        (own("PermissionRequest", decision={"behavior": "allow"}), 0, True),
    ],
)
async def test_a_request_that_is_asked_about_can_be_denied_and_not_allowed(
    house: House, answer: Json, code: int, *, denied: bool
) -> None:
    house.hook("PermissionRequest", house.saying(answer, code=code))
    await house.run(SHELL, config={"permission": {"*": "allow", "bash": "ask"}})

    assert house.given["hook_event_name"] == "PermissionRequest"
    assert house.ran is not denied


@pytest.mark.parametrize(
    ("event", "call"),
    [
        ("PreToolUse", SHELL),
        ("PermissionRequest", SHELL),
        ("PostToolUse", SHELL),
        ("PostToolUseFailure", MISSING),
        ("PostToolBatch", SHELL),
    ],
)
async def test_a_hook_that_says_stop_ends_the_turn(house: House, event: str, call: Json) -> None:
    house.hook(event, house.saying({"continue": False, "stopReason": "enough"}))
    rules = {"*": "allow", "bash": "ask" if event == "PermissionRequest" else "allow"}
    await house.run(call, call, config={"permission": rules})

    calls = [part for turn in house.turns for part in turn.parts if isinstance(part, ToolPart)]
    assert len(calls) == 1
    assert house.ran is (event in {"PostToolUse", "PostToolBatch"})
    answer = house.turns[-1].info
    assert isinstance(answer, AssistantMessage)
    assert isinstance(answer.error, StoppedFailure)
    file = house.home / CLAUDE
    assert f"a {event} hook stopped the turn: enough (`" in answer.error.data.message
    assert answer.error.data.message.endswith(f"` of {file})")


@pytest.mark.parametrize(
    ("event", "calls"),
    [
        ("Stop", ()),
        ("SessionEnd", ()),
        ("PostToolUseFailure", ({"tool": "read", "input": {"filePath": "none.txt"}},)),
    ],
)
async def test_a_hook_that_only_watches_runs(
    house: House, event: str, calls: tuple[Json, ...]
) -> None:
    house.hook(event, house.saying(""))
    await house.run(*calls)

    assert house.given["hook_event_name"] == event


async def test_a_hook_sees_no_key_of_a_provider(house: House) -> None:
    house.env["OPENAI_API_KEY"] = "sk-secret-of-mine"
    house.hook("PreToolUse", f"env > {house.home}/env.txt")
    await house.run(SHELL)

    seen = (house.home / "env.txt").read_text()
    assert "sk-secret" not in seen
    assert f"CLAUDE_PROJECT_DIR={house.project}" in seen


async def test_hooks_run_at_once_and_are_ended_in_time(house: House) -> None:
    for at in (CLAUDE, CODEX):
        house.hook("PreToolUse", "sleep 60", at=at, timeout=1)
    await house.run(SHELL)

    assert house.ran


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "\x00", '{"hooks": []}', '{"hooks": {"PreToolUse": 7}}'),
        '{"hooks": {"PreToolUse": [7, {"hooks": [7, {"type": 7}, {"type": "http"}]}]}}',
    ],
)
async def test_a_file_that_is_no_hook_file_changes_nothing(house: House, text: str) -> None:
    file = house.home / CLAUDE
    file.parent.mkdir()
    file.write_text(text)
    await house.run(SHELL)

    assert house.ran


async def test_hooks_that_are_switched_off_do_not_run(house: House) -> None:
    file = house.hook("PreToolUse", "exit 2")
    file.write_text(json.dumps({**json.loads(file.read_text()), "disableAllHooks": True}))
    await house.run(SHELL)

    assert house.ran


async def test_words_before_a_call_stand_behind_its_result(house: House) -> None:
    house.hook("PreToolUse", house.saying(own("PreToolUse", additionalContext="mind the gap")))
    await house.run(SHELL)

    assert isinstance(house.ended, Completed)
    assert house.ended.output.endswith("mind the gap")
