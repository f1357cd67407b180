"""The answer of a hook by its exit code and output, and that of several together."""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from pegboard_plugins.commandhooks.hookcommand import CommandHook

TEXT_LIMIT = 10_000
"""Letters of a hook's text that the model gets."""
_BLOCKED = 2
_NEVER_FAIL_BLOCKING = frozenset({"Stop", "SubagentStop"})
_PLAIN_CONTEXT = frozenset({"UserPromptSubmit", "SessionStart", "PreCompact"})
"""The events whose plain output is for the model."""

Decision = Literal["deny", "ask", ""]
_STRICTNESS: tuple[Decision, ...] = ("deny", "ask", "")


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a hook's process; `failure` says why there is no exit code."""

    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    failure: str = ""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one hook, or of all of an event; an `allow` says nothing.

    `context` is text for the model, `notes` are lines for the user. `output` takes the place of a
    tool's result, `input` that of its arguments. `stops`: the turn is to end.
    """

    decision: Decision = ""
    reason: str = ""
    context: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    input: dict[str, Any] | None = None
    output: str | None = None
    stops: bool = False


def outcome_of(hook: CommandHook, ended: Ended) -> Outcome:
    """Return what a hook says, by the rules of its product."""
    if ended.failure:
        return _failed(hook, ended.failure)
    return _of_gemini(hook, ended) if hook.product == "gemini" else _of_claude(hook, ended)


def _of_claude(hook: CommandHook, ended: Ended) -> Outcome:
    text = _cut(ended.stderr)
    if ended.exit_code == _BLOCKED:
        if hook.product == "codex" and not text:
            return _failed(hook, "exit code 2 without a text")
        return _blocked(hook, text)
    if ended.exit_code != 0:
        return _failed(hook, f"exit code {ended.exit_code}: {text.partition(chr(10))[0]}")
    if not ended.stdout.lstrip().startswith("{"):
        plain = _cut(ended.stdout)
        is_context = plain and hook.event in _PLAIN_CONTEXT
        return Outcome(context=(plain,)) if is_context else Outcome()
    return _of_json(hook, ended.stdout)


def merged(outcomes: Iterable[Outcome]) -> Outcome:
    """Return what all say together: the strictest decision, and the last change."""
    found = list(outcomes)
    decisions = {each.decision for each in found}
    decision: Decision = next((each for each in _STRICTNESS if each in decisions), "")
    reasons = [each.reason for each in found if each.decision == decision and each.reason]
    inputs = [each.input for each in found if each.input is not None]
    outputs = [each.output for each in found if each.output is not None]
    notes = [note for each in found for note in each.notes]
    if len(inputs) > 1:
        notes.append("several hooks change the arguments of one call; the last change counts")
    return Outcome(
        decision=decision,
        reason="\n".join(dict.fromkeys(reasons)),
        context=tuple(text for each in found for text in each.context),
        notes=tuple(notes),
        input=inputs[-1] if inputs else None,
        output=outputs[-1] if outputs else None,
        stops=any(each.stops for each in found),
    )


def _of_gemini(hook: CommandHook, ended: Ended) -> Outcome:
    text = _cut(ended.stdout.strip() or ended.stderr)
    if not text:
        return Outcome()
    if text.startswith("{"):
        return _of_json(hook, ended.stdout.strip() or ended.stderr)
    if ended.exit_code in {0, 1}:
        return Outcome(notes=(f"{hook.label}: {text}",))
    return _blocked(hook, text)


def _of_json(hook: CommandHook, text: str) -> Outcome:
    try:
        said = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return _failed(hook, f"its output is not JSON: {error}")
    own = said.get("hookSpecificOutput")
    own = own if isinstance(own, dict) else {}
    decision, reason = _decision(said, own)
    stops = said.get("continue") is False
    message = said.get("systemMessage")
    notes = [str(message)] if message else []
    if stops:
        notes.append(f"{hook.label} stops the turn: {said.get('stopReason') or 'no reason'}")
    context = own.get("additionalContext") or said.get("additionalContext")
    changed = own.get("updatedInput")
    changed = changed if changed is not None else own.get("tool_input")
    output = own.get("updatedToolOutput", own.get("tool_output"))
    return Outcome(
        decision=decision,
        reason=_cut(reason),
        context=(_cut(str(context)),) if context else (),
        notes=tuple(notes),
        input=changed if isinstance(changed, dict) else None,
        output=output if output is None or isinstance(output, str) else _json(output),
        stops=stops,
    )


def _decision(said: dict[str, Any], own: dict[str, Any]) -> tuple[Decision, str]:
    """Return the strictest of the places in which a hook may decide, with its reason."""
    answer = own.get("decision")
    answer = answer if isinstance(answer, dict) else {}
    words = (
        (own.get("permissionDecision"), own.get("permissionDecisionReason")),
        (said.get("decision"), said.get("reason")),
        (answer.get("behavior"), answer.get("message")),
    )
    decided = [(_MEANINGS.get(str(word), ""), str(reason or "")) for word, reason in words]
    decision: Decision
    decision, reason = min(decided, key=lambda each: _STRICTNESS.index(each[0]))
    return decision, reason or (str(said.get("reason") or "") if decision else "")


_MEANINGS: dict[str, Decision] = {"deny": "deny", "block": "deny", "ask": "ask", "defer": "ask"}


def _blocked(hook: CommandHook, text: str) -> Outcome:
    return Outcome(decision="deny", reason=text or f"{hook.label} says no")


def _failed(hook: CommandHook, why: str) -> Outcome:
    """Return a failure: it blocks only where the hook's file says so."""
    text = f"{hook.label} failed: {why}"
    can_block = not hook.is_async and hook.event not in _NEVER_FAIL_BLOCKING
    if hook.blocks_on_failure and can_block:
        return Outcome(decision="deny", reason=text)
    return Outcome(notes=(text,))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _cut(text: str) -> str:
    kept = text.strip()
    return (
        kept if len(kept) <= TEXT_LIMIT else f"{kept[:TEXT_LIMIT]}\n[cut at {TEXT_LIMIT} letters]"
    )
