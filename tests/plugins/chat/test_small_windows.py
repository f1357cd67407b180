"""What stays in a small window: the answers, what is asked about, and the row that is marked."""

import pytest

from pegboard.display import Span, SpanLine, plain_line
from pegboard.schema.session import PermissionRequest, Question, QuestionOption, QuestionRequest
from pegboard_plugins.chat.finished import Asked, rows_of
from pegboard_plugins.chat.footer import Footing, footer_lines
from pegboard_plugins.chat.modes import Choice, Item, Menu
from pegboard_plugins.chat.requests import Permission, Questions
from pegboard_plugins.shared.terminal import PALETTE, Pen

LONG = "Which of these many colours would you like for the door that opens to the garden?"


def plain(lines: list[SpanLine]) -> list[str]:
    return [plain_line(line) for line in lines]


def test_a_question_gives_way_to_its_answers_and_ends_at_words() -> None:
    options = (
        QuestionOption(label="Red", description=""),
        QuestionOption(label="Blue", description=""),
    )
    asked = Question(question=LONG, header="Colour", options=options)
    request = QuestionRequest(id="que_1", session_id="ses_1", questions=(asked,))

    rows = plain([*Questions(request, lambda *_: None).lines(38, 4)])

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


@pytest.mark.parametrize(("room", "seen"), [(2, 1), (4, 3), (6, 5), (12, 6)])
def test_the_marked_offer_is_seen_and_its_number(room: int, seen: int) -> None:
    offered = [Span(f"/{number}") for number in range(30)]
    footing = Footing(
        course=None,
        mode=None,
        hint="",
        queue=(),
        offered=offered,
        chosen=20,
        widgets=(),
        notice="",
        is_connected=True,
    )

    rows = [row for row in plain(footer_lines(footing, 40, room)) if row.strip()]

    assert len(rows) == seen + 1
    assert "❯ /20" in rows
    assert rows[-1] == "  21 of 30"


async def test_the_head_of_a_list_says_which_keys_choose_and_cancel() -> None:
    choice = Choice("Permission mode", [Item(value="ask"), Item(value="plan")])

    heads = {width: plain_line(choice.lines(width, 4)[0]) for width in (39, 80)}

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
