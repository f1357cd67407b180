"""The default styles of the roles that styled text can have."""

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
DARK_PALETTE: Mapping[str, str] = {
    **PALETTE,
    **dict.fromkeys(("dim", "number", "rule", "status"), "#9aa0ac"),
    "tool": "#7aa2f7",
    "added": "#9ece6a",
    "removed": "#f7768e",
    "added_word": "bold #9ece6a reverse",
    "removed_word": "bold #f7768e reverse",
    "added_row": "default on #16301d",
    "removed_row": "default on #3a1a20",
    "done": "#9ece6a",
    "warning": "#e0af68",
    "error": "#f7768e",
    "user": "bold #7dcfff",
    "accent": "#bb9af7",
    "code": "#7dcfff",
    "hunk": "#7dcfff",
    "link": "#7aa2f7 underline",
}
"""What each role looks like on a dark background, in all colours."""
LIGHT_PALETTE: Mapping[str, str] = {
    **PALETTE,
    **dict.fromkeys(("dim", "number", "rule", "status"), "#5c6370"),
    "tool": "#2e59a8",
    "added": "#2f6f20",
    "removed": "#a1203a",
    "added_word": "bold #2f6f20 reverse",
    "removed_word": "bold #a1203a reverse",
    "added_row": "default on #e0f4e0",
    "removed_row": "default on #fce4e6",
    "done": "#2f6f20",
    "warning": "#8a5a00",
    "error": "#a1203a",
    "user": "bold #106080",
    "accent": "#6f42a0",
    "code": "#106080",
    "hunk": "#106080",
    "link": "#2e59a8 underline",
}
"""What each role looks like on a light background, in all colours."""
