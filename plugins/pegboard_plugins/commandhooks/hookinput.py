"""The input of a hook in each product's form: its JSON, environment variables and transcript."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pegboard import SessionView
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Completed, Failed, TextPart, ToolPart
from pegboard_plugins.commandhooks.hookcommand import CommandHook
from pegboard_plugins.commandhooks.toolnames import foreign_calls

_TURN = ("model", "permission_mode", "turn_id")
_AGENT = ("agent_id", "agent_type")
_CALL = ("tool_name", "tool_input")
_CODEX: Mapping[str, tuple[str, ...]] = {
    "PreToolUse": (*_TURN, *_AGENT, *_CALL, "tool_use_id"),
    "PermissionRequest": (*_TURN, *_AGENT, *_CALL),
    "PostToolUse": (*_TURN, *_AGENT, *_CALL, "tool_use_id", "tool_response"),
    "UserPromptSubmit": (*_TURN, *_AGENT, "prompt"),
    "SessionStart": ("model", "permission_mode", "source"),
    "SessionEnd": ("reason",),
    "SubagentStart": (*_TURN, *_AGENT),
    "SubagentStop": (
        *(*_TURN, *_AGENT, "agent_transcript_path"),
        *("last_assistant_message", "stop_hook_active"),
    ),
    "Stop": (*_TURN, "last_assistant_message", "stop_hook_active"),
    "Interrupt": _TURN,
    "PreCompact": ("model", "turn_id", *_AGENT, "trigger"),
    "PostCompact": ("model", "turn_id", *_AGENT, "trigger"),
}
"""The fields of Codex's input by event; its schemas allow no others."""
_OF_GEMINI = frozenset({"prompt", "prompt_response"})
"""The fields of Gemini CLI's input at the end of a turn, which Claude Code's does not have."""
_COMMON = ("session_id", "transcript_path", "cwd", "hook_event_name")


def hook_input(
    hook: CommandHook, session: SessionView, body: Mapping[str, object], transcript: Path
) -> bytes:
    """Return the input of a hook as one line of JSON."""
    fields: dict[str, object] = {
        "session_id": session.id,
        "transcript_path": str(transcript),
        "cwd": str(session.directory),
        "hook_event_name": hook.name,
    }
    if hook.product == "gemini":
        fields["timestamp"] = datetime.now(UTC).isoformat()
        return msgspec.json.encode({**fields, **body}) + b"\n"
    fields["permission_mode"] = _mode(session)
    if session.info.parent_id is not None:
        fields |= {"agent_id": session.id, "agent_type": session.agent.name}
    turn_id = session.turns[-1].prompt_id if session.turns else session.id
    if hook.product == "claude":
        if hook.event == "Stop":
            body = {name: value for name, value in body.items() if name not in _OF_GEMINI}
        return msgspec.json.encode({**fields, "prompt_id": turn_id, **body}) + b"\n"
    fields |= {"turn_id": turn_id, "model": session.model.id, **body}
    wanted = _CODEX.get(hook.event)
    if wanted is not None:
        fields = {name: fields[name] for name in (*_COMMON, *wanted) if name in fields}
    return msgspec.json.encode(fields) + b"\n"


def _mode(session: SessionView) -> str:
    if session.config.auto_approve:
        return "bypassPermissions"
    return "plan" if session.agent.name == "plan" else "default"


def hook_env(hook: CommandHook, session: SessionView) -> dict[str, str]:
    """Return the environment variables that a hook gets in addition to the user's."""
    directory = str(session.directory)
    env = {
        "CLAUDE_PROJECT_DIR": str(session.worktree),
        "CLAUDE_CODE_SESSION_ID": session.id,
        "GEMINI_PROJECT_DIR": directory,
        "GEMINI_CWD": directory,
        "GEMINI_SESSION_ID": session.id,
    }
    if session.agent.variant:
        env["CLAUDE_EFFORT"] = session.agent.variant
    if hook.root is not None and hook.storage is not None:
        env |= {"CLAUDE_PLUGIN_ROOT": str(hook.root), "PLUGIN_ROOT": str(hook.root)}
        env |= {"CLAUDE_PLUGIN_DATA": str(hook.storage), "PLUGIN_DATA": str(hook.storage)}
    if hook.file.suffix == ".md":
        env["CLAUDE_SKILL_DIR"] = str(hook.file.parent)
    if hook.is_project:  # a new file next to a script is a change of the hook
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    return env


def write_transcript(path: Path, session: SessionView) -> None:
    """Write the session's turns in Claude Code's form, one JSON object per line."""
    lines = (line for turn in session.turns for line in _lines(turn, session))
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(text)


def _lines(turn: Turn, session: SessionView) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a turn: its text and calls, then their results."""
    role = "assistant" if isinstance(turn.info, AssistantMessage) else "user"
    content: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in turn.parts:
        match part:
            case TextPart(text=text) if text:
                content.append({"type": "text", "text": text})
            case ToolPart(state=Completed() | Failed() as state):
                (foreign,) = foreign_calls("codex", part.tool, "", state.input, session.directory)
                called = {"id": part.call_id, "name": foreign.name, "input": foreign.input}
                content.append({"type": "tool_use", **called})
                failed = isinstance(state, Failed)
                text = state.error if isinstance(state, Failed) else state.output
                result = {"tool_use_id": part.call_id, "content": text, "is_error": failed}
                results.append({"type": "tool_result", **result})
            case _:
                continue
    for kind, items in ((role, content), ("user", results)):
        if items:
            yield {
                "type": kind,
                "uuid": turn.info.id,
                "sessionId": session.id,
                "cwd": str(session.directory),
                "timestamp": datetime.fromtimestamp(turn.info.time.created / 1000, UTC).isoformat(),
                "message": {"role": kind, "content": items},
            }
