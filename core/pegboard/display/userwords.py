"""The errors of tool calls in words for the user: the stored ones are written for the model."""

_REJECTED = "The user rejected permission to use this specific tool call."
_UNATTENDED = "Do not look for another way to the same end: go on without it, and say so."
_WORDS = {
    f"{_REJECTED} The user said: ": "You said no: ",
    _REJECTED: "You said no.",
    "The user said no: ": "You said no: ",
    "The user did not want to answer.": "You skipped the question.",
    "The call was stopped before it ended.": "Stopped.",
    f" and nobody is there to be asked. {_UNATTENDED}": ", and there is no terminal to ask on.",
}


def user_words(error: str) -> str:
    """Return the error of a call as the user reads it, without what tells the model what to do."""
    for stored, words in _WORDS.items():
        error = error.replace(stored, words)
    return error
