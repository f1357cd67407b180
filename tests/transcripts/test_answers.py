"""Answers in Markdown: drawn, and never obeyed."""

import random
import re

import pytest

from pegboard_plugins.shared.transcripts import answer_html, answer_markdown, fenced
from support.clients.lenient_viewer import drawn

SAFE = {
    "code in a line": "use `Vec<T>` here",
    "a fence": "```c\n#include <a.h>\nx[0] & 1\n```",
    "a link": "see [the page](https://example.org/a)",
    "a link that is defined": "see [the page][1] [x]\n\n[1]: https://example.org/a",
    "a table": "| a | b |\n|---|---|\n| 1 | 2 |",
    "a list": "- one\n- two\n\n  more",
}
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "a ` b\nc ` <img src=x onerror=alert(1)> ` d",
    "\\`<img src=x onerror=alert(1)>`",
    "| `a | <img src=x onerror=alert(1)> `b |\n|---|---|\n| `a | <img src=x onerror=alert(1)> ` |",
    "> a ` b\n> <img src=x onerror=alert(1)>",
    "- x\n  ```\n  y\n  ```\n  <img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "![x](http://127.0.0.1/p.png)",
    "<javascript:alert(1)>",
    "&lt;img&gt; &#8238;",
    "`` ` <b> `` <img src=x onerror=alert(1)> `",
    "# `x <img src=x onerror=alert(1)>\n`",
    "```&#8238;\nx\n```",
    "``\n<script><img src=x onerror=alert(1)>\n``",
    "[a]: javascript:b\n    <img src=x onerror=alert(1)>",
    "[a]: http://b\n    <img src=x onerror=alert(1)>",
    "[a]: http://b '<b>'\n    <img src=x onerror=alert(1)>",
)


@pytest.mark.parametrize("text", SAFE.values(), ids=SAFE)
def test_markdown_stays_as_the_model_wrote_it(text: str) -> None:
    assert answer_markdown(text) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_an_answer_is_obeyed(text: str) -> None:
    for page in (drawn(answer_markdown(text)), answer_html(text) or ""):
        assert "<img" not in page
        assert 'href="javascript' not in page
        assert "\u202e" not in page


PIECES = (
    *("`", "``", "```", "~~~", "<img src=x onerror=alert(1)>", "[a](javascript:b)", "[a]", "[]("),
    *("[a]: javascript:c\n", "![i](http://h/x)", "\n", "\n\n", "> ", "- ", "1. ", "    ", "| "),
    *(
        "|---|",
        "|\n",
        "\\",
        "&lt;",
        "&#8238;",
        "# ",
        "<!-- ",
        "<script>",
        "x",
        "===",
        "<javascript:b>",
    ),
)


def test_no_mixture_of_markdown_is_obeyed() -> None:
    chance = random.Random(3)
    for _ in range(1_000):
        text = "".join(chance.choices(PIECES, k=chance.randint(1, 14)))
        page = drawn(f"{answer_markdown(text)}\n\n{fenced('<img src=after>')}\n\nend")

        assert page.endswith("<p>end</p>\n"), text
        for each in (page, answer_html(text) or ""):
            assert re.search("<(img|script|!--)|href=.?javascript|\u202e", each) is None, text


def test_an_answer_that_is_too_deep_is_plain_text() -> None:
    deep = "> " * 30 + "x"

    assert answer_html(deep) is None
    assert answer_markdown(deep) == fenced(deep)


def test_a_fence_cannot_be_closed_by_its_text() -> None:
    assert fenced("```\n````") == "`````\n```\n````\n`````"


@pytest.mark.parametrize("text", ["```\nx", "~~~~\nx\n~~~", "x\n\n```"])
def test_a_fence_that_the_model_left_open_is_closed(text: str) -> None:
    assert "<p>after</p>" in drawn(f"{answer_markdown(text)}\n\nafter")
