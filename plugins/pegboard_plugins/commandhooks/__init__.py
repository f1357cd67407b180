"""Command hooks of other agents: hook files of Claude Code, Codex and Gemini CLI run as they are.

Those of the user run. Those of a project run after `pegboard hooks trust`, by the digests of the
file and of the scripts that it names. A hook can tighten and never loosen: its allow says nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pegboard import (
    Host,
    PendingCall,
    Plugin,
    SessionView,
    ToolContext,
    ToolError,
    ToolResult,
    evolve,
    hookimpl,
)
from pegboard.permissions import judge_rules
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.part import TextPart
from pegboard.schema.session import PermissionRequest, Verdict

if TYPE_CHECKING:
    from pegboard_plugins.commandhooks.hookcommand import Product
    from pegboard_plugins.commandhooks.runner import HookRunner

HOOK_S = 660.0
"""Longer than the longest hook, which is ended first."""
REFUSED = "commandhooks.refused"
"""The metadata of the part that a refused prompt has, with the reason."""
_REFUSAL = (
    "A hook has refused the user's prompt, and you do not see it. Say so in one sentence, with the"
    " reason, and do nothing else."
)
FILES: "tuple[tuple[Product, str], ...]" = (
    ("claude", ".claude/settings.json"),
    ("claude", ".claude/settings.local.json"),
    ("codex", ".codex/hooks.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
)
"""The files of hooks, in the user's home and in a project, and whose form they have."""
_APPS: "WeakKeyDictionary[Plugin, Host]" = WeakKeyDictionary()
_RUNNERS: "WeakKeyDictionary[Plugin, HookRunner]" = WeakKeyDictionary()
"""The Apps and their runners: hooks of tools get no other value that lives as long as an App."""


class Reading(NamedTuple):
    """The turns of a history that were looked at, and those that a model reads otherwise."""

    length: int = 0
    last: Turn | None = None
    changed: Mapping[str, Turn] = {}


_REFUSALS: "WeakKeyDictionary[Plugin, dict[tuple[str, str], Reading]]" = WeakKeyDictionary()


def _runner(plugin: Plugin, session: SessionView) -> "HookRunner | None":
    """Return the runner of the App, None where there is no hook file."""
    if not _has_files(session):
        return None
    from pegboard_plugins.commandhooks.runner import HookRunner  # where there are hooks

    if plugin not in _RUNNERS:
        _RUNNERS[plugin] = HookRunner(plugin)
        if plugin in _APPS:
            _RUNNERS[plugin].open(_APPS[plugin])
    return _RUNNERS[plugin]


def _has_files(session: SessionView) -> bool:
    folders = {session.home or Path.home(), session.worktree, session.directory}
    return any((folder / name).exists() for folder in folders for _, name in FILES)


@hookimpl
async def startup(app: Host, plugin: Plugin) -> None:
    """Take the App that hooks run for."""
    _APPS[plugin] = app
    if plugin in _RUNNERS:
        _RUNNERS[plugin].open(app)


@hookimpl(timeout_s=HOOK_S)
async def tool_execute_before(
    session: SessionView, call: PendingCall, plugin: Plugin
) -> PendingCall | None:
    """Run PreToolUse and BeforeTool, which can stop a call, have it asked about or change it."""
    if (runner := _runner(plugin, session)) is None:
        return None
    found = await runner.run("PreToolUse", session, body={}, call=call)
    if found.stops:
        runner.abort(session.id)
    if found.decision == "deny" or found.stops:
        raise ToolError(found.reason or "A hook has stopped the turn.")
    asks = found.reason if found.decision == "ask" else None
    if asks is not None and runner.asks_nothing(call.tool):
        raise ToolError(f"A hook asks for a confirmation that is not possible: {asks}")
    from pegboard_plugins.commandhooks.runner import PendingHooks

    runner.begin(session.id, PendingHooks(call=call, asks=asks, context=found.context))
    if found.input is None:
        return None
    from pegboard_plugins.commandhooks.toolnames import to_ours

    return evolve(call, input={**call.input, **to_ours(call.tool, found.input)})


@hookimpl(timeout_s=HOOK_S)
async def permission_ask(
    session: SessionView, request: PermissionRequest, plugin: Plugin
) -> Verdict | None:
    """Ask where PreToolUse says so, and run PermissionRequest where the user would be asked."""
    if (runner := _runner(plugin, session)) is None:
        return None
    pending = runner.pending(session.id, request.tool.call_id) if request.tool else None
    asks = pending.asks if pending else None
    rules = judge_rules(session.rulesets, request.permission, request.patterns, home=session.home)
    if pending is None or (asks is None and rules.action != "ask"):
        return None
    found = await runner.run("PermissionRequest", session, body={}, call=pending.call)
    if found.decision == "deny":
        return Verdict(action="deny", reason=found.reason)
    if asks is None:
        return None
    return Verdict(action="ask", reason=asks, firm=True)


@hookimpl(timeout_s=HOOK_S)
async def tool_execute_after(
    session: SessionView,
    call: PendingCall,
    result: ToolResult,
    context: ToolContext,
    plugin: Plugin,
) -> ToolResult | None:
    """Run PostToolUse and AfterTool, whose words go behind the result or in its place."""
    del context
    if (runner := _runner(plugin, session)) is None:
        return None
    pending = runner.pending(session.id, call.id)
    before = pending.context if pending else ()
    body = {"tool_response": _response(call, result)}
    found = await runner.run("PostToolUse", session, body=body, call=call)
    if found.stops:
        runner.abort(session.id)
    said = (found.reason,) if found.decision == "deny" and found.reason else ()
    texts = (*before, *said, *found.context)
    if not texts and found.output is None:
        return None
    output = result.output if found.output is None else found.output
    return evolve(result, output="\n\n".join((output, *texts)))


