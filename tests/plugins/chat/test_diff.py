"""`/diff` names each file that the session has changed."""

from pathlib import Path

import pytest

from pegboard_plugins.chat import footer_widget
from pegboard_plugins.chat.hookspecs import ChatState
from plugins.chat.screen import chat, scripts
from plugins.chat.test_keys import FIX, programs
from plugins.cli.commands import CommandLine


async def test_the_changes_of_a_session_name_each_file(pegboard: CommandLine) -> None:
    (pegboard.project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    made = {"tool": "bash", "input": {"command": "touch made", "description": "make"}}
    gone = {"tool": "bash", "input": {"command": "rm made", "description": "remove"}}
    long = {"tool": "write", "input": {"filePath": "long.txt", "content": "line\n" * 40}}
    scripts(
        pegboard,
        fix=FIX,
        passing=[{"calls": [made]}, {"calls": [gone]}, {"text": "Passed."}],
        long=[{"calls": [long]}, {"text": "Written."}],
    )
    programs(pegboard)

    async with chat(pegboard, rows=40) as terminal:
        await terminal.say("passing")
        await terminal.see("Passed.")
        await terminal.say("/diff")
        await terminal.see("the session has changed no file")
        await terminal.say("fix")
        await terminal.see("Mended at last.")
        await terminal.say("/diff")
        await terminal.see("1 file +1 -1\n  │ calc.py  +1 -1\n")
        await terminal.say("long")
        await terminal.see("Written.")
        await terminal.say("/diff")
        await terminal.see("PAGE-BEGINS\n2 files +41 -1\ncalc.py  +1 -1\n")
        await terminal.back()


async def test_a_new_file_without_lines_has_no_counts(pegboard: CommandLine) -> None:
    touch = {"tool": "bash", "input": {"command": "touch made", "description": "make"}}
    scripts(pegboard, make=[{"calls": [touch]}, {"text": "Made."}])

    async with chat(pegboard) as terminal:
        await terminal.say("make")
        await terminal.see("Made.")
        await terminal.say("/diff")
        await terminal.see("│ made  added")
        assert "+0 -0" not in terminal.everything


@pytest.mark.parametrize(
    ("counts", "text"),
    [((0, 0), "  1 file changed"), ((2, 0), "  1 file changed +2 -0")],
)
async def test_the_footer_counts_lines_only_where_some_changed(
    tmp_path: Path, counts: tuple[int, int], text: str
) -> None:
    more, less = counts
    state = ChatState(directory=tmp_path, busy=True, files=1, additions=more, deletions=less)

    [widget] = await footer_widget(state)

    assert [span.text for line in widget.lines for span in line] == [text]
