"""What a line at a permission request or a question means."""

import pytest

from pegboard.schema.session import Question, QuestionOption
from pegboard_plugins.cli.dialogs import Typed, read_answer, read_reply
from pegboard_plugins.cli.render import question_lines

COLOURS = (QuestionOption(label="Red", description="like fire"), QuestionOption(label="Blue"))


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("y\n", Typed(reply="once")),
        ("YES\n", Typed(reply="once")),
        ("a\n", Typed(reply="always")),
        ("S\n", Typed(reply="always", scope="session")),
        ("u\n", Typed(reply="always", scope="user")),
        ("a@\n", Typed(reply="always", agent_only=True)),
        ("session@\n", Typed(reply="always", scope="session", agent_only=True)),
        ("y@\n", Typed(reply="reject", message="y@")),
        ("n\n", Typed(reply="reject")),
        ("use git rm\n", Typed(reply="reject", message="use git rm")),
        (None, Typed(reply="reject")),
    ],
)
def test_a_key_replies_and_any_other_text_rejects_with_it(line: str | None, typed: Typed) -> None:
    assert read_reply(line) == typed


def test_an_empty_line_is_no_reply() -> None:
    assert read_reply("  \n") is None
    assert read_reply("  \n", once=True) is None


@pytest.mark.parametrize("line", ["a\n", "s\n", "u@\n", "Always\n"])
def test_what_is_asked_every_time_has_no_answer_for_good(line: str) -> None:
    assert read_reply(line, once=True) is None
    assert read_reply("y\n", once=True) == Typed(reply="once")
    assert read_reply("no, use git rm\n", once=True) == Typed(
        reply="reject", message="no, use git rm"
    )


@pytest.mark.parametrize(
    ("line", "multiple", "answer"),
    [
        ("2\n", False, ("Blue",)),
        (" 2, 1 \n", True, ("Red", "Blue")),
        ("1,2\n", False, None),
        ("0\n", False, None),
        ("3\n", False, None),
        ("\n", False, None),
        ("the green one\n", False, ("the green one",)),
        ("-\n", False, ()),
        (None, False, ()),
    ],
)
def test_a_number_chooses_an_option_and_any_other_text_is_an_answer(
    line: str | None, multiple: bool, answer: tuple[str, ...] | None
) -> None:
    question = Question(question="Which?", options=COLOURS, multiple=multiple)

    assert read_answer(line, question) == answer


def test_where_no_other_answer_is_wanted_a_text_is_none() -> None:
    question = Question(question="Which?", options=COLOURS, custom=False)

    assert read_answer("green", question) is None


def test_a_question_is_shown_with_numbered_options() -> None:
    lines = question_lines(Question(question="Which?", options=COLOURS))

    assert [line.plain() for line in lines] == [
        "question Which?",
        "  1. Red like fire",
        "  2. Blue",
    ]
