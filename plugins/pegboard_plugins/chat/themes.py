"""The built-in themes, and which theme is drawn in."""

from collections.abc import Callable, Mapping

from pegboard_plugins.chat.hookspecs import Theme
from pegboard_plugins.shared.terminal import PALETTE

_DARK = {
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
_LIGHT = {
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
_PLAIN = {role: "reverse" if role in ("added_word", "removed_word") else "" for role in PALETTE}
AUTO = "auto"
"""The theme for the terminal's background, where the terminal says what that is like."""
DARK = Theme(name="dark", palette={**PALETTE, **_DARK})
LIGHT = Theme(name="light", palette={**PALETTE, **_LIGHT})
TERMINAL = Theme(name="terminal", palette=PALETTE)
THEMES = (
    TERMINAL,
    DARK,
    LIGHT,
    Theme(name="plain", palette=_PLAIN),
)


class ThemeChoice:
    """The theme that the person has chosen, or the one for the terminal's background."""

    def __init__(self, draw_in: Callable[[Theme], None]) -> None:
        self.name = AUTO
        self._fitting = TERMINAL
        self._draw_in = draw_in

    def background(self, light: bool) -> None:  # noqa: FBT001 - a callback's
        """The terminal says whether its background is light."""
        self._fitting = LIGHT if light else DARK
        if self.name == AUTO:
            self._draw_in(self._fitting)

    def choose(self, name: str, themes: Mapping[str, Theme]) -> bool:
        """Draw in the theme of this name from here on; False if there is none."""
        theme = self._fitting if name == AUTO else themes.get(name)
        if theme is not None:
            self.name = name
            self._draw_in(theme)
        return theme is not None
