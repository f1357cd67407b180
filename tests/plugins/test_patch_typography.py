"""Patches in plain letters over a file with typography of its own."""

from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard_plugins.apply_patch import apply_patch
from support.tools.tool_context import Context, call


def read(folder: Path, text: str) -> Context:
    (folder / "a.txt").write_text(text)
    context = Context(folder)
    context.files.note_read(folder / "a.txt")
    return context


def patch_of(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def test_added_lines_repeat_removed_ones_in_the_letters_of_the_file(tmp_path: Path) -> None:
    context = read(tmp_path, "one\nHe said “yes” — twice.\n")

    await call(
        apply_patch,
        context,
        patchText=patch_of(
            *("*** Update File: a.txt", "@@", '-He said "yes" - twice.', '+He said "yes" - once.')
        ),
    )

    assert (tmp_path / "a.txt").read_text() == "one\nHe said “yes” — once.\n"


async def test_a_patch_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    context = read(tmp_path, "say “yes”\n")
    lines = ("*** Update File: a.txt", "@@", '-say "yes"', '+say "yes"')

    with pytest.raises(ToolError, match=r"a\.txt would not change: it has the new lines already"):
        await call(apply_patch, context, patchText=patch_of(*lines))

    assert (tmp_path / "a.txt").read_text() == "say “yes”\n"
