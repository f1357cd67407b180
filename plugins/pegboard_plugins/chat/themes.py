"""The built-in themes, and which theme is drawn in."""

from collections.abc import Callable, Mapping

from pegboard_plugins.chat.hookspecs import Theme
from pegboard_plugins.shared.terminal import PALETTE

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
