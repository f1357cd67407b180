"""The pages of sessions in Chromium: lists, messages, live text, prompts, stops."""

import json
import time
from typing import Any

from pegboard_plugins.web.shell import FILES
from support.clients.browsing import Seen, address, squeezed, stored_text
from support.wire.streams_heard import prompt

PAGE_BYTES = 120_000
SENT = (".html", ".js", ".css")
MOST_REQUESTS = 20
"""Until the sessions are there; 18 were counted, 12 of them for files."""


def made(client: Any, text: str, title: str = "") -> str:
    """A session, in which this prompt was answered."""
    session = str(client.post("/session", json={"title": title} if title else {}).json()["id"])
    client.post(f"/session/{session}/message", json=prompt(text)).raise_for_status()
    return session


def test_a_cold_load_asks_the_own_server_alone_and_for_little(server, client, view):
    made(client, "hello;;%say PONG", "first")
    view.page.goto(address(server))
    view.page.wait_for_selector("a.row")

    assert [url for url in view.requests if not url.startswith(server.url)] == []
    assert view.console == []
    assert len(view.requests) <= MOST_REQUESTS
    assert (
        sum(each.stat().st_size for each in FILES.rglob("*.*") if each.suffix in SENT) <= PAGE_BYTES
    )


def test_the_key_leaves_the_address(server, view):
    view.sign_in(server)

    assert view.page.url == f"{server.url}/plugin/web/#/"
    assert "k=" not in view.page.evaluate("JSON.stringify(localStorage) + document.cookie")


def test_a_session_has_its_messages_calls_and_todos(server, client, view):
    session = made(client, "look;;%read README.md;;%todo one|two;;%say **PONG** `code`")
    view.sign_in(server, path=f"#/session/{session}")
    view.page.wait_for_selector("article strong")

    view.page.locator(".todos li").nth(1).wait_for()

    assert view.page.inner_text("article strong") == "PONG"
    assert view.page.inner_text("article.answer p code") == "code"
    assert "read README.md" in view.text(".messages")
    assert view.page.locator(".todos li").count() == 2
    assert view.console == []


def test_subagents_are_listed_and_opened(server, client, view):
    session = made(client, "x;;%task general ECHO-OF-THE-CHILD;;%say DONE")
    view.sign_in(server, path=f"#/session/{session}")
    view.page.get_by_role("complementary").get_by_role("link", name="subtask").click()
    view.page.locator("article.prompt", has_text="ECHO-OF-THE-CHILD").wait_for()
    view.page.get_by_role("link", name="Parent session").click()
    view.page.locator("article.answer", has_text="DONE").wait_for()

    assert view.page.url.endswith(session)


def test_a_prompt_of_the_page_is_answered_on_it(server, client, view):
    view.sign_in(server)
    view.page.get_by_role("button", name="New session").click()
    box = view.page.get_by_label("Prompt")
    box.fill("hello;;%say PONG-1")
    box.press("Enter")
    view.page.get_by_text("PONG-1", exact=True).wait_for()
    session = view.page.url.rpartition("/")[2]

    assert stored_text(client, session) == "PONG-1"
    assert box.input_value() == ""


def test_a_warning_of_a_session_stands_below_its_messages(server, client, view):
    hook = {"type": "command", "command": "true"}
    file = server.directory / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    session = client.post("/session").json()["id"]
    view.sign_in(server, path=f"#/session/{session}")
    view.page.get_by_label("Prompt").wait_for()
    client.post(f"/session/{session}/message", json=prompt("x;;%say DONE")).raise_for_status()
    file.unlink()
    view.page.locator("article.answer", has_text="DONE").wait_for()

    warning = view.page.locator(".messages ~ [role=status] .s-warning")
    warning.wait_for()
    assert "hooks of this project do not run: .claude/settings.json" in warning.inner_text()


def test_text_comes_while_the_model_writes_and_is_what_is_stored(server, client, view):
    session = client.post("/session").json()["id"]
    view.sign_in(server, path=f"#/session/{session}")
    view.page.get_by_label("Prompt").wait_for()
    client.post(f"/session/{session}/prompt_async", json=prompt("x;;%slow 30"))
    view.page.wait_for_selector(".live .piece")
    early = view.text(".tail")
    view.page.wait_for_selector(".tail:empty", state="attached")

    stored = stored_text(client, session)
    assert early
    assert stored.startswith(early.strip()[:10])
    assert squeezed(stored) in squeezed(view.text(".messages"))


def test_a_page_that_comes_late_has_the_whole_text_too(server, client, view):
    session = client.post("/session").json()["id"]
    client.post(f"/session/{session}/prompt_async", json=prompt("x;;%slow 30"))
    view.sign_in(server, path=f"#/session/{session}")
    view.page.wait_for_selector(".live .piece")
    view.page.wait_for_selector(".tail:empty", state="attached")

    assert squeezed(stored_text(client, session)) in squeezed(view.text(".messages"))


