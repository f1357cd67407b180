"""What a key at a permission request, or a line at a question means."""

import pytest

from pegboard.schema.session import Question, QuestionOption
from pegboard_plugins.cli.dialogs import Typed, question_lines, read_answer, read_key

COLOURS = (QuestionOption(label="Red", description="like fire"), QuestionOption(label="Blue"))


@pytest.mark.parametrize(
    ("key", "typed"),
    [
        ("y", Typed(reply="once")),
        ("n", Typed(reply="reject")),
        ("\x04", Typed(reply="reject")),
        ("s", Typed(reply="always", scope="session")),
        ("a", Typed(reply="always")),
        ("u", Typed(reply="always", scope="user")),
        ("A", Typed(reply="always", agent_only=True)),
        ("Y", None),
        ("w", None),
        ("", None),
    ],
)
def test_a_key_replies(key: str, typed: Typed | None) -> None:
    assert read_key(key) == typed


@pytest.mark.parametrize("key", ["a", "s", "u", "U"])
def test_what_is_asked_every_time_has_no_answer_for_good(key: str) -> None:
    assert read_key(key, once=True) is None
    assert read_key("y", once=True) == Typed(reply="once")


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
