"""What stays in a small window: the answers, what is asked about, and the row that is marked."""

import re
from collections.abc import Sequence

import pytest

from pegboard.display import Span, SpanLine, plain_line
from pegboard.schema.part import Running, TimeSpan, ToolPart
from pegboard.schema.session import (
    PermissionRequest,
    Question,
    QuestionOption,
    QuestionRequest,
    Session,
    SessionTime,
    Todo,
)
from pegboard_plugins.chat.attention import WAITING
from pegboard_plugins.chat.course import Course
from pegboard_plugins.chat.finished import Asked, Thought, rows_of
from pegboard_plugins.chat.footer import NARROW_ROOM, Footing, footer_lines
from pegboard_plugins.chat.modes import Choice, Item, Menu
from pegboard_plugins.chat.questions import QuestionDialog
from pegboard_plugins.chat.requests import Permission
from pegboard_plugins.shared.terminal import PALETTE, MarkdownBlocks, Pen
from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

LONG = "Which of these many colours would you like for the door that opens to the garden?"


SESSION = Session(
    id="ses_1",
    slug="s",
    project_id="p",
    directory="/",
    title="t",
    version="1",
    time=SessionTime(created=1, updated=1),
)


def plain(lines: list[SpanLine]) -> list[str]:
    return [plain_line(line) for line in lines]


def footing(
    course: Course | None = None, *, offered: Sequence[Span] = (), chosen: int = 0
) -> Footing:
    return Footing(
        course=course,
        mode=None,
        hint="",
        queue=(),
        edit_key="",
        offered=offered,
        chosen=chosen,
        widgets=(),
        notice="",
        is_connected=True,
    )


def test_a_question_gives_way_to_its_answers_and_ends_at_words() -> None:
    options = (
        QuestionOption(label="Red", description=""),
        QuestionOption(label="Blue", description=""),
    )
    asked = Question(question=LONG, header="Colour", options=options)
    request = QuestionRequest(id="que_1", session_id="ses_1", questions=(asked,))

    rows = plain([*QuestionDialog(request, lambda *_: None).lines(38, 4)])

    assert len(rows) <= 4
    assert rows[0].endswith("many colours ")
    assert {"1 Red", "2 Blue", "esc skip"} <= {
        answer.strip("❯ ") for row in rows for answer in row.split(" · ")
    }


def test_a_dialog_without_room_for_what_is_asked_names_it_in_its_title() -> None:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="edit",
        patterns=("calc.py",),
        metadata={},
        always=("*",),
    )
    dialog = Permission(request, lambda *_: None)

    low = plain([*dialog.lines(38, 4)])
    high = plain([*dialog.lines(38, 12)])

    assert low[0].startswith("Allow edit calc.py?")
    assert high[0].startswith("Allow edit?")
    assert high[1] == "  calc.py"


CHANGE = """\
--- a/calc.py
+++ b/calc.py
@@ -12,7 +12,7 @@
 line 12
 line 13
 line 14
-line 15
+line fifteen
 line 16
 line 17
 line 18
"""


def test_a_dialog_without_room_for_all_of_a_change_begins_with_its_first_changed_row() -> None:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="edit",
        patterns=("calc.py",),
        metadata={"diff": CHANGE, "agent": "build"},
        always=("*",),
    )
    dialog = Permission(request, lambda *_: None)

    rows = plain([*dialog.lines(79, 4)])
    dialog.press("pageup")
    back = plain([*dialog.lines(79, 4)])
    wide = plain([*Permission(request, lambda *_: None).lines(79, 30)])

    assert rows[0].startswith("Allow edit calc.py? · rows 5-6 of 9 · PgUp PgDn · v shows all")
    assert [row.split(" ", 4)[3:] for row in rows[1:3]] == [["-", "line 15"], ["+", "line fifteen"]]
    assert back[0].startswith("Allow edit calc.py? · rows 4-5 of 9")
    assert wide[:2] == ["Allow edit? · agent build", "  calc.py"]


def test_a_dialog_without_room_names_the_whole_command_and_not_its_first_part() -> None:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns=("npm test", "npm run build"),
        metadata={"command": "npm test && npm run build"},
        always=("npm test *", "npm run *"),
    )

    head = plain([*Permission(request, lambda *_: None).lines(79, 3)])[0]

    assert head == "Allow bash npm test && npm run build? · 1 row · v shows all"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_head_of_a_dialog_names_the_key_that_shows_all_in_any_width(width: int) -> None:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="edit",
        patterns=("a/long/path/to/some/file/calc.py",),
        metadata={"diff": CHANGE, "agent": "build"},
        always=("*",),
    )

    for room in (3, 4, 6, 8):
        head = plain([*Permission(request, lambda *_: None).lines(width, room)])[0]
        assert len(head) <= width
        assert "v shows all" in head


