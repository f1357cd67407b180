"""The pictures of the chat show what it looks like, and the pages show the pictures."""

import re
from pathlib import Path

import pyte
import pytest

from docs.pages import PAGES
from docs.pictures import FOLDER, SCENES, taken
from docs.terminal_svg import DARK, Screen, rows_of, svg

LIMIT_BYTES = 60_000
_PICTURE = re.compile(r"!\[([^\]]+)\]\(([^)]+\.svg)\)")


@pytest.mark.parametrize("name", ["permission", "streaming"])
async def test_a_picture_shows_what_a_chat_shows_now(name: str, tmp_path: Path) -> None:
    stored = (FOLDER / f"{name}.svg").read_text()
    rows = rows_of(stored)

    shown = await taken(SCENES[name], tmp_path, lambda picture: rows_of(picture) == rows)

    assert rows_of(shown) == rows
    assert len(rows) > 10


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(SCENES))
async def test_every_picture_is_what_the_script_makes(name: str, tmp_path: Path) -> None:
    stored = (FOLDER / f"{name}.svg").read_text()

    assert await taken(SCENES[name], tmp_path, stored.__eq__) == stored


def test_a_picture_does_not_depend_on_the_time_that_work_takes() -> None:
    pictures = []
    for call, turn in (("1.2", "3"), ("12.3", "45")):
        screen = Screen(40, 2)
        pyte.Stream(screen).feed(f"bash make  {call} s\r\nWriting · {turn} s · Esc stops")
        pictures.append(svg(screen, DARK, "A turn"))

    assert pictures[0] == pictures[1]


def test_each_picture_is_small_and_stands_on_a_page_with_words_for_it() -> None:
    pages = [page for page in PAGES if _PICTURE.search(page.read_text())]
    shown = {
        (page.parent / target).resolve(): words
        for page in pages
        for words, target in _PICTURE.findall(page.read_text())
    }
    files = sorted(FOLDER.iterdir())

    assert files == sorted(FOLDER / f"{name}.svg" for name in SCENES)
    assert [file for file in files if len(shown.get(file, "").split()) < 4] == []
    assert [file for file in files if file.stat().st_size > LIMIT_BYTES] == []
