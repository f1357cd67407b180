"""Every colour of the dark and the light theme can be read: a contrast of 4.5 and more (WCAG 2)."""

import pytest
from rich.style import Style

from pegboard_plugins.chat.themes import DARK, LIGHT
from pegboard_plugins.shared.terminal import PALETTE

LEAST = 4.5
GROUNDS = {
    "dark": ("#000000", "#1e1e1e", "#282c34", "#002b36"),
    "light": ("#ffffff", "#fafafa", "#fdf6e3"),
}
"""The backgrounds of xterm, VS Code, One Dark and Solarized."""
TEXT = {"dark": "#d0d0d0", "light": "#303030"}
ON_ROWS = (
    *("added", "removed", "added_word", "removed_word", "number"),
    *("dim", "accent", "tool", "hunk", "done"),
)
"""What can stand in a row of a diff: its own parts, and tokens of code."""
THEMES = {"dark": DARK, "light": LIGHT}


def luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb`."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def ink(style: str) -> str:
    """The colour of a style as `#rrggbb`, "" where it is the terminal's own."""
    colour = Style.parse(style).color
    return "" if colour is None or colour.is_default else colour.get_truecolor().hex


def ground(name: str, row: str) -> str:
    colour = Style.parse(THEMES[name].palette[row]).bgcolor
    assert colour is not None
    return colour.get_truecolor().hex


@pytest.mark.parametrize("name", THEMES)
def test_no_role_is_left_to_the_sixteen_colours_of_the_terminal(name: str) -> None:
    palette = THEMES[name].palette

    assert palette.keys() == PALETTE.keys()
    for role, style in palette.items():
        parsed = Style.parse(style)
        assert not parsed.dim, role
        assert parsed.color is None or parsed.color.triplet or parsed.color.is_default, role


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("role", PALETTE)
def test_each_colour_can_be_read_on_the_usual_backgrounds(name: str, role: str) -> None:
    colour = ink(THEMES[name].palette[role]) or TEXT[name]
    grounds = [ground(name, role)] if role.endswith("_row") else GROUNDS[name]

    assert min(contrast(colour, each) for each in grounds) >= LEAST


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("role", ON_ROWS)
@pytest.mark.parametrize("row", ["added_row", "removed_row"])
def test_each_colour_can_be_read_in_the_rows_of_a_diff(name: str, role: str, row: str) -> None:
    assert contrast(ink(THEMES[name].palette[role]), ground(name, row)) >= LEAST
