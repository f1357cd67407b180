"""The built-in themes."""

from pegboard.cli import PALETTE
from pegboard_plugins.chat.additions import Theme

_DARK = {
    "tool": "#7aa2f7",
    "added": "#9ece6a",
    "removed": "#f7768e",
    "added_word": "bold #9ece6a reverse",
    "removed_word": "bold #f7768e reverse",
    "done": "#9ece6a",
    "warning": "#e0af68",
    "error": "#f7768e",
    "accent": "#bb9af7",
    "code": "#7dcfff",
    "hunk": "#7dcfff",
}
_LIGHT = {
    "tool": "#2e59a8",
    "added": "#2f6f20",
    "removed": "#a1203a",
    "added_word": "bold #2f6f20 reverse",
    "removed_word": "bold #a1203a reverse",
    "done": "#2f6f20",
    "warning": "#8a5a00",
    "error": "#a1203a",
    "accent": "#6f42a0",
    "code": "#106080",
    "hunk": "#106080",
}
_PLAIN = {role: "reverse" if role in ("added_word", "removed_word") else "" for role in PALETTE}
TERMINAL = "terminal"
DARK = Theme(name="dark", palette={**PALETTE, **_DARK})
LIGHT = Theme(name="light", palette={**PALETTE, **_LIGHT})
THEMES = (
    Theme(name=TERMINAL, palette=PALETTE),
    DARK,
    LIGHT,
    Theme(name="plain", palette=_PLAIN),
)


def for_background(*, light: bool) -> Theme:
    """The theme to begin with where the terminal says what its background is like."""
    return LIGHT if light else DARK
