# ruff: noqa: ASYNC110 - these tests wait for the state of a database
"""A write that fails leaves no session busy, and no message or call without an end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import apsw
import pytest

from pegboard import App, tool
from pegboard.errors import PluginError, StorageError
from pegboard.providers import (
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    StreamEvent,
    StreamFinish,
    TextDelta,
)
from pegboard.schema.message import AssistantMessage, PluginFailure, Turn, UnknownFailure
from pegboard.schema.part import Pending, Running, ToolPart
from pegboard_plugins.sqlite import databasefile, storage
from pegboard_plugins.sqlite.databasefile import VARIABLE
from support.models.played import HI, Played, ToolsPlugin, call, opened, text, texts

LIMIT_S = 60
BAD = "caf\udcff"
"""A string that has no form in JSON."""
SHORT_S = "0.2"


class OtherProgram:
    """Another program that has the write lock of the database, as a backup does."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "data" / "pegboard.db"
        self._db: apsw.Connection | None = None

    def lock(self) -> None:
        self._db = apsw.Connection(str(self._path))
        self._db.set_busy_timeout(LIMIT_S * 1000)
        self._db.execute("BEGIN IMMEDIATE")

    def unlock(self) -> None:
        assert self._db is not None
        self._db.execute("ROLLBACK")
        self._db.close()


async def once(true: Callable[[list[Turn]], bool], app: App, session_id: str) -> list[Turn]:
    """Return the turns as soon as they are so."""
    async with asyncio.timeout(LIMIT_S):
        while not true(turns := list(await app.list_turns(session_id))):
            await asyncio.sleep(0.02)
        return turns


def is_ended(turns: list[Turn]) -> bool:
    """Whether each answer and each call has its end."""
    infos = [each.info for each in turns if isinstance(each.info, AssistantMessage)]
    parts = [each for turn in turns for each in turn.parts if isinstance(each, ToolPart)]
    return all(each.time.completed is not None for each in infos) and not any(
        isinstance(each.state, Pending | Running) for each in parts
    )


@pytest.mark.sqlite
async def test_a_lock_that_outlasts_the_turn_leaves_the_session_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SHORT_S)
    monkeypatch.setattr(storage, "RELEASE_AGAIN_S", 0.05)
    other = OtherProgram(tmp_path)

    @tool
    async def back_up() -> str:
        """Back the database up."""
        other.lock()
        return "begun"

    provider = Played(call("back_up", "{}"), text("never read"), text("answered"))
    async with opened(tmp_path, provider, ToolsPlugin(back_up)) as app:
        session = await app.create_session()
        with pytest.raises(StorageError, match="locked"):
            await app.prompt(session.id, HI)
        other.unlock()
        turns = await once(is_ended, app, session.id)
        async with asyncio.timeout(LIMIT_S):
            while not await _is_free(app, session.id):
                await asyncio.sleep(0.02)
        answer = await app.prompt(session.id, HI)

    assert isinstance(turns[-1].info, AssistantMessage)
    assert isinstance(turns[-1].info.error, UnknownFailure)
    assert "could not store" in turns[-1].info.error.data.message
    assert texts(answer)[-1] in ("never read", "answered")


async def _is_free(app: App, session_id: str) -> bool:
    """Whether another process could run the session."""
    db = apsw.Connection(str(app.storage.files[0]), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        [(owner,)] = db.execute("SELECT owner FROM session WHERE id = ?", (session_id,))
    finally:
        db.close()
    return owner is None


@pytest.mark.sqlite
async def test_a_prompt_right_after_the_failure_needs_no_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SHORT_S)
    monkeypatch.setattr(storage, "RELEASE_AGAIN_S", LIMIT_S)
    other = OtherProgram(tmp_path)

    @tool
    async def back_up() -> str:
        """Back the database up."""
        other.lock()
        return "begun"

    provider = Played(call("back_up", "{}"), text("one"), text("two"))
    async with opened(tmp_path, provider, ToolsPlugin(back_up)) as app:
        session = await app.create_session()
        with pytest.raises(StorageError):
            await app.prompt(session.id, HI)
        other.unlock()
        await app.prompt(session.id, HI)
        turns = list(await app.list_turns(session.id))

    assert is_ended(turns)


@pytest.mark.sqlite
async def test_a_lock_that_ends_in_time_costs_the_turn_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(databasefile, "_NOTICE_S", 0.05)
    other = OtherProgram(tmp_path)
    loop = asyncio.get_running_loop()

    @tool
    async def back_up() -> str:
        """Back the database up."""
        other.lock()
        loop.call_later(0.5, other.unlock)
        return "begun"

    provider = Played(call("back_up", "{}"), text("done"))
    with caplog.at_level(logging.WARNING, "pegboard.storage"):
        async with opened(tmp_path, provider, ToolsPlugin(back_up)) as app:
            session = await app.create_session()
            answer = await app.prompt(session.id, HI)

    assert texts(answer) == ["done"]
    [record] = [each for each in caplog.records if each.name == "pegboard.storage"]
    assert "pegboard.db locked" in record.getMessage()
    assert VARIABLE in record.getMessage()


@pytest.mark.sqlite
async def test_a_write_that_fails_in_a_turn_is_tried_again_before_the_turn_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    other = OtherProgram(tmp_path)

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        other.lock()
        for number in range(20):
            yield TextDelta("0", f"{number} ")
            await asyncio.sleep(0.05)  # the writer stores what it has several times meanwhile
        other.unlock()
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(slow)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = list(await app.list_turns(session.id))

    assert is_ended(turns)
    assert texts(turns[-1]) == [" ".join(map(str, range(20)))]


async def bad_text(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    yield TextDelta("0", BAD)
    yield StreamFinish("stop")


async def bad_thought(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    yield ReasoningDelta("0", "hm")
    yield ReasoningEnd("0", metadata={"signature": BAD})
    yield TextDelta("0", "words")
    yield StreamFinish("stop")


async def bad_message(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    yield TextDelta("0", "words")
    yield StreamFinish("stop", metadata={"signature": BAD})


@pytest.mark.parametrize("answer", [bad_text, bad_thought, bad_message])
async def test_what_cannot_be_stored_fails_the_turn_and_nothing_else(
    tmp_path: Path, answer: Callable[[ModelRequest], AsyncIterator[StreamEvent]]
) -> None:
    async with opened(tmp_path, Played(answer, text("fine"))) as app:
        session = await app.create_session()
        with pytest.raises(PluginError, match="cannot be stored"):
            await app.prompt(session.id, HI)
        turns = list(await app.list_turns(session.id))
        again = await app.prompt(session.id, HI)

    assert is_ended(turns)
    assert isinstance(turns[-1].info, AssistantMessage)
    assert isinstance(turns[-1].info.error, PluginFailure)
    assert "cannot be stored" in turns[-1].info.error.data.message
    assert texts(again) == ["fine"]
