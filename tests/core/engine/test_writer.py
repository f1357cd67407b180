"""What a turn writes: in order, durable, and in few pieces."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import App
from pegboard.engine.writer import STORE_S
from pegboard.errors import ProviderError
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextStart,
)
from pegboard.schema.event import Event, PartDelta, PartUpdated, SessionIdle
from pegboard.schema.part import TextPart
from support.models.played import Played, heard, opened

HI = "hi"
PIECES = 5000


async def fast(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    yield TextStart("0")
    for number in range(PIECES):
        yield TextDelta("0", f"{number} ")
        if number % 100 == 0:
            await asyncio.sleep(0)
    yield StreamFinish("stop")


async def paced(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    yield TextStart("0")
    for number in range(60):
        yield TextDelta("0", f"{number} ")
        await asyncio.sleep(0.01)
    yield StreamFinish("stop")


async def events_of(tmp_path: Path, provider: Played) -> list[Event]:
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)
        await app.prompt(session.id, HI)
        return await listening


@pytest.mark.parametrize("answer", [fast, paced])
async def test_a_viewer_that_follows_the_events_has_the_text_at_every_moment(
    tmp_path: Path, answer: object
) -> None:
    shown: dict[str, str] = {}
    final = ""
    for event in await events_of(tmp_path, Played(answer)):
        match event.properties:
            case PartUpdated(part=TextPart() as part):
                assert part.text.rstrip().startswith(shown.get(part.id, "").rstrip())
                shown[part.id] = final = part.text
            case PartDelta() as delta:
                assert delta.part_id in shown, "a part is announced before its deltas"
                shown[delta.part_id] += delta.delta
            case _:
                pass

    assert final == " ".join(str(number) for number in range(PIECES if answer is fast else 60))


@pytest.mark.parametrize("answer", [fast, paced])
async def test_the_deltas_of_a_part_make_its_text(tmp_path: Path, answer: object) -> None:
    added = ""
    for event in await events_of(tmp_path, Played(answer)):
        if isinstance(event.properties, PartDelta):
            added += event.properties.delta

    assert added == "".join(f"{number} " for number in range(PIECES if answer is fast else 60))


async def test_deltas_are_gathered(tmp_path: Path) -> None:
    events = await events_of(tmp_path, Played(fast))

    deltas = sum(isinstance(event.properties, PartDelta) for event in events)
    assert deltas < PIECES / 50


async def test_between_its_start_and_its_end_a_text_is_published_as_deltas_alone(
    tmp_path: Path,
) -> None:
    events = await events_of(tmp_path, Played(paced))

    whole = [
        event.properties.part.text
        for event in events
        if isinstance(event.properties, PartUpdated)
        and isinstance(event.properties.part, TextPart)
        and event.properties.part.time is not None
    ]
    assert whole == ["", " ".join(str(number) for number in range(60))]


async def stored_text(app: App, session_id: str) -> str:
    """The text that the newest message has in the database."""
    parts = (await app.list_turns(session_id))[-1].parts
    return "".join(part.text for part in parts if isinstance(part, TextPart))


async def test_text_that_has_streamed_for_a_while_is_in_the_database(tmp_path: Path) -> None:
    seen = asyncio.Event()

    async def endless(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("0", "first words ")
        yield TextDelta("0", "and more")
        seen.set()
        await asyncio.sleep(60)

    async with opened(tmp_path, Played(endless)) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await seen.wait()
        async with asyncio.timeout(30):
            while await stored_text(app, session.id) != "first words and more":  # noqa: ASYNC110 - the database has no event
                await asyncio.sleep(0.01)
        await app.abort(session.id)
        await prompt


async def test_who_reads_a_running_session_has_all_that_was_published(tmp_path: Path) -> None:
    said, go_on = asyncio.Event(), asyncio.Event()

    async def halting(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("0", "a" * 1000)
        await asyncio.sleep(2 * STORE_S)
        yield TextDelta("0", "b")  # too little to be stored by itself
        said.set()
        await go_on.wait()
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(halting)) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await said.wait()
        [*_, read] = (await app.list_turns(session.id))[-1].parts
        go_on.set()
        await prompt

    assert isinstance(read, TextPart)
    assert read.text == "a" * 1000 + "b"


@pytest.mark.parametrize("ends", ["by itself", "by an abort"])
async def test_a_reader_is_not_kept_waiting_by_a_turn_that_ends(tmp_path: Path, ends: str) -> None:
    async with opened(tmp_path, Played(paced)) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        while not prompt.done():
            async with asyncio.timeout(30):
                turns = await app.list_turns(session.id)
            if ends == "by an abort" and len(turns) > 1 and len(turns[1].parts) > 1:
                await app.abort(session.id)
        await asyncio.gather(prompt, return_exceptions=True)
        answer = (await app.list_turns(session.id))[-1]

    [text] = [part for part in answer.parts if isinstance(part, TextPart)]
    assert text.time is not None
    assert text.time.end is not None


async def test_text_of_an_attempt_that_is_tried_again_is_not_stored(tmp_path: Path) -> None:
    attempts = 0

    async def broken_once(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        nonlocal attempts
        attempts += 1
        yield TextDelta("0", f"attempt {attempts}")
        if attempts == 1:
            raise ProviderError("lost", retryable=True, wait_s=0.01)
        await asyncio.sleep(2 * STORE_S)
        yield TextDelta("0", " went well")
        await asyncio.sleep(2 * STORE_S)
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(broken_once)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        parts = (await app.list_turns(session.id))[-1].parts

    assert [part.text for part in parts if isinstance(part, TextPart)] == ["attempt 2 went well"]
