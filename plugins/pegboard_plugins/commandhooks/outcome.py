"""The result of a hook, from exit code and output, and the merged result of several hooks."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from pegboard_plugins.commandhooks.honoured import HONOURED
from pegboard_plugins.commandhooks.hookcommand import CommandHook

TEXT_LIMIT = 10_000
"""The maximum length of a hook's text for the model."""
_BLOCKED = 2
_NEVER_FAIL_BLOCKING = frozenset({"Stop", "SubagentStop"})
_PLAIN_CONTEXT = frozenset(
    {"UserPromptSubmit", "UserPromptExpansion", "SessionStart", "PreCompact"}
)
"""The events whose plain output is for the model."""

Decision = Literal["deny", "ask", ""]
_STRICTNESS: tuple[Decision, ...] = ("deny", "ask", "")
_MEANINGS: dict[str, Decision] = {"deny": "deny", "block": "deny", "ask": "ask", "defer": "ask"}
_ALLOWING = frozenset({"allow", "approve"})
_DECIDING = frozenset({"PreToolUse", "PermissionRequest"})
_REFUSED_BY_CODEX = {
    "PreToolUse": frozenset({"continue", "stopReason", "suppressOutput"}),
    "PermissionRequest": frozenset({"continue", "interrupt"}),
    "PostToolUse": frozenset({"updatedMCPToolOutput"}),
}
"""The output, by event, that Codex rejects in its own hooks and Pegboard accepts."""
_OF_REQUESTS = frozenset({"behavior", "message", "interrupt"})


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a hook's process; `failure` says why there is no exit code, or is ""."""

    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    failure: str = ""


class HookOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one hook, or the merged result of an event's hooks; an `allow` has no effect.

    `context` is text for the model, and `notes` are lines for the user. `output` replaces a tool's
    result, `server_output` that of an MCP server's tool, `input` the arguments, and `title` the
    session's title. `stops` is the reason to end the turn, or "".
    """

    decision: Decision = ""
    reason: str = ""
    context: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    input: dict[str, Any] | None = None
    output: str | None = None
    server_output: str | None = None
    title: str = ""
    stops: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts for the model: the reason of a denial, then the context."""
        reasons = (self.reason,) if self.decision == "deny" and self.reason else ()
        return (*reasons, *self.context)


def outcome_of(hook: CommandHook, ended: Ended) -> HookOutcome:
    """Return the result of a hook, by the rules of its product."""
    if ended.failure:
        return _failed(hook, ended.failure)
    return _of_gemini(hook, ended) if hook.product == "gemini" else _of_claude(hook, ended)


def _of_claude(hook: CommandHook, ended: Ended) -> HookOutcome:
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
        return HookOutcome(context=(plain,)) if is_context else HookOutcome()
    return _of_json(hook, ended.stdout)


def merged(outcomes: Iterable[HookOutcome]) -> HookOutcome:
    """Merge the hooks' results: the strictest decision, the last changes, and all texts."""
    found = list(outcomes)
    decisions = {each.decision for each in found}
    decision: Decision = next((each for each in _STRICTNESS if each in decisions), "")
    reasons = [each.reason for each in found if each.decision == decision and each.reason]
    inputs = [each.input for each in found if each.input is not None]
    outputs = [each.output for each in found if each.output is not None]
    of_servers = [each.server_output for each in found if each.server_output is not None]
    notes = [note for each in found for note in each.notes]
    if len(inputs) > 1:
        notes.append("several hooks change the arguments of one call; the last change counts")
    return HookOutcome(
        decision=decision,
        reason="\n".join(dict.fromkeys(reasons)),
        context=tuple(text for each in found for text in each.context),
        notes=tuple(notes),
        input=inputs[-1] if inputs else None,
        output=outputs[-1] if outputs else None,
        server_output=of_servers[-1] if of_servers else None,
        title=next((each.title for each in reversed(found) if each.title), ""),
        stops=next((each.stops for each in found if each.stops), ""),
    )


def _of_gemini(hook: CommandHook, ended: Ended) -> HookOutcome:
    text = _cut(ended.stdout.strip() or ended.stderr)
    if not text:
        return HookOutcome()
    if text.startswith("{"):
        found = _of_json(hook, ended.stdout.strip() or ended.stderr)
    elif ended.exit_code in {0, 1}:
        return HookOutcome(notes=(f"{hook.label}: {text}",))
    else:
        found = _blocked(hook, text)
    if hook.event == "PostToolUse" and found.decision == "deny":
        return msgspec.structs.replace(found, decision="", output=found.reason)
    return found


