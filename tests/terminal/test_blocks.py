"""Blocks of tool calls: who makes them, how they are stored, and as which lines they are drawn."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard import Prompt, Tool, ToolResult, hookimpl, tool
from pegboard.contract import toolhooks
from pegboard.display import Block, Span, default_block, plain_line
from pegboard.display.defaultblocks import TAIL_LINES, given_block
from pegboard.display.difflines import diff_rows
from pegboard.schema.part import Completed, CompletedSpan, Failed, Running, TimeSpan, ToolPart
from pegboard.testing import tools_of
from pegboard.unstable import CallBlocks, block_lines, with_note
from pegboard_plugins import callblocks, webfetch, websearch
from pegboard_plugins.apply_patch import apply_patch
from pegboard_plugins.question import question
from pegboard_plugins.read import read
from pegboard_plugins.skill import skill
from pegboard_plugins.task import task
from support.models.played import Played, ToolsPlugin, call, calls, opened, text

DIFF = """--- calc.py
+++ calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
\\ No newline at end of file
+    return a + b
@@ -9,2 +9,2 @@
 x
--- y
+-- z
"""
RUNNING = Running(input={}, time=TimeSpan(start=1))
HOSTILE = "a\x1b]52;c;aGk=\x07b\x9b2Jc\u202ed\re"


def part(tool: str = "weather", output: str = "sun", **metadata: Any) -> ToolPart:
    span = CompletedSpan(start=1, end=2)
    state = Completed(
        input={"city": "Oslo"}, output=output, title="", metadata=dict(metadata), time=span
    )
    return ToolPart(
        id="prt_1", session_id="ses_1", message_id="msg_1", call_id="c1", tool=tool, state=state
    )


def drawn(block: Block) -> list[str]:
    return [plain_line(line) for line in with_note(block_lines(block))]


def test_of_a_command_that_was_stopped_the_end_of_its_output_is_drawn() -> None:
    output = "".join(f"line {number}\n" for number in range(50))
    error = f"[the last 3 of 4 characters]\n{output}\nThe call was stopped before it ended."
    stopped = replace(
        part(),
        state=Failed(input={}, error=error, time=TimeSpan(start=1), metadata={"output": output}),
    )

    rows = drawn(default_block(stopped))

    assert (rows[0], rows[-2:]) == ("line 0", ["line 49", "Stopped."])
    assert len(rows) == TAIL_LINES + 2


def test_a_diff_has_the_numbers_of_its_lines_and_no_marks_of_the_format() -> None:
    assert drawn(Block(diff=DIFF)) == [
        "1   def add(a, b):",
        "2 -     return a - b",
        "2 +     return a + b",
        "⋯",
        " 9   x",
        "10 - -- y",
        "10 + -- z",
    ]


def test_the_words_that_changed_within_a_line_are_marked() -> None:
    rows = list(diff_rows(DIFF))

    assert [span.text for span in rows[1] if span.style == "removed_word"] == ["-"]
    assert [span.text for span in rows[2] if span.style == "added_word"] == ["+"]


def test_lines_that_share_only_blanks_are_two_lines_and_not_one_that_changed() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one two three four\n+five six seven eight\n"

    styles = {span.style for row in diff_rows(diff) for span in row}

    assert styles == {"number", "removed", "added"}


def test_a_diff_of_several_files_names_each() -> None:
    both = DIFF + DIFF.replace("calc.py", "other.py")

    assert [line for line in drawn(Block(diff=both, fold=99)) if ".py" in line] == [
        "calc.py",
        "other.py",
    ]


def test_a_fold_says_how_much_it_hides_at_the_end_where_it_hides_it() -> None:
    lines = tuple((Span(str(number)),) for number in range(5))

    assert drawn(Block(lines=lines, fold=2)) == ["0", "1", "… 3 more lines"]
    assert drawn(Block(lines=lines, fold=2, keep="tail")) == ["… 3 more lines", "3", "4"]
    assert drawn(Block(lines=lines, fold=3, keep="both")) == ["0", "… 2 more lines", "3", "4"]
    assert drawn(Block(lines=lines, fold=5, keep="both")) == ["0", "1", "2", "3", "4"]
    assert len(block_lines(Block(lines=lines, fold=2), "whole").lines) == 5


def test_a_table_stands_in_columns() -> None:
    assert drawn(Block(table=(("name", "n"), ("a", "10"), ("long name", "2")))) == [
        "name       n",
        "a          10",
        "long name  2",
    ]


def test_a_column_is_as_wide_as_its_letters_and_only_those_before_the_last_are_cut() -> None:
    long = "word " * 30

    assert drawn(Block(table=(("漢字", "n"), ("a", long.strip())))) == [
        "漢字  n",
        f"a     {long.strip()}",
    ]
    assert drawn(Block(table=((long, "n"),))) == [f"{long[:59]}…  n"]


@pytest.mark.parametrize(
    "block",
    [
        Block(lines=((Span(HOSTILE),),)),
        Block(table=((HOSTILE,),)),
        Block(diff=f"--- a\n+++ a\n@@ -1 +1 @@\n-{HOSTILE}\n+b"),
        Block(markdown=HOSTILE),
    ],
)
def test_nothing_in_a_block_moves_a_terminals_cursor(block: Block) -> None:
    text = "".join(drawn(block))

    assert text.isprintable()


def test_a_line_of_megabytes_is_cut() -> None:
    assert len(drawn(Block(lines=((Span("x" * 10_000_000),),)))[0]) < 3000


@tool
async def weather(city: str) -> ToolResult:
    """Tell the weather."""
    shown = Block(title=city, lines=((Span("sunny", "done"),),))
    return ToolResult(output="it is sunny", display=shown)


class Draws:
    """Draws calls, or fails at it."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked = 0

    @hookimpl
    def render_tool(self, part: ToolPart, width: int) -> object:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_what_a_tool_displays_is_stored_for_people_and_kept_from_models(
    tmp_path: Path,
) -> None:
    provider = Played(calls(call("weather", '{"city": "Oslo"}')), text("done"))

    async with opened(tmp_path, provider, ToolsPlugin(weather)) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt("hi", model="played/m"))
        turns = await app.list_turns(session.id)

    found = next(part for turn in turns for part in turn.parts if isinstance(part, ToolPart))
    assert given_block(found) == Block(title="Oslo", lines=((Span("sunny", "done"),),))
    assert "sunny" in str(provider.requests[-1].messages)
    assert "Block" not in str(provider.requests[-1].messages)
    assert "'done'" not in str(provider.requests[-1].messages)


