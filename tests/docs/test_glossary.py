"""The glossary has each word once, in one sentence, and the value that carries it exists."""

import importlib
import re

from docs.reference_pages import REFERENCE
from support.plugins.surface import PROMISED

ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in (REFERENCE / "glossary.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| word |")
]


def test_each_word_stands_once_in_the_order_of_the_alphabet() -> None:
    words = [word.lower() for word, _, _ in ROWS]

    assert len(words) > 50
    assert words == sorted(set(words))


def test_a_meaning_is_one_sentence() -> None:
    several = [word for word, meaning, _ in ROWS if re.search(r"\.\s", meaning)]

    assert several == []
    assert all(meaning.endswith(".") for _, meaning, _ in ROWS)


def test_the_values_of_words_exist_and_are_public() -> None:
    for _, _, value in ROWS:
        module, _, name = value.strip("`").rpartition(".")
        assert not name or module in PROMISED or module.startswith("pegboard.schema.")
        assert not name or hasattr(importlib.import_module(module), name), value
