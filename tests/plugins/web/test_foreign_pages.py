"""Pages of other sites in the browser that is signed in: they get no data and have no effect."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from support.clients.browsing import REBOUND, address
from support.wire.streams_heard import prompt

ATTACK = """
async (target) => {
  const results = [];
  const tried = async (name, path, init) => {
    try {
      const answer = await fetch(target + path, { credentials: "include", ...init });
      const text = answer.type === "opaque" ? "" : await answer.text();
      results.push([name, answer.type === "opaque" ? "opaque" : answer.status, text]);
    } catch (error) {
      results.push([name, "refused", ""]);
    }
  };
  const json = { "content-type": "application/json" };
  await tried("list", "/session", {});
  await tried("data", "/plugin/web/data/sessions", {});
  await tried("blind list", "/session", { mode: "no-cors" });
  await tried("create", "/session", { method: "POST", headers: json, body: "{}" });
  await tried("blind create", "/session", { method: "POST", mode: "no-cors", body: "{}" });
  await tried("key", "/pegboard/browser/key", { method: "POST", headers: json, body: "{}" });
  const key = { method: "POST", mode: "no-cors", body: '{"key":"x"}' };
  await tried("session", "/pegboard/browser/session", key);
  await tried("events", "/event", {});
  return results;
}
"""


@contextmanager
def site(html: str) -> Iterator[int]:
    """A site on another port, with one page."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield running.server_address[1]
        finally:
            running.shutdown()
            thread.join()


@pytest.fixture
def sessions(client: Any) -> Iterator[Any]:
    """How many sessions there are; there is one with a secret in it."""
    session = client.post("/session", json={"title": "SECRET-TITLE"}).json()["id"]
    client.post(f"/session/{session}/message", json=prompt("x;;%say SECRET-WORD"))

    def count() -> int:
        return len(client.get("/session").json())

    before = count()
    yield before
    assert count() == before


def assert_nothing(results: list[Any]) -> None:
    assert len(results) == 8
    assert [each for each in results if "SECRET" in each[2]] == []
    assert [each for each in results if isinstance(each[1], int) and each[1] < 400] == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_another_port_or_host(server, view, sessions, host):
    view.sign_in(server)
    with site("<h1>elsewhere</h1>") as port:
        view.page.goto(f"http://{host}:{port}/")
        assert_nothing(view.page.evaluate(ATTACK, server.url))


def test_a_page_without_an_origin(server, view, sessions):
    view.sign_in(server)
    with site('<iframe sandbox="allow-scripts" srcdoc="<p>inside</p>"></iframe>') as port:
        view.page.goto(f"http://127.0.0.1:{port}/")
        frame = view.page.frames[-1]
        assert frame.evaluate("origin") == "null"
        assert_nothing(frame.evaluate(ATTACK, server.url))


def test_a_frame_around_the_page(server, view, sessions):
    view.sign_in(server)
    frame = f'<iframe src="{server.url}/plugin/web/#/"></iframe>'
    with site(frame) as port, view.page.expect_response(f"{server.url}/plugin/web/") as answered:
        view.page.goto(f"http://127.0.0.1:{port}/")

    assert answered.value.status == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_form(server, view, sessions, kind):
    view.sign_in(server)
    form = f'<form method="post" enctype="{kind}" action="{server.url}/session">'
    with site(
        f"{form}<input name='{{\"title\":\"' value='\"}}'><button>go</button></form>"
    ) as port:
        view.page.goto(f"http://127.0.0.1:{port}/")
        with view.page.expect_response(f"{server.url}/session") as answered:
            view.page.click("button")

    assert answered.value.status == 403


def test_a_name_that_means_the_server_by_now(server, view, sessions):
    port = server.url.rpartition(":")[2]
    view.sign_in(server)
    with site("<h1>elsewhere</h1>") as other:
        view.page.goto(f"http://{REBOUND}:{other}/")
        assert_nothing(view.page.evaluate(ATTACK, f"http://{REBOUND}:{port}"))
        answer = view.page.goto(f"http://{REBOUND}:{port}/plugin/web/")

    assert answer.status == 421


def test_a_link_opens_the_page_and_does_nothing(server, view, sessions):
    view.sign_in(server)
    links = "".join(
        f'<a id="l{number}" href="{server.url}{path}">go</a>'
        for number, path in enumerate(("/session", "/plugin/web/data/sessions", "/plugin/web/#k=x"))
    )
    with site(links) as port:
        statuses = []
        for number in range(3):
            view.page.goto(f"http://127.0.0.1:{port}/")
            with view.page.expect_response(lambda answer: answer.url.startswith(server.url)) as one:
                view.page.click(f"#l{number}")
            statuses.append(one.value.status)

    assert statuses == [403, 403, 200]


def test_a_window_that_another_page_opened_is_out_of_its_reach(server, view, sessions):
    view.sign_in(server)
    with site("<button>go</button>") as port:
        view.page.goto(f"http://127.0.0.1:{port}/")
        view.page.evaluate(
            "url => document.querySelector('button').onclick = () => { window.opened = open(url) }",
            address(server),
        )
        with view.page.expect_popup() as opened:
            view.page.click("button")
        opened.value.wait_for_load_state()
        assert view.page.evaluate("window.opened === null || window.opened.closed") is True


def test_a_page_of_the_server_cannot_be_framed_or_run_strings(server, client, view):
    answer = client.get("/plugin/web/")

    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    view.sign_in(server)
    assert (
        view.page.evaluate(
            "() => { try { document.body.innerHTML = '<b>x</b>'; return 1 } catch { return 0 } }"
        )
        == 0
    )
