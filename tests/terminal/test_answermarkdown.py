"""Markdown as rows: nothing that a model says is left out, however narrow the terminal is."""

import pytest
from rich.style import Style

from pegboard_plugins.shared.terminal import PALETTE
from pegboard_plugins.shared.terminal.answermarkdown import markdown_rows

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


INLINE = (
    "![alt words](https://a.b/c.png)",
    "![](https://a.b/c.png)",
    "[![alt words](https://a.b/c.png)](https://d.e/f)",
    "[link words](https://a.b/c)",
    "**![alt words](https://a.b/c.png)**",
    "`code words`",
    "~~gone words~~",
    "<b>html words</b>",
    "![alt *more* words](https://a.b/c.png 'title')",
)
BLOCKS = ("{}", "- {}\n- next", "1. {}", "> {}", "# {}", "| head |\n|---|\n| {} |")


@pytest.mark.parametrize("inline", INLINE)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("width", [30, 100])
def test_the_words_of_a_line_stay_in_their_order(inline: str, block: str, width: int) -> None:
    words = [f"word{number}" for number in range(20)]
    text = f"{' '.join(words[:10])} {inline} {' '.join(words[10:])}"

    rows = [
        "".join(each for each, _ in row) for row in markdown_rows(block.format(text), width, {})
    ]

    found = " ".join(rows).split()
    assert [word for word in found if word.startswith("word") and word[4:].isdecimal()] == words
    assert all(len(row) <= width for row in rows)
    joined = "".join(found)
    for piece in ("https://a.b/c", "https://d.e/f", "alt", "words"):
        assert (piece in joined) == (piece in inline)
    assert found[:1] != ["alt"]


def test_an_image_in_a_list_stands_behind_its_bullet() -> None:
    rows = markdown_rows("- a point ![badge](https://a.b/c.svg) of it", 100, {})

    assert ["".join(words for words, _ in row) for row in rows] == [
        " • a point badge (https://a.b/c.svg) of it"
    ]


EVERYTHING = """# One

> quote `code` [link](https://a.b)

1. first
- point

| head |
|---|
| cell |

---

```python
# comment
@decorated
def name(value: int) -> str:
    return f"text {value}" + str(12) or not None
class Other: pass
```

```diff
+added
-removed
```
"""


def test_all_colours_of_an_answer_are_the_theme_s() -> None:
    roles = {role: Style.parse("#010203") for role in PALETTE}

    spans = [span for row in markdown_rows(EVERYTHING, 80, roles) for span in row]

    colours = {style.color.name for _, style in spans if style.color}
    grounds = {style.bgcolor for _, style in spans if style.bgcolor}
    words = {text.strip() for text, style in spans if style.color}
    assert (colours, grounds) == ({"#010203"}, set())
    assert {"def", "name", "return", "# comment", "+added", "One", "head", "code"} <= words


def test_a_theme_without_colours_draws_code_without_colours() -> None:
    roles = {role: Style.null() for role in PALETTE}

    rows = markdown_rows(EVERYTHING, 80, roles)

    assert [span for row in rows for span in row if span[1].color or span[1].bgcolor] == []


def test_code_begins_in_the_first_column() -> None:
    rows = markdown_rows("text\n\n```python\nif x:\n    y()\n```\n\nmore", 80, {})

    assert ["".join(text for text, _ in row) for row in rows] == [
        *("text", "", "if x:", "    y()", "", "more"),
    ]
