"""Chromium on the pages of the web view, driven by playwright."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.wire.served import Served

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LIMIT_MS = 60_000
REBOUND = "rebound.test"
"""A name of another site, which means this machine."""
AXE_RUN = """
async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  const first = ({ nodes: [node] }) => [node.html.slice(0, 200), node.failureSummary];
  return found.violations.map((each) => [each.id, each.impact, ...first(each)]);
}
"""
SERIOUS = ("serious", "critical")
ARGUMENTS = ("--no-sandbox", f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1")


def chromium() -> str | None:
    """The browser of this machine, if there is one; PEGBOARD_CHROMIUM names another one."""
    found = os.environ.get("PEGBOARD_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    return str(found) if found else None


@dataclass
class Seen:
    """A page, with what it asked for and what its console has."""

    page: Any
    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def sign_in(self, server: Served, *, approve: bool = False, path: str = "") -> None:
        """Open the page with a new key, and wait for its pages; it misses no event from then on."""
        self.page.goto(address(server, approve=approve))
        self.page.wait_for_selector("header.top nav")
        if path:
            self.go(path)

    def go(self, path: str) -> None:
        """Open a page of the view."""
        self.page.evaluate("path => { location.hash = path }", path)

    def findings(self, axe: str) -> list[Any]:
        """The serious findings of axe-core, whose source this is."""
        self.page.evaluate(axe)
        return [each for each in self.page.evaluate(AXE_RUN) if each[1] in SERIOUS]

    def text(self, selector: str = "main") -> str:
        """The text that a user sees."""
        return str(self.page.inner_text(selector))


def address(server: Served, *, approve: bool = False) -> str:
    """The address of the page with a new key."""
    with server.client() as client:
        key = client.post("/pegboard/browser/key", json={"approve": approve}).json()["key"]
    return f"{server.url}/plugin/web/#k={key}&d={server.directory}"


@contextmanager
def seen(browser: Any, settings: Mapping[str, Any] | None = None) -> Iterator[Seen]:
    """A page in a profile of its own."""
    context = browser.new_context(**(settings or {}))
    context.set_default_timeout(LIMIT_MS)
    found = Seen(context.new_page())
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.on("console", lambda line: found.console.append(f"{line.type}: {line.text}"))
    found.page.on("pageerror", lambda error: found.console.append(f"error: {error}"))
    try:
        yield found
    finally:
        context.close()


def stored_text(client: Any, session: str) -> str:
    """The text of the last answer, as it is stored."""
    parts = client.get(f"/session/{session}/message").json()[-1]["parts"]
    return "".join(part["text"] for part in parts if part["type"] == "text")


def squeezed(text: str) -> str:
    """The text with single blanks: a page breaks lines where it likes."""
    return re.sub(r"\s+", " ", text).strip()