@pytest.mark.fires("render_tool")
async def test_a_plugins_block_comes_before_the_tools_own_and_is_made_once(tmp_path: Path) -> None:
    draws = Draws(Block(title="drawn"))
    async with opened(tmp_path, Played(), draws) as app:
        blocks = CallBlocks(app)
        shown = part(display={"title": "given"})

        first, second = await blocks.block(shown, 80), await blocks.block(shown, 80)

    assert (first, second, draws.asked) == (Block(title="drawn"), first, 1)
    assert app.hooks.has(toolhooks.render_tool)


@pytest.mark.parametrize("answer", [ValueError("no"), "a text", 7, Block(title=3)])  # type: ignore[arg-type]
async def test_a_renderer_that_fails_is_named_and_the_call_is_shown_all_the_same(
    tmp_path: Path, answer: object
) -> None:
    async with opened(tmp_path, Played(), Draws(answer)) as app:
        block = await CallBlocks(app).block(part(), 80)
        failures = app.failures

    assert block == default_block(part())
    assert [failure.hook for failure in failures] == ["render_tool"]
    assert "Draws" in failures[0].message


@pytest.mark.parametrize(
    ("tool", "facts", "title"),
    [
        ("grep", {"matches": 1}, '{"city": "Oslo"} · 1 match'),
        ("glob", {"count": 2}, '{"city": "Oslo"} · 2 files'),
    ],
)
def test_how_much_was_found_is_said_once(tool: str, facts: dict[str, int], title: str) -> None:
    assert default_block(part(tool, **facts)).title == title


@pytest.mark.parametrize(
    ("arguments", "given", "title"),
    [
        ({"city": "Oslo"}, "Sunny in Oslo", "Sunny in Oslo"),
        ({"path": "a.py"}, "2 problems", "a.py · 2 problems"),
        ({"path": "a.py"}, "a.py, 2 problems", "a.py, 2 problems"),
        ({"path": "a.py"}, "", "a.py"),
        ({}, "Sunny", "Sunny"),
    ],
)
def test_a_title_of_a_tool_is_drawn_with_what_the_call_is_about(
    arguments: dict[str, str], given: str, title: str
) -> None:
    found = part()
    assert isinstance(found.state, Completed)
    state = replace(found.state, input=arguments, title=given)

    assert default_block(replace(found, state=state)).title == title


