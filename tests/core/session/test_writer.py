"""What a turn writes: in order, durable, and in few pieces."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta, TextStart
from pegboard.schema.event import Event, PartDelta, PartUpdated, SessionIdle
from pegboard.schema.part import TextPart
from pegboard.schema.prompt import TextInput
from played import Played, heard, opened

HI = (TextInput(text="hi"),)
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


async def test_streamed_text_is_stored_and_published_whole_four_times_a_second(
    tmp_path: Path,
) -> None:
    events = await events_of(tmp_path, Played(paced))

    whole = [
        event
        for event in events
        if isinstance(event.properties, PartUpdated)
        and isinstance(event.properties.part, TextPart)
        and "59" not in event.properties.part.text
        and "3 " in event.properties.part.text
    ]
    assert 1 <= len(whole) <= 6
    assert all(event.seq > 0 for event in whole)


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
        await asyncio.sleep(0.5)
        stored = (await app.turns(session.id))[-1].parts[-1]
        await app.abort(session.id)
        await prompt

    assert isinstance(stored, TextPart)
    assert stored.text == "first words and more"
