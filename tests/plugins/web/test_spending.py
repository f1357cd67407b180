"""Costs on their page: over several days, by day, session, model, agent and plugin."""

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard.ids import IdSource
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime
from pegboard.schema.part import Completed, CompletedSpan, ToolPart
from pegboard.schema.session import CacheTokens, Session, SessionTime, Tokens
from pegboard.storage import CreateSession
from pegboard.storage.changes import Change, PutMessage, PutPart
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.wire.served import Served, served

DAY_MS = 24 * 3600 * 1000
SPENT = (
    ("first", 6, "build", "large", "read", 1.0),
    ("first", 2, "build", "large", "bash", 2.0),
    ("second", 2, "plan", "small", "read", 0.25),
    ("third", 0, "plan", "small", "bash", 0.5),
)
"""The session, days ago, agent, model, tool and cost of each answer."""
TOKENS = Tokens(input=10, output=5, reasoning=3, cache=CacheTokens(read=1, write=1))
PAINTED = """
() => {
  const canvas = document.querySelector(".days canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}
"""


def date(days_ago: int, now_ms: int) -> str:
    return datetime.fromtimestamp((now_ms - days_ago * DAY_MS) / 1000).date().isoformat()


class Spender:
    """Writes sessions with answers of several days."""

    def __init__(self, known: Session, now_ms: int) -> None:
        self._known = known
        self._now_ms = now_ms
        self._ids = IdSource()

    def changes(self) -> Iterator[Change]:
        for title in dict.fromkeys(each[0] for each in SPENT):
            own = [each for each in SPENT if each[0] == title]
            first, last = (self._now_ms - own[at][1] * DAY_MS for at in (0, -1))
            cost, tokens = sum(each[-1] for each in own), replace(TOKENS, input=10 * len(own))
            session = replace(
                self._known,
                id=self._ids.new("session"),
                title=title,
                slug=title,
                time=SessionTime(created=first, updated=last),
                cost=cost,
                tokens=tokens,
            )
            yield CreateSession(session)
            for each in own:
                yield from self._answer(session.id, *each[1:])

    def _answer(  # noqa: PLR0917 - a row of the table
        self, session: str, days_ago: int, agent: str, model: str, tool: str, cost: float
    ) -> Iterator[Change]:
        id_, at = self._ids.new("message"), self._now_ms - days_ago * DAY_MS
        yield PutMessage(
            AssistantMessage(
                id=id_,
                session_id=session,
                parent_id="msg_0",
                model_id=model,
                provider_id="fake",
                mode=agent,
                agent=agent,
                path=MessagePath(cwd="/", root="/"),
                cost=cost,
                tokens=TOKENS,
                time=MessageTime(created=at, completed=at),
            )
        )
        ended = Completed(
            input={}, output="", title="", metadata={}, time=CompletedSpan(start=at, end=at)
        )
        yield PutPart(
            ToolPart(
                id=self._ids.new("part"),
                session_id=session,
                message_id=id_,
                call_id="call",
                tool=tool,
                state=ended,
            )
        )


@pytest.fixture(scope="module")
def server(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a project with these sessions alone."""
    with served(tmp_path_factory.mktemp("spending"), model_port) as running:
        yield running


@pytest.fixture(scope="module")
def now_ms(server: Served) -> int:
    """The time at which the last answer was given."""
    now_ms = int(time.time() * 1000)

    async def fill(id_: str) -> None:
        storage = await SqliteStorage.open(server.places / "data" / "pegboard.db", ids=IdSource())
        try:
            known = await storage.session(id_)
            await storage.commit(*Spender(known, now_ms).changes())
        finally:
            await storage.aclose()

    with server.client() as client, ThreadPoolExecutor(1) as pool:
        id_ = client.post("/session", json={"title": "free"}).json()["id"]
        pool.submit(asyncio.run, fill(id_)).result()  # this thread may have the driver's loop
    return now_ms


def spent(spending: Any, kind: str) -> dict[str, tuple[float, int, int]]:
    return {
        each["name"]: (each["cost"], each["requests"], each["tokens"]) for each in spending[kind]
    }


def test_an_answer_counts_for_its_own_day_model_agent_and_plugin(client, now_ms):
    spending = client.get("/plugin/web/data/cost").json()

    assert spent(spending, "byDay") == {
        date(6, now_ms): (1.0, 1, 20),
        date(2, now_ms): (2.25, 2, 40),
        date(0, now_ms): (0.5, 1, 20),
    }
    assert [each["name"] for each in spending["byDay"]] == sorted(spent(spending, "byDay"))
    assert spent(spending, "models") == {"fake/large": (3.0, 2, 40), "fake/small": (0.75, 2, 40)}
    assert spent(spending, "agents") == {"build": (3.0, 2, 40), "plan": (0.75, 2, 40)}
    assert spent(spending, "plugins") == {"bash": (2.5, 2, 40), "read": (1.25, 2, 40)}
    assert {name: cost for name, (cost, _, _) in spent(spending, "sessions").items()} == {
        "first": 3.0,
        "second": 0.25,
        "third": 0.5,
        "free": 0.0,
    }


def test_days_outside_the_chosen_ones_are_left_out(client, now_ms):
    spending = client.get("/plugin/web/data/cost?days=3").json()

    assert list(spent(spending, "byDay")) == [date(2, now_ms), date(0, now_ms)]
    assert spent(spending, "models")["fake/large"] == (2.0, 1, 20)


def test_the_page_plots_all_five(server, now_ms, view):
    view.sign_in(server, path="#/cost")
    view.page.locator(".days canvas").wait_for()
    bars = view.page.locator("section.bars")
    plotted = {each.locator("h2").inner_text(): each.locator("rect").count() for each in bars.all()}
    view.page.locator(".u-over").hover()
    days = "|".join(date(each[1], now_ms) for each in SPENT)
    view.page.locator(".u-legend", has_text=re.compile(days)).wait_for()

    assert plotted == {
        "By day": 3,
        "By model": 2,
        "By agent": 2,
        "By plugin whose tools the answer calls": 2,
        "By session": 4,
    }
    assert view.page.evaluate(PAINTED) > 2
    assert view.console == []


def test_the_page_shows_the_chosen_days_alone(server, now_ms, view):
    view.sign_in(server, path="#/cost")
    rows = view.page.locator("section.bars", has_text="By day").locator("tbody tr")
    rows.nth(2).wait_for()
    view.page.get_by_label("Last").select_option("1")
    rows.nth(1).wait_for(state="detached")
    rows.nth(0).wait_for()

    assert date(0, now_ms) in rows.nth(0).inner_text()
    assert rows.count() == 1
    assert view.page.locator(".days").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_plot_has_no_serious_finding(server, now_ms, view, axe, scheme):
    view.page.emulate_media(color_scheme=scheme)
    view.sign_in(server, path="#/cost")
    view.page.locator(".days canvas").wait_for()

    assert view.findings(axe) == []
