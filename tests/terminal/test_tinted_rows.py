"""Rows of a diff in a theme with backgrounds: the whole row has one, and code its own colours."""

import pytest

from pegboard.display import Block
from pegboard.unstable import block_lines
from pegboard_plugins.chat.themes import DARK, LIGHT
from pegboard_plugins.shared.terminal import PALETTE, Pen, coloured_diff

DIFF = """--- a/calc.py
+++ b/calc.py
@@ -1,3 +1,4 @@
 def add(a, b):
-    return a - b
+    return a + b
+    # a comment, "no string"
 '''text
"""
DARK_GROUND, ADDED, REMOVED = "48;2;22;48;29m", "9ece6a", "f7768e"
KEYWORD, COMMENT = "38;2;187;154;247", "38;2;154;160;172"


def rows(palette, width=60, diff=DIFF):
    pen = Pen(palette, colours="full")
    lines = block_lines(Block(diff=diff)).lines
    return pen.lines(coloured_diff(lines, diff) if pen.is_tinted else lines, width)


def test_a_row_has_its_ground_up_to_the_edge_and_no_blanks_that_would_be_copied() -> None:
    context, removed, added, comment, _ = rows(DARK.palette)

    for row in (removed, added, comment):
        assert row.endswith("m\x1b[K\x1b[0m")
        assert not row.removesuffix("\x1b[0m").removesuffix("\x1b[K").rstrip().endswith(" ")
    assert added.count(DARK_GROUND) == added.count("\x1b[0m")
    assert "48;2" not in context
    assert "\x1b[K" not in context


def test_the_code_of_a_row_has_the_colours_of_its_tokens() -> None:
    context, removed, added, comment, text = rows(DARK.palette)

    assert all(KEYWORD in row for row in (context, removed, added))
    assert COMMENT in comment.partition("#")[0].rpartition("\x1b")[2]
    assert "text" in text


def test_a_row_that_is_wrapped_has_its_ground_in_each_row() -> None:
    long = DIFF.replace("a + b", "a + " + "b + " * 30 + "b")

    wrapped = [row for row in rows(DARK.palette, diff=long) if DARK_GROUND in row]

    assert len(wrapped) > 3
    assert all(row.endswith("\x1b[K\x1b[0m") for row in wrapped)


@pytest.mark.parametrize("palette", [PALETTE, dict.fromkeys(PALETTE, "")])
def test_without_grounds_the_row_s_own_colour_says_what_it_is(palette) -> None:
    pen = Pen(palette, colours="full")

    assert not pen.is_tinted
    assert "\x1b[K" not in "".join(rows(palette))
    if palette["added"]:
        assert "\x1b[32m" in rows(palette)[2]


@pytest.mark.parametrize("name", ["calc.py", "unknown.zzz", "Makefile", "a/b.rs", ""])
@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_no_letter_of_a_diff_is_lost_whatever_the_language(name: str, theme) -> None:
    diff = DIFF.replace("calc.py", name)
    plain = Pen(colours="none").lines(block_lines(Block(diff=diff)).lines, 200)

    lines = list(coloured_diff(block_lines(Block(diff=diff)).lines, diff))

    assert ["".join(span.text for span in line).rstrip() for line in lines] == plain
