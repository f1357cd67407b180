"""The built-in themes, and the choice of the current theme."""

from collections.abc import Callable, Mapping

from pegboard_plugins.chat.hookspecs import Theme
from pegboard_plugins.shared.terminal import DARK_PALETTE, LIGHT_PALETTE, PALETTE

_PLAIN = {role: "reverse" if role in ("added_word", "removed_word") else "" for role in PALETTE}
AUTO = "auto"
"""The theme for the terminal's background, if the terminal reports it."""
DARK = Theme(name="dark", palette=DARK_PALETTE)
LIGHT = Theme(name="light", palette=LIGHT_PALETTE)
TERMINAL = Theme(name="terminal", palette=PALETTE)
THEMES = (
    TERMINAL,
    DARK,
    LIGHT,
    Theme(name="plain", palette=_PLAIN),
)


class ThemeChoice:
    """The current theme: the user's choice, or a theme for the terminal's background."""

    def __init__(self, draw_in: Callable[[Theme], None]) -> None:
        self.name = AUTO
        self._fitting = TERMINAL
        self._draw_in = draw_in

    def background(self, light: bool) -> None:  # noqa: FBT001 - a callback's
        """Record the terminal's report whether its background is light."""
        self._fitting = LIGHT if light else DARK
        if self.name == AUTO:
            self._draw_in(self._fitting)

    def choose(self, name: str, themes: Mapping[str, Theme]) -> bool:
        """Switch to the theme with this name; return False if it does not exist."""
        theme = self._fitting if name == AUTO else themes.get(name)
        if theme is not None:
            self.name = name
            self._draw_in(theme)
        return theme is not None
