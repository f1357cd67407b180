"""The hooks of tool calls: before a call, before a question, after a call, and after a step."""

from collections.abc import Mapping
from typing import Any

from pegboard import PendingCall, SessionView, ToolError, ToolResult, evolve
from pegboard.permissions import judge_rules
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard_plugins.commandhooks.runner import HookRunner, PendingHooks
from pegboard_plugins.commandhooks.toolnames import to_ours


async def before_call(
    runner: HookRunner, session: SessionView, call: PendingCall
) -> PendingCall | None:
    """Run PreToolUse hooks; return the call with changed arguments, or None without a change.

    :raises ToolError: when a hook rejects the call.
    """
    found = await runner.run("PreToolUse", session, body={}, call=call)
    if found.stops:
        runner.stop(session.id, found.stops)
    if found.decision == "deny" or found.stops:
        raise ToolError(found.stops or found.reason)
    asks = found.reason if found.decision == "ask" else None
    if asks is not None and runner.asks_nothing(call.tool):
        raise ToolError(f"A hook asks for a confirmation that is not possible: {asks}")
    runner.begin(session.id, PendingHooks(call=call, asks=asks, context=found.context))
    if found.input is None:
        return None
    changed = to_ours(call.tool, found.input)
    unknown = changed.keys() - runner.arguments_of(call.tool) - call.input.keys()
    for name in sorted(unknown):
        text = f"a hook changes the argument {name} of {call.tool}, which has none: dropped"
        await runner.tell(session, text)
        del changed[name]
    return evolve(call, input={**call.input, **changed})


async def before_asking(
    runner: HookRunner, session: SessionView, request: PermissionRequest
) -> Verdict | None:
    """Run PermissionRequest hooks before the user is asked; return a verdict, or None without one.

    If a PreToolUse hook wants the user to be asked, return a verdict that asks.
    """
    pending = runner.pending(session.id, request.tool.call_id) if request.tool else None
    asks = pending.asks if pending else None
    rules = judge_rules(session.rulesets, request.permission, request.patterns, home=session.home)
    if pending is None or (asks is None and rules.action != "ask"):
        return None
    found = await runner.run("PermissionRequest", session, body={}, call=pending.call)
    if found.stops:
        runner.stop(session.id, found.stops)
    if found.decision == "deny" or found.stops:
        return Verdict(action="deny", reason=found.stops or found.reason)
    if asks is None:
        return None
    return Verdict(action="ask", reason=asks, firm=True)


async def after_call(
    runner: HookRunner, session: SessionView, call: PendingCall, result: ToolResult
) -> ToolResult | None:
    """Run PostToolUse hooks; return the changed result, or None if no hook changes it."""
    pending = runner.pending(session.id, call.id)
    before = pending.context if pending else ()
    body = {"tool_response": _response(call, result)}
    found = await runner.run("PostToolUse", session, body=body, call=call)
    if found.stops:
        runner.stop(session.id, found.stops)
    replaced = found.output
    if runner.source_of(call.tool) and found.server_output is not None:
        replaced = found.server_output
    texts = (*before, *found.texts)
    if not texts and replaced is None:
        return None
    output = result.output if replaced is None else replaced
    return evolve(result, output="\n\n".join((output, *texts)))


async def after_failure(
    runner: HookRunner, session: SessionView, call: PendingCall, error: str
) -> str | None:
    """Run PostToolUseFailure unless a hook rejected the call; return the error with added texts."""
    if (pending := runner.pending(session.id, call.id)) is None:
        return None
    body = {"error": error, "is_interrupt": False}
    found = await runner.run("PostToolUseFailure", session, body=body, call=pending.call)
    if found.stops:
        runner.stop(session.id, found.stops)
    return "\n\n".join((error, *found.texts)) if found.texts else None


async def after_calls(
    runner: HookRunner, session: SessionView, messages: tuple[Turn, ...]
) -> tuple[Turn, ...] | None:
    """Run PostToolBatch hooks for the newest step; return the turns with the hooks' texts."""
    last = messages[-1] if messages else None
    parts = _calls_of(last) if last is not None else ()
    if last is not None and parts and last.info.id not in runner.batches:
        calls = [
            {**each.called, "tool_response": _outcome(part)}
            for part in parts
            for each in runner.as_claude(session, runner.call_of(part))
        ]
        found = await runner.run("PostToolBatch", session, body={"tool_calls": calls})
        if found.stops or found.decision == "deny":
            why = found.stops or f"a PostToolBatch hook stopped the turn: {found.reason}"
            runner.stop(session.id, why)
        runner.batches[last.info.id] = found.texts
    if not any(runner.batches.get(turn.info.id) for turn in messages):
        return None
    return tuple(_with_texts(turn, runner.batches.get(turn.info.id, ())) for turn in messages)


def _calls_of(turn: Turn) -> tuple[ToolPart, ...]:
    """Return the ended tool calls of an answer."""
    if not isinstance(turn.info, AssistantMessage):
        return ()
    parts = (part for part in turn.parts if isinstance(part, ToolPart))
    return tuple(part for part in parts if isinstance(part.state, Completed | Failed))


def _with_texts(turn: Turn, texts: tuple[str, ...]) -> Turn:
    """Return a turn in which the texts are appended to the result of the last tool call."""
    if not texts:
        return turn
    last = _calls_of(turn)[-1]
    text = "\n\n".join((_outcome(last), *texts))
    if isinstance(last.state, Completed):
        state: Completed | Failed = evolve(last.state, output=text)
    else:
        assert isinstance(last.state, Failed)
        state = evolve(last.state, error=text)
    parts = (evolve(part, state=state) if part is last else part for part in turn.parts)
    return evolve(turn, parts=tuple(parts))


def _outcome(part: ToolPart) -> str:
    """Return the output of a completed call, or the error of a failed one."""
    assert isinstance(part.state, Completed | Failed)
    return part.state.output if isinstance(part.state, Completed) else part.state.error


def _response(call: PendingCall, result: ToolResult) -> Mapping[str, Any]:
    """Return a result in Claude Code's form, together with Gemini CLI's fields."""
    gemini = {"llmContent": result.output, "returnDisplay": result.title}
    if call.tool == "bash":
        printed = result.metadata.get("output")
        stdout = printed if isinstance(printed, str) else result.output
        return {"stdout": stdout, "stderr": "", "interrupted": False, **gemini}
    if call.tool in {"edit", "write", "multiedit"}:
        named = {name: call.input.get(name) for name in ("filePath", "oldString", "newString")}
        return {**{k: v for k, v in named.items() if v is not None}, **gemini}
    return {"output": result.output, **gemini}