def test_a_change_of_no_line_has_no_counts() -> None:
    counts = {"additions": 0, "deletions": 0}

    assert default_block(part("write", diff="", filediff=counts)).title == '{"city": "Oslo"}'


def sketch(part: ToolPart) -> Block | None:
    """Draw what has ended; what runs is drawn by others."""
    return Block(title="sketched") if isinstance(part.state, Completed) else None


@tool(draw=sketch)
async def sketches() -> str:
    """Draw."""
    return "drawn"


async def test_a_tool_draws_its_own_calls_unless_a_plugin_does(tmp_path: Path) -> None:
    other = Draws(None)
    async with opened(tmp_path, Played(), callblocks, ToolsPlugin(sketches), other) as app:
        own = await CallBlocks(app).block(part("sketches", display={"title": "given"}), 80)
        running = replace(part("sketches"), state=RUNNING)
        others = await CallBlocks(app).block(running, 80)
        unknown = await CallBlocks(app).block(part("gone"), 80)
        other.answer = Block(title="drawn")
        foreign = await CallBlocks(app).block(part("sketches"), 80)

    assert (own, foreign) == (Block(title="sketched"), Block(title="drawn"))
    assert (others, unknown) == (default_block(running), default_block(part("gone")))


async def test_a_tool_whose_drawing_fails_is_shown_all_the_same(tmp_path: Path) -> None:
    def fails(part: ToolPart) -> Block | None:
        raise KeyError("no")

    broken = Tool.raw("broken", "", {}, lambda _, __: "", draw=fails)
    async with opened(tmp_path, Played(), callblocks, ToolsPlugin(broken)) as app:
        block = await CallBlocks(app).block(part("broken"), 80)
        failures = app.failures

    assert block == default_block(part("broken"))
    assert [failure.hook for failure in failures] == ["render_tool"]


DRAWN = [
    (read, {"filePath": "a.py", "offset": 3}, {}, "<file>\n3| x\n</file>", "a.py:3-"),
    (task, {"subagent_type": "explore", "description": "look"}, {}, "found", "explore: look"),
    (question, {"questions": []}, {}, "", "Asked 1 question"),
    (skill, {"name": "knots"}, {"name": "knots"}, "tie", "knots"),
    (apply_patch, {"patchText": "x"}, {"diff": "+x"}, "", "Asked 1 question"),
]


@pytest.mark.parametrize(("drawn", "args", "facts", "output", "title"), DRAWN)
def test_built_in_tools_draw_their_calls(
    drawn: Tool, args: dict[str, Any], facts: dict[str, Any], output: str, title: str
) -> None:
    assert drawn.draw is not None
    state = Completed(
        input=args,
        output=output,
        title="Asked 1 question",
        metadata=facts,
        time=CompletedSpan(start=1, end=2),
    )
    call = replace(part(drawn.id), state=state)

    block = drawn.draw(call)

    assert block is not None
    assert block.title == title
    assert drawn.draw(replace(call, state=RUNNING)) is None


async def test_tools_of_the_web_say_how_much_they_found() -> None:
    config = {"plugins": {"websearch": {"options": {"url": "http://127.0.0.1:1"}}}}
    for each in (*await tools_of(websearch, config=config), *await tools_of(webfetch)):
        assert each.draw is not None
        block = each.draw(part(each.id, results=3))
        assert block is not None
        found = '{"city": "Oslo"} · 3 results' if "search" in each.id else '{"city": "Oslo"}'
        assert block.title == found


def test_a_stored_display_that_is_none_counts_as_absent() -> None:
    assert given_block(part(display={"title": 3})) is None
    assert given_block(part(display="nonsense")) is None


def test_no_note_stands_in_the_place_of_a_single_line() -> None:
    lines = tuple((Span(f"line {number}"),) for number in range(4))

    assert drawn(Block(lines=lines, fold=3)) == [f"line {number}" for number in range(4)]
    assert drawn(Block(lines=lines, fold=2)) == ["line 0", "line 1", "… 2 more lines"]
    assert drawn(Block(lines=lines[:1], fold=0)) == ["… 1 more line"]
