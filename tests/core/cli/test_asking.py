"""What a line at a permission question means."""

import pytest

from pegboard.cli.asking import Typed, read_reply


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("y\n", Typed(reply="once")),
        ("YES\n", Typed(reply="once")),
        ("a\n", Typed(reply="always")),
        ("n\n", Typed(reply="reject")),
        ("use git rm\n", Typed(reply="reject", message="use git rm")),
        (None, Typed(reply="reject")),
    ],
)
def test_a_key_replies_and_any_other_text_rejects_with_it(line: str | None, typed: Typed) -> None:
    assert read_reply(line) == typed


def test_an_empty_line_is_no_reply() -> None:
    assert read_reply("  \n") is None
