import asyncio

from pegboard.engine.bus import Bus
from pegboard.schema.event import Event, SessionIdle


def idle(number: int) -> Event:
    return Event(properties=SessionIdle(session_id=f"ses_{number}"), seq=number)


async def test_every_listener_gets_every_event_in_order() -> None:
    bus = Bus()
    async with bus.subscribe() as one, bus.subscribe() as two:
        bus.publish(idle(1), idle(2))
        bus.publish(idle(3))

        heard = [[await anext(listener) for _ in range(3)] for listener in (one, two)]

    assert heard == [[idle(1), idle(2), idle(3)]] * 2


async def test_a_listener_waits_for_the_next_event() -> None:
    bus = Bus()
    async with bus.subscribe() as listener:
        waiting = asyncio.ensure_future(anext(listener))
        await asyncio.sleep(0)

        bus.publish(idle(1))

        assert await asyncio.wait_for(waiting, 30) == idle(1)


async def test_a_slow_listener_loses_the_oldest_and_knows_how_many() -> None:
    bus = Bus()
    async with bus.subscribe(limit=2) as slow, bus.subscribe() as fast:
        bus.publish(*(idle(number) for number in range(1, 6)))

        assert await slow.batch() == (idle(4), idle(5))
        assert slow.missed == 3
        assert len(await fast.batch()) == 5
        assert fast.missed == 0


async def test_a_closed_subscription_gives_what_is_queued_and_ends() -> None:
    bus = Bus()
    listener = bus.subscribe()
    bus.publish(idle(1))
    listener.close()
    bus.publish(idle(2))

    assert [event async for event in listener] == [idle(1)]
    assert await listener.batch() == ()


async def test_closing_the_bus_wakes_those_who_wait() -> None:
    bus = Bus()
    listener = bus.subscribe()
    waiting = asyncio.ensure_future(listener.batch())
    await asyncio.sleep(0)

    bus.close()

    assert await asyncio.wait_for(waiting, 30) == ()


async def test_an_event_without_listeners_is_nobody_s() -> None:
    bus = Bus()
    bus.publish(idle(1))

    async with bus.subscribe() as late:
        bus.publish(idle(2))

        assert await late.batch() == (idle(2),)
