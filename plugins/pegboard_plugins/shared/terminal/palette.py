"""The roles that pieces of text have, and what they look like unless a theme says otherwise."""

from collections.abc import Mapping

PALETTE: Mapping[str, str] = {
    "plain": "",
    "dim": "dim",
    "bold": "bold",
    "tool": "cyan",
    "path": "bold",
    "number": "dim",
    "added": "green",
    "removed": "red",
    "added_word": "bold green reverse",
    "removed_word": "bold red reverse",
    "added_row": "",
    "removed_row": "",
    "hunk": "cyan",
    "done": "green",
    "active": "bold",
    "warning": "yellow",
    "error": "red",
    "user": "bold cyan",
    "accent": "magenta",
    "rule": "dim",
    "status": "dim",
    "key": "bold",
    "code": "cyan",
    "heading": "bold",
    "link": "blue underline",
    "quote": "italic",
}
"""What each role looks like in the terminal's own sixteen colours, as rich spells it.

`added_row` and `removed_row` are for whole rows of a diff: a background, in terminals that have all
colours.
"""
