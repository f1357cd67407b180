"""Errors of tool calls reworded for the user; the stored texts are written for the model."""

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
_BLOCKED = re.compile(r'denied by rule edit "\*" \(agent (\S+)\)')


def user_words(error: str) -> str:
    """Return the error of a call for the user, without the instructions for the model."""
    for stored, words in _WORDS.items():
        error = error.replace(stored, words)
    return _BLOCKED.sub(r"Blocked: the \1 agent does not change files.", error)


def outcome_of(error: str) -> str:
    """Return how a call with this error ended: `refused` by the user, `stopped`, or `failed`."""
    if error.startswith((_REJECTED, "The user said no: ")):
        return "refused"
    return "stopped" if error.endswith(_STOPPED) else "failed"
