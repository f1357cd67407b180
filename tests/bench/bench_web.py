"""How long a browser waits for the web view, for one or more checkouts in turn: see README.md.

PYTHONPATH=/path/to/playwright python tests/bench/bench_web.py /path/to/before /path/to/after -n 15
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import sync_playwright
from process_tree import descendants

from support.clients.browsing import ARGUMENTS, address, chromium, seen
from support.wire.served import Served, model, served
from support.wire.streams_heard import prompt

FLOOR = b'<!DOCTYPE html><title>Floor</title><link rel="icon" href="data:,"><a class="row">row</a>'
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
LATE = 0.95
FIRST_ROW = """
window.shown = new Promise((done) => new MutationObserver((_, watch) => {
  if (!document.querySelector("a.row")) return;
  watch.disconnect();
  requestAnimationFrame(() => setTimeout(() => done(performance.now())));
}).observe(document, { childList: true, subtree: true }));
"""
"""The time when the frame with the first session is painted."""
SENT = """
() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .map((each) => [each.startTime, each.responseEnd, each.encodedBodySize])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One cold load: until the sessions are painted, and what it cost by then."""

    shown_ms: float
    server_cpu_ms: float
    browser_cpu_ms: float
    requests: int
    bytes: int
    rounds: int


@dataclass
class Opened:
    """A page that is opened again and again: the view of a checkout's server, or the floor."""

    name: str
    server: Served | None
    url: str = ""
    loads: list[Load] = field(default_factory=list)

    def load(self, browser: Any) -> None:
        """Open the page in a profile that has nothing of it."""
        own = {self.server.process.pid} if self.server else set()
        with seen(browser) as view:
            view.page.add_init_script(FIRST_ROW)
            place = address(self.server) if self.server else self.url
            others = descendants(os.getpid()) - own
            before = cpu_ms(own), cpu_ms(others)
            view.page.goto(place)
            shown_ms = view.page.evaluate("() => window.shown")
            others |= descendants(os.getpid()) - own
            sent = view.page.evaluate(SENT)
            self.loads.append(
                Load(
                    shown_ms=shown_ms,
                    server_cpu_ms=cpu_ms(own) - before[0],
                    browser_cpu_ms=cpu_ms(others) - before[1],
                    requests=len(sent),
                    bytes=sum(size for _, _, size in sent),
                    rounds=rounds([(began, ended) for began, ended, _ in sent]),
                )
            )

    def print(self, floor: "Opened") -> None:
        """Print medians with their ratios to the floor, and the 95th percentiles."""
        print(f"{self.name}: {len(self.loads)} loads")  # noqa: T201 - a command
        for name in Load.__dataclass_fields__:
            found = sorted(getattr(load, name) for load in self.loads)
            middle, late = statistics.median(found), found[int((len(found) - 1) * LATE)]
            least = statistics.median(getattr(load, name) for load in floor.loads)
            ratio = f"{middle / least:8.2f}" if least else ""
            print(f"  {name:15}{middle:10.1f}   p95 {late:10.1f}{ratio}")  # noqa: T201 - a command


def rounds(sent: list[tuple[float, float]]) -> int:
    """Return how many requests began one after the end of the other, in the longest chain."""
    count, end = 0, -1.0
    for ended, began in sorted((ended, began) for began, ended in sent):
        if began >= end:
            count, end = count + 1, ended
    return count


def cpu_ms(pids: set[int]) -> float:
    """Return the user and system time of these processes."""
    return sum(map(_ticks, pids)) * TICK_MS


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0
    return int(fields[11]) + int(fields[12])


@contextmanager
def floor() -> Iterator[Opened]:
    """A page of one line, from a server of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(FLOOR)))
            self.end_headers()
            self.wfile.write(FLOOR)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Opened("floor", None, f"http://127.0.0.1:{server.server_port}/")
        finally:
            server.shutdown()
            thread.join()


def views(paths: list[Path], stack: ExitStack) -> Iterator[Opened]:
    """Start the server of each checkout, on a project with one session."""
    port = stack.enter_context(model())
    for path in paths:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program = str(path.resolve() / ".venv/bin/pegboard")
        server = stack.enter_context(served(root, port, program=program))
        with server.client() as client:
            session = client.post("/session", json={"title": "first"}).json()["id"]
            text = prompt("hello;;%say PONG")
            client.post(f"/session/{session}/message", json=text).raise_for_status()
        yield Opened(str(path), server)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, help="each with its own .venv")
    parser.add_argument("-n", type=int, default=15, help="loads of each")
    options = parser.parse_args()
    here = Path(__file__).parents[2]
    with ExitStack() as stack:
        pages = [stack.enter_context(floor()), *views(options.checkouts or [here], stack)]
        driver = stack.enter_context(sync_playwright())
        browser = driver.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        stack.callback(browser.close)
        for _ in range(options.n):
            for page in pages:
                page.load(browser)
        for page in pages:
            page.print(pages[0])
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
