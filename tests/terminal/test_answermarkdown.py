"""Markdown as rows: nothing that a model says is left out, however narrow the terminal is."""

from pegboard_terminal.answermarkdown import markdown_rows

TABLE = "| file | what |\n|---|---|\n| tests/plugins/test_cart.py | a test |\n"


def test_a_long_word_in_a_table_goes_on_in_the_next_row() -> None:
    rows = ["".join(text for text, _ in row) for row in markdown_rows(TABLE, 24, {})]

    first_column = "".join(row[:17].strip() for row in rows[2:])
    assert "tests/plugins/test_cart.py" in first_column
    assert all(len(row) <= 24 for row in rows)


def test_an_address_that_is_its_own_text_stands_there_once() -> None:
    text = "See <https://a.b/c>, [https://d.e](https://d.e), <me@f.g> and [h](https://i.j)."

    rows = ["".join(words for words, _ in row) for row in markdown_rows(text, 100, {})]

    assert rows == ["See https://a.b/c, https://d.e, me@f.g and h (https://i.j)."]
