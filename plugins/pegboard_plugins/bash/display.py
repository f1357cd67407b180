"""The output of programs as plain text, for the model and for display."""

import re
from itertools import pairwise

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_](?:[^\x07\x1b\n]*(?:\x07|\x1b\\))?|[ -/]*[0-~])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

MOST_STATES = 100
"""A line with more of them is a progress display, whatever their lengths."""


def plain(text: str) -> str:
    """Remove escape sequences from a text; of a line that is redrawn, keep the last state."""
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = "\n".join(map(_last_drawn, text.split("\n")))
    return _CONTROL.sub("", text)


def _last_drawn(line: str) -> str:
    """Return the last state of a line that carriage returns redraw.

    A state that is shorter than the one before would leave its end on the screen. All states of the
    line are then returned, with visible escapes between them.
    """
    states = [state for state in line.split("\r") if state]
    if len(states) <= MOST_STATES and any(len(b) < len(a) for a, b in pairwise(states)):
        return "\\r".join(states)
    return states[-1] if states else ""
