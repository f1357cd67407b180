"""A session with a part of each kind, in each field of which stands what no page may obey."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from pegboard import App, AppOptions
from pegboard.schema.part import Completed, ToolPart
from pegboard.storage.changes import PutPart
from support.storage.every_part import PIXEL, session_with
from support.wire.served import Served, served

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"></pre><script>document.title='owned'</script> "
    "[a](javascript:document.title='owned') ![b](http://127.0.0.1:9/x.png) \u202egnp.exe \x1b[31m"
)
OUTPUT_BYTES = 5_000_000
LONG = "<b>long</b> " * (OUTPUT_BYTES // 12)
TURNED = re.compile("[\u202a-\u202e\u2066-\u2069\x1b]")


@pytest.fixture(scope="module")
def server(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of their own: other tests count the sessions of the shared one."""
    with served(tmp_path_factory.mktemp("parts"), model_port) as running:
        yield running


def stored(server: Served, change: Callable[[App], Awaitable[str]]) -> str:
    """What `change` returns of an App on the server's own files."""

    async def run() -> str:
        places = {f"{name}_dir": server.places / name for name in ("config", "data", "state")}
        options = AppOptions(**places, cache_dir=server.places / "cache", trust=False)
        async with App.open(server.directory, options) as app:
            return await change(app)

    with ThreadPoolExecutor(1) as pool:  # this thread has the loop of the browser's driver
        return pool.submit(asyncio.run, run()).result()


async def hostile(app: App) -> str:
    return (await session_with(app, HOSTILE, title=HOSTILE)).id


async def long(app: App) -> str:
    session = await session_with(app, "short")
    [_, answer] = await app.list_turns(session.id)
    call = next(
        part
        for part in answer.parts
        if isinstance(part, ToolPart) and isinstance(part.state, Completed)
    )
    state = msgspec.structs.replace(call.state, output=LONG)
    await app.storage.commit(PutPart(msgspec.structs.replace(call, state=state)))
    return session.id


@pytest.mark.parametrize("page", ["", "/changes", "/hooks"])
def test_no_field_of_a_session_is_obeyed(server: Served, view: Any, page: str) -> None:
    session = stored(server, hostile)
    view.sign_in(server, path=f"#/session/{session}{page}")
    view.page.locator("main h1", has_text="<img src=x").wait_for()
    view.page.locator("[role=status]", has_text="Loading").wait_for(state="detached")
    view.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    images = view.page.locator("main img").all()

    assert {each.get_attribute("src") for each in images} <= {PIXEL}
    assert view.page.locator("main script, main a[href^=javascript]").count() == 0
    assert TURNED.search(view.text()) is None
    assert "owned" not in view.page.title()
    assert [url for url in view.requests if not url.startswith((server.url, "data:"))] == []
    assert view.console == []


def test_five_megabytes_of_output_are_text_and_the_page_can_be_used(
    server: Served, view: Any
) -> None:
    session = stored(server, long)
    view.sign_in(server, path=f"#/session/{session}")
    view.page.locator("article.answer").wait_for()
    view.page.get_by_label("Prompt").fill("still here")

    assert "<b>long</b>" in view.page.text_content(".messages")
    assert "more characters" in view.page.text_content(".messages")
    assert view.page.locator("article b").count() == 0
    assert view.page.get_by_label("Prompt").input_value() == "still here"
