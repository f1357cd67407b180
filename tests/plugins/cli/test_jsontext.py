"""JSON has an escape for what a terminal would obey or not show, and means the same."""

import json
from datetime import time

import pytest

from pegboard_plugins.cli.jsontext import as_json

UNSEEN = (
    *("\x1b", "\x7f", "\x9b", "\u00ad", "\u061c", "\u200b", "\u200e", "\u2028", "\u202e"),
    *("\u2066", "\ufeff", "\udc80", "\U000e0041", "\U0001d173"),
)


@pytest.mark.parametrize("letter", UNSEEN)
def test_what_is_not_seen_is_an_escape(letter: str) -> None:
    value = {"pattern": [f"rm{letter} x"], f"k{letter}": 1}

    text = as_json(value, indent=2)

    assert text.replace("\n", "").isprintable()
    assert letter not in text
    assert json.loads(text) == value


def test_a_time_of_toml_is_its_text() -> None:
    assert as_json({"begin": time(22, 30)}) == '{"begin": "22:30:00"}'


def test_letters_stay_as_they_are() -> None:
    assert as_json({"a": "größe 日本 😀 \t"}) == '{"a": "größe 日本 😀 \\t"}'
