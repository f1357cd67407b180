"""Output of programs as text that a model and a screen can take."""

import re

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_](?:[^\x07\x1b\n]*(?:\x07|\x1b\\))?|[ -/]*[0-~])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """The text without escape sequences, of a redrawn line what stood there last."""
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = "\n".join(map(_last_drawn, text.split("\n")))
    return _CONTROL.sub("", text)


def _last_drawn(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
