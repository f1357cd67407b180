"""Errors of tool calls and reasons of rules, reworded for the user."""

import re

_REJECTED = "The user rejected permission to use this specific tool call."
_STOPPED = "The call was stopped before it ended."
_UNATTENDED = "Do not look for another way to the same end: go on without it, and say so."
_WORDS = {
    f"{_REJECTED} The user said: ": "You said no: ",
    _REJECTED: "You said no.",
    "The user said no: ": "You said no: ",
    "The user did not want to answer.": "You skipped the question.",
    _STOPPED: "Stopped.",
    f" and nobody is there to be asked. {_UNATTENDED}": ", and there is no terminal to ask on.",
}
_RULE = re.compile(r'(asked|denied) by rule (\S+) "(.*?)" \(([^()]*)\)', re.DOTALL)
_ACTS = {
    "*": "all calls",
    "bash": "shell commands",
    "edit": "edits",
    "external_directory": "access outside the project",
    "read": "reads of files",
    "webfetch": "requests to the web",
}
_WHO = {"config": "your config", "built-in": "Pegboard"}


def user_words(error: str) -> str:
    """Return a call's error, or a rule's reason, without the instructions for the model."""
    for stored, words in _WORDS.items():
        error = error.replace(stored, words)
    words = _RULE.sub(_rule_words, error)
    return f"{words[0].upper()}{words[1:]}." if _RULE.fullmatch(error) else words


def _rule_words(found: re.Match[str]) -> str:
    done, permission, pattern, source = found.groups()
    who = _WHO.get(source) or re.sub(r"^(agent|mode) (.+)", r"the \2 \1", source)
    matching = f' that match "{pattern}"' if pattern != "*" else ""
    what = f"{_ACTS.get(permission, f'calls of {permission}')}{matching}"
    if done == "asked":
        return f"{who} asks before {what}"
    return f"Blocked: {who} does not allow {what}"


def outcome_of(error: str) -> str:
    """Return how a call with this error ended: "refused" by the user, "stopped" or "failed"."""
    if error.startswith((_REJECTED, "The user said no: ")):
        return "refused"
    return "stopped" if error.endswith(_STOPPED) else "failed"