def test_a_list_of_an_answer_has_the_room_of_the_footer_while_it_is_written() -> None:
    items = [f"- item {number}" for number in range(1, 21)]
    blocks = MarkdownBlocks()
    assert not [*blocks.feed("\n".join(items))]
    course = Course(SESSION)
    course._texts["prt_1"] = blocks

    for room in (3, 6, 13):
        rows = [row for row in plain(footer_lines(footing(course), 80, room)) if row]
        assert rows == items[-len(rows) :]
        assert len(rows) == (room - 1 if room > NARROW_ROOM else room)


def test_a_thought_that_is_cut_ends_with_an_ellipsis() -> None:
    pen = Pen(PALETTE, colours=None)

    def shown(text: str) -> str:
        return "".join(rows_of(Thought(text, 3), pen, 1000))

    assert shown("a short one").endswith("thought for 3 s: a short one")
    assert shown("word " * 100).endswith("word word…")


@pytest.mark.parametrize("width", [30, 40, 80])
async def test_the_key_that_answers_is_named_in_any_width(width: int) -> None:
    given = footing()
    given.mode = Menu("Get started", [Item(value="one")])
    given.hint = WAITING.format("Ctrl+X")

    rows = plain(footer_lines(given, width, 12))

    assert rows[-1].endswith("Ctrl+X to answer")


def test_tasks_leave_half_of_the_room_to_the_answer_that_is_written() -> None:
    blocks = MarkdownBlocks()
    assert not [*blocks.feed("\n".join(f"- item {number}" for number in range(1, 21)))]
    course = Course(SESSION)
    course._texts["prt_1"] = blocks
    names = ("one", "two", "three")
    course.todos = tuple(Todo(content=each, status="pending") for each in names)

    for room, items in ((2, 1), (4, 2), (6, 3), (13, 8)):
        rows = plain(footer_lines(footing(course), 80, room))
        assert sum("item" in row for row in rows) == items
        assert any("one" in row for row in rows)


async def test_the_end_of_an_answer_is_seen_in_a_low_window_while_it_is_written(
    pegboard: CommandLine,
) -> None:
    listed = "\n".join(f"- item {number}" for number in range(1, 7))
    scripts(pegboard, hello={"text": listed}, chunk_chars=1, delay_s=0.3)

    async with chat(pegboard, columns=40, rows=8) as terminal:
        await terminal.say("hello")
        await terminal.see_now("- item 2\n- item 3")
        assert "Esc" in "\n".join(terminal.shown)
        terminal.press("escape")
        await terminal.see("stopped")


def test_the_row_of_a_call_has_its_duration_in_any_width() -> None:
    state = Running(input={"command": "x" * 200}, time=TimeSpan(start=0))
    part = ToolPart(
        id="prt_1",
        session_id="ses_1",
        message_id="msg_1",
        call_id="call_1",
        tool="bash",
        state=state,
    )

    course = Course(SESSION)
    course.calls[part.id] = part

    for width in (40, 60, 80, 200):
        (row,) = (row for row in plain(footer_lines(footing(course), width, 12)) if "bash" in row)
        assert re.fullmatch(r"● bash x+…?  \d+\.\d s", row)
        assert len(row) <= width


@pytest.mark.parametrize(("room", "seen"), [(2, 1), (4, 3), (6, 5), (9, 7), (13, 10)])
def test_the_marked_offer_is_seen_and_its_number(room: int, seen: int) -> None:
    offered = [Span(f"/{number}") for number in range(30)]

    lines = footer_lines(footing(offered=offered, chosen=20), 40, room)
    rows = [row for row in plain(lines) if row.strip()]

    assert len(rows) == seen + 1
    assert "❯ /20" in rows
    assert rows[-1] == "  21 of 30"


async def test_the_head_of_a_list_says_which_keys_choose_and_cancel() -> None:
    choice = Choice("Permission mode", [Item(value="ask"), Item(value="plan")])

    heads = {width: plain_line(choice.lines(width, 4)[0]) for width in (39, 80)}

    models = Choice("Model", [Item(value=str(n)) for n in range(64)], save_key="Alt+Enter")
    for width in (38, 80):
        head = plain_line(models.lines(width, 4)[0])
        assert len(head) <= width
        assert re.search(r"Alt\+Enter (also )?saves it", head)
    menu = Menu("Get started", [Item(value="login")])
    assert plain_line(menu.lines(39, 4)[0]) == "Get started  letter · Enter · Esc"
    assert heads[39] == "Permission mode  2 of 2 · Enter · Esc"
    assert heads[80].endswith("2 of 2 · type to filter · Enter chooses · Esc cancels")


def test_of_a_long_prompt_the_words_behind_a_paste_are_seen() -> None:
    text = "\n".join(["look at this:", *(f"line {n}" for n in range(500)), "what is this?"])

    rows = rows_of(Asked(text), Pen(PALETTE, colours=0), 80)

    assert len(rows) < 20
    assert "look at this:" in rows[1]
    assert rows[-1].strip() == "what is this?"