@hookimpl(timeout_s=HOOK_S)
async def chat_message(session: SessionView, message: Turn, plugin: Plugin) -> Turn | None:
    """Run SessionStart, then UserPromptSubmit; their texts go behind the prompt."""
    if session.info.parent_id is not None or (runner := _runner(plugin, session)) is None:
        return None
    texts: list[str] = []
    if session.id not in runner.sessions:
        await runner.warn(session)
        source = "resume" if session.info.model is not None else "startup"
        body = {"source": source, "model": session.model.id}
        texts += (await runner.run("SessionStart", session, body=body, names=(source,))).context
    runner.sessions[session.id] = session
    await runner.watch(session)
    typed = "".join(
        part.text for part in message.parts if isinstance(part, TextPart) and not part.synthetic
    )
    refused = ""
    if typed:
        found = await runner.run("UserPromptSubmit", session, body={"prompt": typed})
        texts += found.context
        if found.decision == "deny" or found.stops:
            refused = found.reason or "no reason"
            texts = [f"{_REFUSAL} Its reason: {refused}"]
    if not texts or not message.parts:
        return None
    text = "\n".join(texts)
    part = TextPart(
        id=f"{message.parts[-1].id}0",  # behind the last one, and before whatever comes next
        session_id=session.id,
        message_id=message.info.id,
        text=f'<system-reminder session="{session.id}">\n{text}\n</system-reminder>',
        synthetic=True,
        metadata={REFUSED: refused} if refused else None,
    )
    return Turn(info=message.info, parts=(*message.parts, part))


@hookimpl(timeout_s=HOOK_S)
async def chat_system_transform(
    session: SessionView, system: tuple[str, ...], plugin: Plugin
) -> tuple[str, ...] | None:
    """Run SubagentStart with a subagent's first request; its words are in all of its requests."""
    if session.info.parent_id is None or (runner := _runner(plugin, session)) is None:
        return None
    if session.id not in runner.sessions:
        runner.sessions[session.id] = session
        names = (session.agent.name,)
        found = await runner.run("SubagentStart", session, body={}, names=names)
        runner.started[session.id] = found.context
    return (*system, *runner.started[session.id])


@hookimpl(required=True)
async def chat_messages_transform(
    session: SessionView, messages: tuple[Turn, ...], plugin: Plugin
) -> tuple[Turn, ...] | None:
    """Leave what a hook has refused out of what the model reads; it stays stored."""
    known = _REFUSALS.setdefault(plugin, {})
    place = (session.id, session.purpose)
    seen = known.get(place)
    if seen is None or len(messages) < seen.length or messages[seen.length - 1] is not seen.last:
        seen = Reading()
    others = ((turn, _readable(turn)) for turn in messages[seen.length :])
    changed = {**seen.changed, **{turn.info.id: new for turn, new in others if new is not turn}}
    known[place] = Reading(len(messages), messages[-1] if messages else None, changed)
    if not changed:
        return None
    return tuple(changed.get(turn.info.id, turn) for turn in messages)


def _readable(turn: Turn) -> Turn:
    if not isinstance(turn.info, UserMessage):
        return turn
    marks = [
        part
        for part in turn.parts
        if isinstance(part, TextPart) and REFUSED in (part.metadata or {})
    ]
    if not marks:
        return turn
    reason = str((marks[0].metadata or {}).get(REFUSED))
    text = (
        f"[A hook has refused the user's prompt, which you cannot see. Its reason: {reason}\n"
        "Say so in one sentence, and do nothing else.]"
    )
    return evolve(turn, parts=(evolve(marks[0], text=text),))


@hookimpl(timeout_s=HOOK_S)
async def session_compacting(session: SessionView, prompt: str, plugin: Plugin) -> str | None:
    """Run PreCompact and PreCompress, whose words are further instructions."""
    if (runner := _runner(plugin, session)) is None:
        return None
    body = {"trigger": "auto", "custom_instructions": ""}
    found = await runner.run("PreCompact", session, body=body, names=("auto",))
    return "\n\n".join((prompt, *found.context)) if found.context else None


@hookimpl(timeout_s=HOOK_S)
async def shutdown(app: Host, plugin: Plugin) -> None:
    """Run SessionEnd, and end what runs in the background."""
    del app
    _APPS.pop(plugin, None)
    if (runner := _RUNNERS.pop(plugin, None)) is None:
        return
    from pegboard_plugins.commandhooks.watching import end

    await end(runner)
    await runner.close()


def _response(call: PendingCall, result: ToolResult) -> Mapping[str, Any]:
    """Return a result in Claude Code's form, with Gemini CLI's fields next to it."""
    gemini = {"llmContent": result.output, "returnDisplay": result.title}
    if call.tool == "bash":
        shown = result.metadata.get("output")
        stdout = shown if isinstance(shown, str) else result.output
        return {"stdout": stdout, "stderr": "", "interrupted": False, **gemini}
    if call.tool in {"edit", "write", "multiedit"}:
        named = {name: call.input.get(name) for name in ("filePath", "oldString", "newString")}
        return {**{k: v for k, v in named.items() if v is not None}, **gemini}
    return {"output": result.output, **gemini}
