"""Projects that nobody uses are put away, and opened again as things are then."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from pegboard import App, AppOptions
from pegboard.schema.session import Idle
from pegboard_plugins import sqlite
from pegboard_plugins.server import guard, pool
from pegboard_plugins.server.auth import Credentials
from pegboard_plugins.server.feed import EventFeed
from pegboard_plugins.server.guard import AccessPolicy, Guard
from pegboard_plugins.server.pool import Pool
from pegboard_plugins.server.running import RunningSessions

LIMIT_S = 30.0


class Opened:
    """A pool with what it was made from."""

    def __init__(self, root: Path) -> None:
        names = ("config", "data", "state", "cache")
        places = {f"{name}_dir": root / name for name in names}
        self.options = AppOptions(
            plugins=(sqlite,), builtins=False, installed=False, env={}, **places
        )
        self.feed = EventFeed()
        self.pool = Pool(lambda: self.options, self.feed, RunningSessions(root / "running"))
        self.root = root

    def folder(self, name: str) -> Path:
        place = self.root / name
        place.mkdir(exist_ok=True)
        return place

    async def app(self, name: str) -> App:
        return await self.pool.app(self.folder(name))

    def open(self) -> set[str]:
        return {member.app.workspace.directory.name for member in self.pool.members()}


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    found = Opened(tmp_path)
    yield found
    await found.pool.aclose()


async def swept(opened: Opened, left: set[str]) -> None:
    """Sweep until only these are open."""
    task = asyncio.create_task(opened.pool.sweep())
    async with asyncio.timeout(LIMIT_S):
        while opened.open() != left:  # noqa: ASYNC110 - a closing tells nobody
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_two_requests_share_one_app(opened: Opened) -> None:
    first, second = await asyncio.gather(opened.app("a"), opened.app("a"))

    assert first is second


async def test_an_unused_project_is_put_away_and_opened_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await opened.app("a")
    session = await first.create_session(title="kept")
    monkeypatch.setattr(pool, "SWEEP_S", 0.01)
    monkeypatch.setattr(pool, "IDLE_S", 0.0)

    await swept(opened, set())

    again = await opened.app("a")
    assert again is not first
    assert (await again.session(session.id)).title == "kept"


async def test_a_project_that_somebody_follows_stays(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened.app("a")
    await opened.app("b")
    opened.feed.listen(opened.folder("a"))
    monkeypatch.setattr(pool, "SWEEP_S", 0.01)
    monkeypatch.setattr(pool, "IDLE_S", 0.0)

    await swept(opened, {"a"})


async def test_of_too_many_projects_the_longest_unused_goes(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        await opened.app(name)
    await opened.app("a")
    monkeypatch.setattr(pool, "SWEEP_S", 0.01)
    monkeypatch.setattr(pool, "MOST_APPS", 2)

    await swept(opened, {"a", "c"})


async def test_a_project_that_is_used_again_while_another_is_put_away_stays(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await opened.app("a"), await opened.app("b")
    end = first.aclose

    async def slow_end() -> None:
        opened.pool.member(second).statuses["ses_1"] = Idle()
        await end()

    monkeypatch.setattr(first, "aclose", slow_end)
    monkeypatch.setattr(pool, "SWEEP_S", 0.01)
    monkeypatch.setattr(pool, "IDLE_S", 0.0)

    await swept(opened, {"b"})

    assert await opened.app("b") is second


async def test_new_settings_count_as_soon_as_a_project_rests(opened: Opened) -> None:
    busy, rests = await opened.app("a"), await opened.app("b")
    member = opened.pool.member(busy)
    member.statuses["ses_1"] = Idle()

    await opened.pool.renew()

    assert opened.open() == {"a"}
    assert await opened.app("a") is busy
    member.statuses.clear()
    assert await opened.app("a") is not busy
    assert await opened.app("b") is not rests


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_WITHIN_S", 0.01)
    policy = AccessPolicy(
        credentials=Credentials(token=None),
        hosts=frozenset({"here"}),
        admits=lambda ticket, pty: False,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    async def never() -> Message:
        return await asyncio.Future()

    async def send(message: Message) -> None:
        raise AssertionError(message)

    headers = [
        (b"host", b"here"),
        (b"content-length", b"5"),
        (b"content-type", b"application/json"),
    ]
    scope = {"type": "http", "method": "POST", "path": "/log", "headers": headers}
    with pytest.raises(HTTPException) as refused:
        await Guard(app, policy)(scope, never, send)

    assert refused.value.status_code == 408


async def test_an_app_of_another_part_of_the_program_is_served_until_that_part_closes_it(
    opened: Opened,
) -> None:
    folder = opened.folder("job")
    async with await App.open(folder, opened.options) as app:
        await opened.pool.adopt(app)
        same = await opened.pool.app(folder)
        adopted = opened.pool.is_adopted(app)
    async with asyncio.timeout(LIMIT_S):
        while opened.open():  # noqa: ASYNC110 - a closing tells nobody
            await asyncio.sleep(0.01)

    assert same is app
    assert adopted
