"""The first load: few rounds of requests, each for all that it can ask for."""

import re
import time
from collections.abc import Iterable
from typing import Any

import httpx

from pegboard_plugins.web.shell import FILES, MODULES
from support.clients.browsing import LIMIT_MS, Seen, address

FIRST_BYTES = 75_000
FILES_SENT = {"/plugin/web/static/style.css", *(f"/plugin/web/static/{each}" for each in MODULES)}
CLIENT = "/plugin/web/static/client.js"
SIGN_IN = "/pegboard/browser/session"
DATA = {
    "/event",
    "/permission",
    "/question",
    "/plugin/web/data/pages",
    "/plugin/web/data/sessions",
}
IMPORTED = re.compile(r'^import .* from "\./([\w./]+)";$', re.MULTILINE)


class Held:
    """The requests of a page, but for the page itself: each waits until the test lets it go."""

    def __init__(self, view: Seen) -> None:
        self._page = view.page
        self._waiting: dict[str, Any] = {}
        self.asked: list[str] = []
        view.page.route(lambda url: not url.endswith("/plugin/web/"), self._hold)

    def _hold(self, route: Any) -> None:
        path = httpx.URL(route.request.url).path
        self.asked.append(path)
        self._waiting[path] = route

    def release(self, paths: Iterable[str]) -> None:
        """Let these requests go, once all of them wait."""
        wanted = set(paths)
        end = time.monotonic() + LIMIT_MS / 1000
        while not wanted <= set(self._waiting):
            assert time.monotonic() < end, f"never asked for: {wanted - set(self._waiting)}"
            self._page.wait_for_timeout(10)
        for path in wanted:
            self._waiting.pop(path).continue_()


def imports(module: str) -> set[str]:
    """The modules that a module needs, and itself."""
    folder = module.rpartition("/")[0]
    found = {
        f"{folder}/{each}".lstrip("/") for each in IMPORTED.findall((FILES / module).read_text())
    }
    return {module}.union(*map(imports, found))


def test_the_shell_names_all_modules_that_its_pages_need(server):
    shell = httpx.get(f"{server.url}/plugin/web/").text
    named = re.findall(r'<link rel="modulepreload" href="static/([\w./]+)">', shell)

    assert sorted(named) == sorted(imports("app.js"))


def test_the_first_load_has_few_bytes(server):
    paths = ("/plugin/web/", *FILES_SENT)
    sizes = {path: len(httpx.get(f"{server.url}{path}").content) for path in paths}

    assert sum(sizes.values()) <= FIRST_BYTES, sizes


def test_the_sessions_are_there_after_four_rounds_of_requests(server, client, view):
    client.post("/session", json={"title": "first"}).raise_for_status()
    held = Held(view)
    view.page.goto(address(server), wait_until="commit")
    held.release(FILES_SENT)
    held.release({SIGN_IN})
    held.release(DATA)
    view.page.wait_for_selector("a.row")

    assert sorted(held.asked) == sorted({*FILES_SENT, SIGN_IN, *DATA})


def test_the_sign_in_waits_for_no_other_module(server, view):
    held = Held(view)
    view.page.goto(address(server), wait_until="commit")
    held.release({CLIENT})
    held.release({SIGN_IN})
    held.release(FILES_SENT - {CLIENT})
    held.release(DATA)
    view.page.wait_for_selector("header.top nav")

    assert held.asked.count(CLIENT) == 1


def test_a_page_that_has_its_data_before_its_events_misses_none(server, client, view):
    held = Held(view)
    view.page.goto(address(server), wait_until="commit")
    held.release(FILES_SENT)
    held.release({SIGN_IN})
    held.release(DATA - {"/event"})
    view.page.get_by_role("status").filter(has_text="session").wait_for()
    client.post("/session", json={"title": "between data and events"}).raise_for_status()
    held.release({"/event"})

    view.page.locator("a.row", has_text="between data and events").wait_for()
