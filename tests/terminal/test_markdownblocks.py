"""Markdown is cut where a block is finished, whatever the pieces are in which it comes."""

import pytest

from pegboard_plugins.shared.terminal import Pen
from pegboard_plugins.shared.terminal.markdownblocks import LONGEST_BLOCK, MarkdownBlocks

TEXT = """# Title
A paragraph
of two lines.

- one

  more of one
- two

```python
x = 1

y = 2
```
Behind it.
~~~
``` no end
~~~"""
BLOCKS = [
    "# Title",
    "A paragraph\nof two lines.",
    "- one\n\n  more of one\n- two",
    "```python\nx = 1\n\ny = 2\n```",
    "Behind it.",
    "~~~\n``` no end\n~~~",
]


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_blocks_are_the_same_however_the_text_comes(size: int) -> None:
    blocks = MarkdownBlocks()

    pieces = [TEXT[place : place + size] for place in range(0, len(TEXT), size)]
    found = [block for piece in pieces for block in blocks.feed(piece)]

    assert [*found, *blocks.flush()] == BLOCKS
    assert list(blocks.flush()) == []


def test_a_block_comes_with_the_line_that_ends_it() -> None:
    blocks = MarkdownBlocks()

    assert list(blocks.feed("one\n")) == []
    assert list(blocks.feed("\n")) == ["one"]
    assert list(blocks.feed("```\ncode\n\n")) == []
    assert list(blocks.feed("```\n")) == ["```\ncode\n\n```"]


def test_a_fence_without_an_end_comes_in_parts_that_are_fenced_themselves() -> None:
    blocks = MarkdownBlocks()

    first, *_ = blocks.feed("```py\n" + "x = 1\n" * LONGEST_BLOCK)

    assert first.startswith("```py\n")
    assert first.endswith("\n```")


def test_the_tail_is_the_end_of_what_is_not_finished() -> None:
    blocks = MarkdownBlocks()
    list(blocks.feed("gone\n\none\ntwo\nthr"))
    list(blocks.feed("ee" * 100))

    assert blocks.tail(2, 10) == "two\n" + ("ee" * 100)[-10:]


def test_markdown_on_a_terminal_has_no_frames_and_nothing_filled_up() -> None:
    rows = Pen(colours="none").markdown("# Head\n\ntext\n\n---\n\n```\ncode\n```", 60)

    assert max(map(len, rows)) < 20
    assert [row for row in rows if row != row.rstrip()] == []


def test_links_and_controls_of_an_answer_are_no_commands_for_a_terminal() -> None:
    rows = Pen(colours="standard").markdown("[a](http://b) \x1b]0;title\x07 `\x9b2J`", 60)

    assert "\x1b]" not in "".join(rows)
    assert "\x9b" not in "".join(rows)


def test_tags_that_a_model_writes_are_shown_as_they_are() -> None:
    rows = Pen(colours="none").markdown("a <b>bold</b> word\n\n<div>\nin it\n</div>", 60)

    assert "<b>bold</b>" in "".join(rows)
    assert "<div>" in "".join(rows)


@pytest.mark.parametrize("text", ["> " * 60 + "words", "- " * 40 + "words", "`" * 500 + "words"])
def test_what_is_nested_too_deeply_is_shown_as_it_was_written(text: str) -> None:
    rows = Pen(colours="none").markdown(text, 40)

    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_a_line_without_end_is_given_in_pieces() -> None:
    blocks = MarkdownBlocks()
    line = "word " * (3 * LONGEST_BLOCK)

    found = [*blocks.feed(line[:7]), *blocks.feed(line[7:]), *blocks.flush()]

    assert "".join(found).replace(" ", "") == line.replace(" ", "")
    assert max(map(len, found)) <= 2 * LONGEST_BLOCK
