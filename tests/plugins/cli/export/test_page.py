"""The page of a session is valid HTML in which whatever was said is text."""

import asyncio
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree.ElementTree import Element

import msgspec
import pytest
from html5lib import HTMLParser  # type: ignore[import-untyped]

from pegboard.schema.part import ToolPart
from pegboard.storage.changes import PutPart
from pegboard_plugins import task
from pegboard_plugins.cli.export.exporting import Wanted, export_session
from support.models.played import Played, opened, text
from support.sessions.conversing import converse, provider
from support.storage.every_part import PIXEL, session_with

HOSTILE = {
    "a tag": "<img src=x onerror=alert(1)></pre></script><script>alert(2)</script>",
    "a link": "[a](javascript:alert(1)) <javascript:alert(1)> ![b](http://127.0.0.1:9/p.png)",
    "an entity": "&#8238;&#x202e;&lt;img src=x onerror=alert(1)&gt;",
    "direction": "abc\u202edef\u2066ghi",
    "controls": "a\x00b\x1b[31mc\rd\x0ce\x85f\ufdd0g\U0001fffeh",
    "attributes": '"\' onmouseover=alert(1) x="',
    "Markdown": "# h\n\n|a|b|\n|:-:|--:|\n|1|2|\n\n```js\n</code>\n```\n\n1. x\n\n> q\n\n---\n",
}
ATTRIBUTES = {
    *("charset", "class", "content", "href", "http-equiv", "id", "lang", "name", "open", "rel"),
    *("alt", "aria-label", "hidden", "placeholder", "src", "start", "title", "type"),
}
"""None of them runs anything."""


def parsed(page: str) -> Element:
    """The page, which has no error that a browser would repair."""
    found: Element = HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)
    return found


async def page_of(folder: Path, words: str) -> str:
    async with opened(folder, Played(text("x"))) as app:
        session = await session_with(app, words, title=words[:40])
        wanted = Wanted(form="html", with_reasoning=True)
        return (await export_session(app, session.id, wanted)).content.decode()


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
async def test_whatever_was_said_is_text_of_a_valid_page(tmp_path: Path, words: str) -> None:
    page = await page_of(tmp_path, words)

    elements = list(parsed(page).iter())
    assert {name for each in elements for name in each.attrib} <= ATTRIBUTES
    assert [each.tag for each in elements].count("script") == 1
    assert {each.attrib["src"] for each in elements if "src" in each.attrib} == {PIXEL}
    links = [each.attrib["href"] for each in elements if "href" in each.attrib]
    assert [each for each in links if not each.startswith(("#", "http://127.", "data:,"))] == []
    assert re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b\r\x0c\x85]", page) is None


async def test_each_kind_of_part_is_on_the_page(tmp_path: Path) -> None:
    page = await page_of(tmp_path, "some words")

    for piece in (
        '<pre class="words">\nsome words</pre>',
        "<summary>added by the program</summary>",
        f'<img src="{PIXEL}"',
        "file: some words (text/plain) file:///x",
        "agent: some words",
        "task for helper: some words",
        "what came before is summarised",
        "attempt 1 failed: some words",
        "<summary>reasoning</summary>",
        "<p>some words</p>",
        '<span class="s-added_row">',
        "<summary>arguments</summary>",
        "<summary>output</summary>",
        "the call has not ended: running",
        "the model stopped: length",
        "changed files: some words",
        "<summary>changed x.py +1 -0</summary>",
        "error: some words",
        "<span>$0.2500</span>",
    ):
        assert piece in page, piece


async def test_a_subagent_stands_where_its_call_is(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        found = await export_session(app, session.id, Wanted(form="html"))

    page = found.content.decode()
    parsed(page)
    assert page.count("<summary>subagent: ") == 1
    assert page.index("<summary>subagent: ") < page.index("There are seven.")
    ids = re.findall(r'<article id="(msg_\w+)"', page)
    assert len(ids) == len(set(ids)) == 7
    assert all(f'href="#{each}"' in page for each in ids)


async def test_a_long_output_is_whole_on_the_page(tmp_path: Path) -> None:
    words = "<b>&amp; " * (5_000_000 // 9)
    async with opened(tmp_path, Played(text("x"))) as app:
        session = await session_with(app, "short")
        [_, answer] = await app.list_turns(session.id)
        call = next(each for each in answer.parts if isinstance(each, ToolPart))
        state = msgspec.structs.replace(call.state, output=words, metadata={"output": words})
        await app.storage.commit(PutPart(msgspec.structs.replace(call, state=state)))
        found = await export_session(app, session.id, Wanted(form="html"))

    page = found.content.decode()
    assert "<b>" not in page
    assert html.escape(words) in page


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
async def test_a_browser_opens_the_file_without_a_request_or_an_error(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    file, log = tmp_path / "page.html", tmp_path / "net.json"
    file.write_text(await page_of(tmp_path, "\n\n".join(HOSTILE.values())))
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")
    own = ("--disable-background-networking", "--disable-component-update", "--no-first-run")
    places = (f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}")
    done = await asyncio.to_thread(
        subprocess.run,
        [CHROMIUM, *options, *own, *places, "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )

    assert '<div id="tools">' in done.stdout  # so the script ran
    assert [line for line in done.stderr.splitlines() if ":CONSOLE" in line] == []
    urls = {
        event["params"]["url"]
        for event in json.loads(log.read_text())["events"]
        if "url" in event.get("params", {})
    }
    assert [url for url in urls if "127.0.0.1" in url] == []
