"""The pages without a mouse, in both themes, narrow and wide, by the rules of axe-core."""

from typing import Any

import pytest

from support.clients.browsing import Seen
from support.wire.streams_heard import prompt

NARROW = {"width": 360, "height": 720}
WIDE = {"width": 1280, "height": 800}


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
    found = []
    for place in places(session):
        opened(view, place)
        found += [(place, *each) for each in view.findings(axe)]

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
    view.page.get_by_role("button", name="Allow once").wait_for()
    focus(view, "Allow once")
    view.page.keyboard.press("Enter")
    view.page.locator(".messages article.answer", has_text="ENDED").wait_for()


def focus(view: Seen, text: str) -> None:
    """Reach the element whose name begins so by the Tab key alone."""
    focused = "document.activeElement.ariaLabel ?? document.activeElement.textContent"
    for _ in range(100):
        view.page.keyboard.press("Tab")
        if str(view.page.evaluate(focused)).startswith(text):
            return
    raise AssertionError(f"Tab does not reach {text!r}")


def test_a_session_is_begun_prompted_and_stopped_without_a_mouse(server, client, view):
    view.sign_in(server)
    focus(view, "New session")
    view.page.keyboard.press("Enter")
    view.page.get_by_label("Prompt").wait_for()
    focus(view, "Prompt")
    view.page.keyboard.type("x;;%slow 600")
    view.page.keyboard.press("Enter")
    view.page.locator("button:enabled", has_text="Stop").wait_for()
    focus(view, "Stop")
    view.page.keyboard.press("Enter")
    view.page.locator("button:disabled", has_text="Stop").wait_for()

    assert view.page.url.rpartition("/")[2] not in client.get("/session/status").json()


@pytest.mark.parametrize("title", ["Cost", "Hooks", "Plugins", "Requests"])
def test_each_page_is_reached_without_a_mouse(server, view, title):
    view.sign_in(server)
    focus(view, title)
    view.page.keyboard.press("Enter")
    view.page.get_by_role("heading", name=title, level=1).wait_for()


def test_the_first_key_skips_the_navigation(server, view):
    view.sign_in(server)
    view.page.keyboard.press("Tab")
    view.page.keyboard.press("Enter")

    assert view.page.evaluate("document.activeElement.id") == "main"