def test_stop_ends_a_turn(server, client, view):
    session = client.post("/session").json()["id"]
    view.sign_in(server, path=f"#/session/{session}")
    view.page.get_by_label("Prompt").fill("x;;%slow 300")
    view.page.get_by_role("button", name="Send").click()
    view.page.locator("button:enabled", has_text="Stop").click()
    view.page.locator("button:disabled", has_text="Stop").wait_for()

    assert session not in client.get("/session/status").json()


def test_the_list_is_used_by_keyboard_alone(server, client, view):
    for number in range(3):
        made(client, "x;;%say y", f"keyboard {number}")
    view.sign_in(server)
    view.page.wait_for_selector("a.row")
    view.page.keyboard.press("/")
    view.page.keyboard.type("keyboard")
    view.page.get_by_text("3 sessions").wait_for()
    view.page.keyboard.press("Tab")
    view.page.keyboard.press("Tab")
    while "row" not in view.page.evaluate("document.activeElement.className"):
        view.page.keyboard.press("Tab")
    view.page.keyboard.press("ArrowDown")
    view.page.locator("a.row:focus", has_text="keyboard 1").wait_for()
    view.page.keyboard.press("Enter")
    view.page.get_by_role("heading", name="keyboard 1").wait_for()


def hostile_fields() -> str:
    image = "<img src=x onerror=\"document.title='owned'\">"
    return f"{image} [a](javascript:alert(1)) ![b](http://127.0.0.1:9/x.png) \u202egnp.exe \x1b[31m"


def test_hostile_text_is_text(server, client, view):
    text = hostile_fields()
    session = made(client, f"x;;%read {text};;%say {text}", f"title {text}")
    view.sign_in(server)
    view.page.wait_for_selector("a.row")
    listed = view.text()
    view.go(f"#/session/{session}")
    view.page.wait_for_selector("article.answer p")

    assert "<img src=x" in listed
    assert "<img src=x" in view.text(".messages")
    assert view.page.locator("main img").count() == 0
    assert view.page.locator('a[href^="javascript"]').count() == 0
    assert "\u202e" not in view.text()
    assert "owned" not in view.page.title()
    assert [url for url in view.requests if not url.startswith(server.url)] == []


def test_five_megabytes_of_text_do_not_stop_the_page(server, client, view):
    session = client.post("/session").json()["id"]
    body = prompt("%say done\n" + "<b>long</b> " * 450_000, no_reply=True)
    body["noReply"] = body.pop("no_reply")
    client.post(f"/session/{session}/message", json=body).raise_for_status()
    view.sign_in(server, path=f"#/session/{session}")
    view.page.wait_for_selector("article.prompt")
    before = time.monotonic()
    view.page.get_by_label("Prompt").fill("still here")

    assert time.monotonic() - before < 20
    assert "more characters" in view.page.text_content(".messages")
    assert view.page.locator("article b").count() == 0


def test_without_a_session_there_is_no_data(server, client, view):
    made(client, "x;;%say SECRET-WORD", "SECRET-TITLE")
    view.page.goto(f"{server.url}/plugin/web/#/")
    view.page.get_by_role("heading", name="Signed out").wait_for()

    assert "SECRET" not in view.page.content()
    assert [url for url in view.requests if "/static/" not in url] == [f"{server.url}/plugin/web/"]


def test_a_used_address_in_another_browser_opens_nothing(server, browser, view):
    url = address(server)
    view.page.goto(url)
    view.page.wait_for_selector("header.top nav")
    other = browser.new_context()
    page = Seen(other.new_page()).page
    with page.expect_response("**/pegboard/browser/session") as answered:
        page.goto(url)
    page.get_by_role("heading", name="Signed out").wait_for()
    other.close()

    assert answered.value.status == 401


def test_a_hidden_tab_gives_its_connection_back_and_goes_on_when_it_is_seen(server, client, view):
    session = client.post("/session").json()["id"]
    view.page.clock.install()
    view.sign_in(server, path=f"#/session/{session}")
    view.page.get_by_label("Prompt").wait_for()
    shown = (
        "v => Object.defineProperty(document, 'visibilityState', { value: v, configurable: true })"
    )
    changed = "document.dispatchEvent(new Event('visibilitychange'))"
    view.page.evaluate(shown, "hidden")
    view.page.evaluate(changed)
    with view.page.expect_event("requestfailed", lambda request: "/event" in request.url):
        view.page.clock.fast_forward(61_000)
    client.post(f"/session/{session}/message", json=prompt("x;;%say MISSED"))
    view.page.evaluate(shown, "visible")
    view.page.evaluate(changed)
    view.page.clock.resume()
    view.page.locator("article.answer", has_text="MISSED").wait_for()

    view.page.locator(".notice").wait_for(state="detached")
