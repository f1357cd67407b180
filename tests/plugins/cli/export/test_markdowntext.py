"""The Markdown of a session has each part, and a viewer obeys nothing of what was said."""

from pathlib import Path

import pytest

from pegboard_plugins.cli.export.exporting import Wanted, export_session
from support.clients.lenient_viewer import drawn
from support.models.played import Played, opened, text
from support.storage.every_part import session_with

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1)) ![b](http://127.0.0.1:9/p.png)",
    "```\n</code>\n<img src=x onerror=alert(1)>",
    "abc\u202edef &#8238;",
)


async def markdown_of(folder: Path, words: str) -> str:
    async with opened(folder, Played(text("x"))) as app:
        session = await session_with(app, words, title=words[:40])
        return (await export_session(app, session.id, Wanted(form="md"))).content.decode()


@pytest.mark.parametrize("words", HOSTILE)
async def test_a_viewer_obeys_nothing_of_what_was_said(tmp_path: Path, words: str) -> None:
    page = drawn(await markdown_of(tmp_path, words))

    assert "<img" not in page
    assert 'href="' not in page
    assert "\u202e" not in page


async def test_each_kind_of_part_is_in_the_text(tmp_path: Path) -> None:
    found = await markdown_of(tmp_path, "some words")

    for piece in (
        "\n```\nsome words\n```\n",
        "**added by the program**",
        "image: some words",
        "agent: some words",
        "task for helper: some words",
        "what came before is summarised",
        "attempt 1 failed: some words",
        "\nsome words\n",
        "**arguments**",
        "the call has not ended: running",
        "changed files: some words",
        "**changed x.py +1 -0**",
        "error: some words",
        "$0.2500",
    ):
        assert piece in found, piece
    assert "reasoning" not in found