def _of_json(hook: CommandHook, text: str) -> HookOutcome:
    try:
        answer = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return _failed(hook, f"its output is not JSON: {error}")
    own = answer.get("hookSpecificOutput")
    own = own if isinstance(own, dict) else {}
    request = own.get("decision")
    request = request if isinstance(request, dict) else {}
    decision, reason = _decision(answer, own, request)
    ends = answer.get("continue") is False
    ends = ends or (decision == "deny" and request.get("interrupt") is True)
    why = str(answer.get("stopReason") or reason or "it gives no reason")
    notes = [str(answer["systemMessage"])] if answer.get("systemMessage") else []
    notes += _unhonoured(hook, answer, own, request)
    context = own.get("additionalContext") or answer.get("additionalContext")
    changed = own.get("updatedInput")
    changed = changed if changed is not None else own.get("tool_input")
    return HookOutcome(
        decision=decision,
        reason=_cut(reason),
        context=(_cut(str(context)),) if context else (),
        notes=tuple(notes),
        input=changed if isinstance(changed, dict) else None,
        output=_output(own.get("updatedToolOutput", own.get("tool_output"))),
        server_output=_output(own.get("updatedMCPToolOutput")),
        title=" ".join(str(own.get("sessionTitle") or "").split()),
        stops=_cut(f"a {hook.name} hook stopped the turn: {why} ({hook.origin})") if ends else "",
    )


def _unhonoured(
    hook: CommandHook, answer: dict[str, Any], own: dict[str, Any], request: dict[str, Any]
) -> Iterator[str]:
    """Yield a message for each output field that Pegboard ignores or that Codex would refuse."""
    known = HONOURED[hook.event]
    found = [key for key in (*answer, *own) if key not in known]
    if answer.get("continue") is not False and "continue" in found:
        found.remove("continue")
    found += [key for key in request if key not in _OF_REQUESTS]
    for key in dict.fromkeys(found):
        yield f"{hook.label}: `{key}` of its output is not honoured"
    words = (own.get("permissionDecision"), answer.get("decision"), request.get("behavior"))
    if hook.product == "codex":
        refused = _REFUSED_BY_CODEX.get(hook.event, frozenset())
        named = [key for key in (*answer, *own, *request) if key in refused]
        named += ["ask"] if hook.event == "PreToolUse" and "ask" in words else []
        if own.get("updatedInput") is not None and "allow" not in words:
            named += ["updatedInput` without `allow"]
        for key in named:
            yield f"{hook.label}: Codex itself refuses `{key}`; here it counts"
    if hook.event in _DECIDING and any(str(word) in _ALLOWING for word in words):
        yield f"{hook.label}: its `allow` is not honoured, since a hook never loosens a rule"


def _decision(
    answer: dict[str, Any], own: dict[str, Any], request: dict[str, Any]
) -> tuple[Decision, str]:
    """Return the strictest decision in the parts of a hook's output, with its reason."""
    words = (
        (own.get("permissionDecision"), own.get("permissionDecisionReason")),
        (answer.get("decision"), answer.get("reason")),
        (request.get("behavior"), request.get("message")),
    )
    decided = [(_MEANINGS.get(str(word), ""), str(reason or "")) for word, reason in words]
    decision: Decision
    decision, reason = min(decided, key=lambda each: _STRICTNESS.index(each[0]))
    return decision, reason or (str(answer.get("reason") or "") if decision else "")


def _blocked(hook: CommandHook, text: str) -> HookOutcome:
    return HookOutcome(decision="deny", reason=text or f"{hook.label} says no")


def _failed(hook: CommandHook, why: str) -> HookOutcome:
    """Return a failed hook's result, which blocks only if the hook's file says so."""
    text = f"{hook.label} failed: {why}"
    can_block = not hook.is_async and hook.event not in _NEVER_FAIL_BLOCKING
    if hook.blocks_on_failure and can_block:
        return HookOutcome(decision="deny", reason=text)
    return HookOutcome(notes=(text,))


def _output(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _cut(text: str) -> str:
    whole = text.strip()
    if len(whole) <= TEXT_LIMIT:
        return whole
    return f"{whole[:TEXT_LIMIT]}\n[cut at {TEXT_LIMIT} letters]"
