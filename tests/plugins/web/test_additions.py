"""Pages and panels of plugins: drawn from blocks, and named when their code fails."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.wire.served import Served, served
from support.wire.streams_heard import prompt

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs/examples/web_additions.py"
BROKEN = """
import asyncio

from pegboard import hookimpl
from pegboard.display import Block
from pegboard_plugins.web import WebPage, WebPanel

async def broken(app):
    raise ValueError("no such <b>thing</b>")

async def hostile(app):
    text = "<img src=x onerror=alert(1)> [a](javascript:alert(1))"
    return (Block(title=text, table=((text,), (text,)), markdown=text),)

async def panel(app, session_id):
    raise KeyError(session_id[:4])

@hookimpl(optionalhook=True)
def web_pages():
    names = {"broken": broken, "hostile": hostile}
    return [WebPage(name=name, title=name, draw=draw) for name, draw in names.items()]

@hookimpl(optionalhook=True)
def web_panels():
    return [WebPanel(name="panel", title="panel", draw=panel)]
"""


@pytest.fixture(scope="module")
def server(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root: Path = tmp_path_factory.mktemp("additions")
    folder = root / "config" / "plugin"
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLE, folder)
    (folder / "broken.py").write_text(BROKEN)
    paths = [str(folder / name) for name in ("web_additions.py", "broken.py")]
    (root / "config" / "pegboard.toml").write_text(f"plugin_paths = {json.dumps(paths)}")
    with served(root, model_port) as running:
        yield running


@pytest.fixture
def session(client: Any) -> str:
    session = str(client.post("/session").json()["id"])
    client.post(f"/session/{session}/message", json=prompt("x;;%read README.md;;%say done"))
    return session


@pytest.mark.fires("web_pages", "web_panels")
def test_plugins_add_pages_and_panels(client, session):
    pages = client.get("/plugin/web/data/pages").json()
    page = client.get("/plugin/web/data/page/web_additions/tools").json()
    panels = client.get(f"/plugin/web/data/session/{session}/panels").json()

    assert {"plugin": "web_additions", "name": "tools", "title": "Tools"} in pages
    section = page["nodes"][0]
    assert (section[0], section[2][0]) == ("section", "h3")
    calls = next(each for each in panels if each["name"] == "calls")
    assert ["td", {}, "read"] in calls["nodes"][0][2][3][2]


def test_a_page_that_fails_is_named_and_the_others_work(client, session):
    broken = client.get("/plugin/web/data/page/broken/broken").json()
    panels = client.get(f"/plugin/web/data/session/{session}/panels").json()
    missing = client.get("/plugin/web/data/page/broken/nothing")

    assert broken["error"] == "the plugin broken failed: ValueError: no such <b>thing</b>"
    assert [each["error"] for each in panels if each["plugin"] == "broken"] == [
        "the plugin broken failed: KeyError: 'ses_'"
    ]
    assert missing.status_code == 404


def test_the_browser_shows_them(server, session, view):
    view.sign_in(server)
    view.page.get_by_role("link", name="Tools").click()
    view.page.get_by_role("cell", name="read", exact=True).wait_for()
    view.page.get_by_role("link", name="broken").click()
    view.page.get_by_text("the plugin broken failed").wait_for()
    view.go(f"#/session/{session}")
    view.page.locator(".panel", has_text="Calls").get_by_role("cell", name="read").wait_for()

    assert view.console == []


def test_text_of_a_plugin_is_text(server, view):
    view.sign_in(server, path="#/page/broken/hostile")
    view.page.locator(".block").wait_for()

    assert "<img src=x" in view.text()
    assert view.page.locator("main img, main a[href^=javascript]").count() == 0
