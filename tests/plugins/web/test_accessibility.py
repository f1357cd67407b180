"""The pages without a mouse, in both themes, narrow and wide, by the rules of axe-core.

PEGBOARD_AXE names its `axe.min.js`, from `npm pack axe-core`.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from browsing import Seen
from streams_heard import prompt

NARROW = {"width": 360, "height": 720}
WIDE = {"width": 1280, "height": 800}
RUN = """
async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  const first = ({ nodes: [node] }) => [node.html.slice(0, 200), node.failureSummary];
  return found.violations.map((each) => [each.id, each.impact, ...first(each)]);
}
"""
SERIOUS = ("serious", "critical")


@pytest.fixture
def axe() -> str:
    """The source of axe-core."""
    file = os.environ.get("PEGBOARD_AXE", "")
    if not Path(file).is_file():
        pytest.skip("PEGBOARD_AXE names no file of axe-core")
    return Path(file).read_text()


@pytest.fixture(scope="module")
def session(server: Any) -> str:
    """A session with each kind of content, a request that waits, and costs."""
    with server.client() as client:
        client.post("/pegboard/trace", json={})
        session = str(client.post("/session", json={"title": "a session"}).json()["id"])
        steps = "%think so;;%read calc.py;;%edit calc.py a + b=>b + a;;%todo one|two"
        steps += ";;%say **bold** `code` [link](https://example.org)"
        client.post(f"/session/{session}/message", json=prompt(f"x;;{steps}")).raise_for_status()
        for text in ("%bash ls -d .", "%question Which one?|left|right"):
            other = client.post("/session", json={"title": text}).json()["id"]
            client.post(f"/session/{other}/prompt_async", json=prompt(f"x;;{text}"))
        return session


def places(session: str) -> list[str]:
    own = [f"/session/{session}{page}" for page in ("", "/changes", "/hooks")]
    return ["/", *own, "/requests", "/cost", "/hooks", "/plugins"]


@pytest.mark.parametrize(
    ("size", "scheme"), [(NARROW, "light"), (NARROW, "dark"), (WIDE, "light"), (WIDE, "dark")]
)
def test_no_page_has_a_serious_finding(  # noqa: PLR0917 - fixtures
    server, view, session, axe, size, scheme
):
    view.page.emulate_media(color_scheme=scheme)
    view.page.set_viewport_size(size)
    view.sign_in(server, approve=True)
    view.page.evaluate(axe)
    found = []
    for place in places(session):
        opened(view, place)
        found += [(place, *each) for each in view.page.evaluate(RUN) if each[1] in SERIOUS]

    assert found == []
    assert view.console == []


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
def test_no_page_is_wider_than_the_window(server, view, session, size):
    view.page.set_viewport_size(size)
    view.sign_in(server)
    wide = []
    for place in places(session):
        opened(view, place)
        if view.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(place)

    assert wide == []


def opened(view: Seen, place: str) -> None:
    view.go(f"#{place}")
    view.page.locator("main h1").wait_for()
    view.page.locator("[role=status]", has_text="Loading").wait_for(state="detached")


def test_a_request_is_answered_without_a_mouse(server, client, view):
    session = client.post("/session").json()["id"]
    client.post(f"/session/{session}/prompt_async", json=prompt("x;;%bash ls -t .;;%say ENDED"))
    view.sign_in(server, path=f"#/session/{session}")
    view.page.wait_for_selector(".request")
    for _ in range(40):
        view.page.keyboard.press("Tab")
        if view.page.evaluate("document.activeElement.textContent") == "Allow once":
            break
    view.page.keyboard.press("Enter")
    view.page.locator(".messages", has_text="ENDED").wait_for()


def test_the_first_key_skips_the_navigation(server, view):
    view.sign_in(server)
    view.page.keyboard.press("Tab")
    view.page.keyboard.press("Enter")

    assert view.page.evaluate("document.activeElement.id") == "main"
