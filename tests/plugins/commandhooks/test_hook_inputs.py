"""The input of hooks as each product has it, in runs of a scripted model."""

import json
from pathlib import Path

import jsonschema
import pytest

from support.plugins.hook_house import CLAUDE, CODEX, GEMINI, SHELL, House, Json

SCHEMAS = json.loads((Path(__file__).parents[2] / "data" / "codex-hook-schemas.json").read_text())
TASK = {"description": "d", "prompt": "SUB", "subagent_type": "general"}
SCRIPTS: list[Json] = [
    {"when": {"tools": False}, "steps": [{"text": "Summary."}]},
    {"when": {"prompt": "SUB"}, "steps": [{"text": "Sub."}]},
    {"steps": [{"calls": [SHELL, {"tool": "task", "input": TASK}]}, {"text": "Done."}]},
]
CODEX_EVENTS = {
    "PreToolUse": "pre-tool-use",
    "PostToolUse": "post-tool-use",
    "UserPromptSubmit": "user-prompt-submit",
    "SessionStart": "session-start",
    "SessionEnd": "session-end",
    "SubagentStart": "subagent-start",
    "SubagentStop": "subagent-stop",
    "Stop": "stop",
    "PreCompact": "pre-compact",
    "PostCompact": "post-compact",
}
COMMON = {"session_id", "transcript_path", "cwd", "hook_event_name"}
OF_CLAUDE = COMMON | {"permission_mode", "prompt_id"}
OF_AGENTS = {"agent_id", "agent_type"}
CLAUDE_FIELDS = {
    "PreToolUse": {"tool_name", "tool_input", "tool_use_id"},
    "PostToolUse": {"tool_name", "tool_input", "tool_use_id", "tool_response"},
    "PostToolBatch": {"tool_calls"},
    "UserPromptSubmit": {"prompt"},
    "SessionStart": {"source", "model"},
    "SessionEnd": {"reason"},
    "SubagentStart": OF_AGENTS,
    "SubagentStop": {
        *OF_AGENTS,
        *("stop_hook_active", "last_assistant_message", "agent_transcript_path"),
    },
    "Stop": {"stop_hook_active", "last_assistant_message"},
    "PreCompact": {"trigger", "custom_instructions"},
    "PostCompact": {"trigger", "compact_summary"},
}
GEMINI_FIELDS = {
    "BeforeTool": {"tool_name", "tool_input"},
    "AfterTool": {"tool_name", "tool_input", "tool_response"},
    "BeforeAgent": {"prompt"},
    "AfterAgent": {"prompt", "prompt_response", "stop_hook_active"},
    "SessionStart": {"source"},
    "SessionEnd": {"reason"},
    "PreCompress": {"trigger"},
}


async def _inputs(house: House, at: str, events: list[str]) -> dict[str, list[Json]]:
    """Return what hooks of these events are given in a turn with a subagent and a summary."""
    for event in events:
        (house.home / event).mkdir()
    groups = {
        event: [{"hooks": [{"type": "command", "command": f"cat > {house.home}/{event}/$$"}]}]
        for event in events
    }
    file = house.home / at
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"hooks": groups}))
    async with house.played(SCRIPTS) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        await app.summarize(session.id)
    return {
        event: [json.loads(each.read_text()) for each in (house.home / event).iterdir()]
        for event in events
    }


async def test_the_input_of_codex_hooks_fits_its_schemas(tmp_path: Path) -> None:
    found = await _inputs(House(tmp_path), CODEX, list(CODEX_EVENTS))
    for event, name in CODEX_EVENTS.items():
        for given in found[event]:
            jsonschema.validate(given, SCHEMAS[f"{name}.command.input"])

    assert [event for event, inputs in found.items() if not inputs] == []


@pytest.mark.parametrize(
    ("at", "common", "fields"),
    [(CLAUDE, OF_CLAUDE, CLAUDE_FIELDS), (GEMINI, COMMON | {"timestamp"}, GEMINI_FIELDS)],
)
async def test_the_input_of_a_hook_has_the_fields_of_its_product(
    tmp_path: Path, at: str, common: set[str], fields: dict[str, set[str]]
) -> None:
    found = await _inputs(House(tmp_path), at, list(fields))

    lacking = {
        event: sorted((common | wanted) - given.keys())
        for event, wanted in fields.items()
        for given in found[event]
    }
    assert [event for event, inputs in found.items() if not inputs] == []
    assert {event: names for event, names in lacking.items() if names} == {}
