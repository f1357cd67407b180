"""The database that answers late keeps the promises of every other one."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard.ids import IdSource
from pegboard.schema.event import Event
from pegboard.storage.changes import CreateSession
from support.models.played import Played, opened, text
from support.storage.rows import session
from support.storage.slow_storage import VARIABLE, SlowStorage, SlowStoragePlugin, slow_url

COUNT = 30


@asynccontextmanager
async def late(folder: Path, heard: list[Event]) -> AsyncIterator[SlowStorage]:
    opener = (await SlowStoragePlugin(1).register_storage())["slow"]
    url = slow_url(folder / "pegboard.db")
    storage = await opener(url, ids=IdSource(), on_commit=heard.extend)
    yield storage
    await storage.aclose()


async def test_what_is_written_at_once_is_written_told_and_answered_in_order(
    tmp_path: Path,
) -> None:
    heard: list[Event] = []
    answered: list[Event] = []

    async with late(tmp_path, heard) as storage:

        async def create(number: int) -> None:
            [event] = await storage.commit(CreateSession(session(f"ses_{number:02}")))
            assert event in heard
            answered.append(event)

        await asyncio.gather(*map(create, range(COUNT)))

    names = [f"ses_{number:02}" for number in range(COUNT)]
    assert [event.session_id for event in heard] == names
    assert answered == heard


async def test_what_nobody_waits_for_any_more_is_written_and_told(tmp_path: Path) -> None:
    heard: list[Event] = []

    async with late(tmp_path, heard) as storage:
        writing = asyncio.create_task(storage.commit(CreateSession(session())))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    assert [event.type for event in heard] == ["session.created"]
    with sqlite3.connect(tmp_path / "pegboard.db") as db:
        assert db.execute("SELECT id FROM session").fetchall() == [("ses_1",)]


@pytest.mark.parametrize("wait_s", [0, 0.002, 0.005, 0.01, 0.015])
async def test_a_claim_that_nobody_waits_for_any_more_is_given_back(
    tmp_path: Path, wait_s: float
) -> None:
    async with late(tmp_path, []) as storage:
        await storage.commit(CreateSession(session()))
        claiming = asyncio.create_task(storage.claim("ses_1"))
        await asyncio.sleep(wait_s)
        if claiming.cancel():
            await asyncio.gather(claiming, return_exceptions=True)
            await storage.claim("ses_1")


async def test_an_app_has_it_where_the_environment_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1")

    async with opened(tmp_path, Played(text("hi"))) as app:
        assert isinstance(app.storage, SlowStorage)
        session_id = (await app.create_session()).id
        assert (await app.session(session_id)).id == session_id
