"""A streamed answer costs what it says: bytes to the database and to who listens, counted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pegboard import App, ToolContext, tool
from pegboard.engine.processor import PROGRESS_BYTES_S
from pegboard.providers import (
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
)
from pegboard.schema.event import Event, PartDelta, PartUpdated
from pegboard.schema.part import Completed, ReasoningPart, TextPart, ToolPart
from pegboard_plugins.server.wireviews import encode_event
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.models.played import HI, USAGE, Played, ToolsPlugin, heard, opened
from support.storage.slow_storage import slow_seed

KB = 1024
DELTAS = 250
PAUSE_S = 0.004
STORE_S = 0.01
"""As an answer that takes 25 times as long is stored at the true pace."""
FRAME_BYTES = 400
"""What is around the text in an event, at most."""

Answer = Callable[[ModelRequest], AsyncIterator[StreamEvent]]


class Handed:
    """What is given to the database: the statements that write, with their values."""

    def __init__(self, app: App) -> None:
        if slow_seed() is not None:
            pytest.skip("it counts what SQLite itself does")
        assert isinstance(app.storage, SqliteStorage)
        self._writes: list[list[bytes]] = []
        app.storage._writer._db.exec_trace = self._note

    def _note(self, _: object, sql: str, values: object) -> bool:
        if sql.startswith(("INSERT", "UPDATE")) and isinstance(values, tuple):
            known = [value for value in values if isinstance(value, bytes | str)]
            self._writes.append([v.encode() if isinstance(v, str) else v for v in known])
        return True

    def bytes_of(self, part_id: str) -> int:
        """All that was given to store this part, keys and events included."""
        key = part_id.encode()
        mine = [values for values in self._writes if any(key in value for value in values)]
        return sum(len(value) for values in mine for value in values)


def said(kb: int) -> Answer:
    async def answer(_request: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextStart("0")
        for _ in range(DELTAS):
            yield TextDelta("0", "x" * (kb * KB // DELTAS))
            await asyncio.sleep(PAUSE_S)
        yield TextEnd("0")
        yield StreamFinish("stop", USAGE)

    return answer


def thought(kb: int) -> Answer:
    async def answer(_request: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield ReasoningStart("0")
        for _ in range(DELTAS):
            yield ReasoningDelta("0", "x" * (kb * KB // DELTAS))
            await asyncio.sleep(PAUSE_S)
        yield ReasoningEnd("0")
        yield TextDelta("1", "ok")
        yield StreamFinish("stop", USAGE)

    return answer


async def played(folder: Path, answer: Answer, *plugins: object) -> tuple[Handed, list[Event], App]:
    async with opened(folder, Played(answer), *plugins) as app:
        session = await app.create_session()
        handed = Handed(app)
        listening = asyncio.create_task(heard(app, lambda event: event.type == "session.idle"))
        await asyncio.sleep(0)
        await app.prompt(session.id, HI)
        return handed, await listening, app


@pytest.mark.sqlite
@pytest.mark.parametrize("kb", [4, 50, 400])
@pytest.mark.parametrize("answer", [said, thought])
async def test_a_streamed_text_is_stored_once_and_told_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kb: int, answer: Callable[[int], Answer]
) -> None:
    monkeypatch.setattr("pegboard.engine.writer.STORE_S", STORE_S)
    handed, events, _ = await played(tmp_path, answer(kb))

    whole = [
        event.properties.part
        for event in events
        if isinstance(event.properties, PartUpdated)
        and isinstance(event.properties.part, TextPart | ReasoningPart)
    ]
    part = max(whole, key=lambda each: len(each.text))
    told = [
        event
        for event in events
        if (isinstance(event.properties, PartUpdated) and event.properties.part.id == part.id)
        or (isinstance(event.properties, PartDelta) and event.properties.part_id == part.id)
    ]
    size = len(part.text)
    sent = sum(len(encode_event(event)) for event in told)
    assert size > 0.9 * kb * KB
    assert size < handed.bytes_of(part.id) <= 2 * size
    assert 2 * size < sent <= 2 * size + FRAME_BYTES * len(told)


@tool
async def build(kb: int, context: ToolContext) -> str:
    """Writes what it does while it works.

    Args:
        kb: how much.
    """
    for at in range(1, DELTAS + 1):
        context.progress(metadata={"output": "x" * (at * kb * KB // DELTAS)})
        await asyncio.sleep(PAUSE_S)
    return "done"


@pytest.mark.sqlite
@pytest.mark.parametrize("kb", [50, 400])
async def test_the_progress_of_a_call_is_stored_once_and_told_as_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kb: int
) -> None:
    monkeypatch.setattr("pegboard.engine.writer.STORE_S", STORE_S)

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if len(request.messages) == 1:
            yield ToolInputStart("c", "build")
            yield ToolCall("c", "build", f'{{"kb": {kb}}}')
            yield StreamFinish("tool-calls", USAGE)
        else:
            yield TextDelta("0", "ok")
            yield StreamFinish("stop", USAGE)

    handed, events, _ = await played(tmp_path, answer, ToolsPlugin(build))

    told = [
        event
        for event in events
        if isinstance(event.properties, PartUpdated) and isinstance(event.properties.part, ToolPart)
    ]
    sent = sum(len(encode_event(event)) for event in told)
    size = kb * KB
    last = told[-1].properties.part.state
    assert isinstance(last, Completed)
    while_it_ran = PROGRESS_BYTES_S * (last.time.end - last.time.start) // 1000
    assert sent <= 2 * size + while_it_ran + FRAME_BYTES * len(told)
    stored = handed.bytes_of(told[0].properties.part.id)
    assert stored <= 3 * size + 2 * (while_it_ran + FRAME_BYTES * len(told))
