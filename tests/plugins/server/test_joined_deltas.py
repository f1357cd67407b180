"""A client hears a slow text at once, a fast one joined, and all in its order."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pegboard.engine.bus import Bus
from pegboard.schema.event import Event, PartDelta, PartRemoved, PartUpdated, SessionIdle
from pegboard.schema.part import TextPart, TimeSpan
from pegboard_plugins.server.deltas import (
    CODED_BYTES,
    EVENT_BYTES,
    FREE_BYTES_S,
    JoinedDeltas,
)

LONG_S = 30.0
SHORT_S = 1.0
"""For how long texts are joined: ten times as long as they are, as a machine may be slow."""


def too_much() -> int:
    """So many clients that no text is slow enough for all of them."""
    return 1 << 30


def added(text: str, part: str = "prt_1", session: str = "ses_1") -> Event:
    delta = PartDelta(
        session_id=session, message_id="msg_1", part_id=part, field="text", delta=text
    )
    return Event(properties=delta)


def ended(text: str) -> Event:
    part = TextPart(
        id="prt_1", session_id="ses_1", message_id="msg_1", text=text, time=TimeSpan(start=1, end=2)
    )
    return Event(properties=PartUpdated(session_id="ses_1", part=part, time=2))


def removed() -> Event:
    gone = PartRemoved(session_id="ses_1", message_id="msg_1", part_id="prt_1")
    return Event(properties=gone)


def idle(session: str) -> Event:
    return Event(properties=SessionIdle(session_id=session))


@pytest.fixture
async def bus() -> AsyncIterator[Bus]:
    made = Bus()
    yield made
    made.close()


@pytest.fixture
async def joined(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> JoinedDeltas:
    """Its texts are too fast, however slow the machine is."""
    monkeypatch.setattr("pegboard_plugins.server.deltas.FREE_BYTES_S", 0)
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", SHORT_S)
    return JoinedDeltas(bus.subscribe(), too_much)


async def test_the_first_delta_is_told_at_once_and_later_ones_in_one(
    bus: Bus, joined: JoinedDeltas
) -> None:
    bus.publish(added("one"))
    first = await asyncio.wait_for(joined.batch(), SHORT_S / 2)
    began = asyncio.get_running_loop().time()
    for text in (" two", " three", " four"):
        bus.publish(added(text))
        await asyncio.sleep(0)

    later = await joined.batch()

    assert first == (added("one"),)
    assert later == (added(" two three four"),)
    assert asyncio.get_running_loop().time() - began > SHORT_S / 2


@pytest.mark.parametrize("clients_bytes", [EVENT_BYTES, 12 * CODED_BYTES])
async def test_each_of_50_deltas_a_second_is_passed_on_at_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, clients_bytes: int
) -> None:
    joined = JoinedDeltas(bus.subscribe(), lambda: clients_bytes)
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    for number in range(60):
        bus.publish(added(f"{number} "))
        assert await asyncio.wait_for(joined.batch(), LONG_S / 2) == (added(f"{number} "),)
        await asyncio.sleep(1 / 50)


async def test_a_text_in_every_frame_is_joined(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    joined = JoinedDeltas(bus.subscribe(), lambda: CODED_BYTES)
    monkeypatch.setattr("pegboard_plugins.server.deltas.FREE_BYTES_S", 0)
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    bus.publish(*[added("x")] * 200)

    told = await joined.batch()
    bus.close()

    assert len(told) < 10
    rest = added("x" * (200 - len(told)))
    assert told + await joined.batch() == (*[added("x")] * len(told), rest)


@pytest.mark.parametrize(("clients", "events"), [(1, 2), (20, 1)])
async def test_a_slow_text_is_joined_if_its_clients_are_many(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, clients: int, events: int
) -> None:
    joined = JoinedDeltas(bus.subscribe(), lambda: clients * EVENT_BYTES)
    monkeypatch.setattr("pegboard_plugins.server.deltas.FREE_BYTES_S", 0)
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    bus.publish(added("x"), added("x"))

    assert await joined.batch() == (added("x"),) * events


async def test_a_joined_text_with_long_pauses_is_passed_on_at_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = JoinedDeltas(bus.subscribe(), too_much)
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    for text in ("one", " two", " three"):
        bus.publish(added(text))
        assert await asyncio.wait_for(joined.batch(), LONG_S / 2) == (added(text),)
        await asyncio.sleep(EVENT_BYTES / FREE_BYTES_S)


async def test_a_long_text_is_passed_on_at_once(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    joined = JoinedDeltas(bus.subscribe(), too_much)
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    paragraph = "x" * 4 * EVENT_BYTES
    for text in ("one", paragraph, paragraph):
        bus.publish(added(text))
        assert await asyncio.wait_for(joined.batch(), LONG_S / 2) == (added(text),)


async def test_of_many_slow_texts_each_is_passed_on_at_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = JoinedDeltas(bus.subscribe(), too_much)
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    for text in ("one", " two"):
        told = tuple(added(text, f"prt_{number}", f"ses_{number}") for number in range(10))
        bus.publish(*told)
        assert await asyncio.wait_for(joined.batch(), LONG_S / 2) == told
        await asyncio.sleep(EVENT_BYTES / FREE_BYTES_S)


async def test_a_text_that_pauses_begins_at_once_again(bus: Bus, joined: JoinedDeltas) -> None:
    bus.publish(added("one"))
    await joined.batch()
    waiting = asyncio.create_task(joined.batch())
    await asyncio.sleep(2 * SHORT_S)

    bus.publish(added("two"))

    assert await asyncio.wait_for(waiting, SHORT_S / 2) == (added("two"),)
    assert joined._texts.keys() == {"prt_1"}


@pytest.mark.parametrize("event", [ended("one two"), removed(), idle("ses_1")])
async def test_what_follows_a_text_waits_for_none_and_is_told_after_it(
    bus: Bus, joined: JoinedDeltas, monkeypatch: pytest.MonkeyPatch, event: Event
) -> None:
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    bus.publish(added("one"), added(" two"), event)

    told = await asyncio.wait_for(joined.batch(), LONG_S / 2)

    assert told == (added("one"), added(" two"), event)


async def test_other_sessions_and_parts_keep_no_text_back_and_break_none(
    bus: Bus, joined: JoinedDeltas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    bus.publish(added("one"), added(" two"), idle("ses_2"), added("x", "prt_2", "ses_2"))

    told = await asyncio.wait_for(joined.batch(), LONG_S / 2)

    assert told == (added("one"), idle("ses_2"), added("x", "prt_2", "ses_2"))
    bus.publish(added(" three"), idle("ses_1"))
    assert await joined.batch() == (added(" two three"), idle("ses_1"))


async def test_the_end_of_a_subscription_leaves_no_text_behind(
    bus: Bus, joined: JoinedDeltas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.server.deltas.JOINED_S", LONG_S)
    bus.publish(added("one"), added(" two"))
    await joined.batch()

    bus.close()

    assert await joined.batch() == (added(" two"),)
    assert await joined.batch() == ()


async def test_what_has_ended_is_remembered_no_more(bus: Bus, joined: JoinedDeltas) -> None:
    bus.publish(added("one"), added("x", "prt_2"), ended("one"))
    await joined.batch()
    waiting = asyncio.create_task(joined.batch())
    await asyncio.sleep(2 * SHORT_S)

    assert not waiting.done()
    assert joined._texts == {}
    bus.close()
    assert await waiting == ()
