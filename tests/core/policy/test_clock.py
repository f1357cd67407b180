"""Clocks: no limit on work runs while a person is asked about it."""

import asyncio
from collections.abc import Callable

import pytest

from pegboard.policy.clock import Clock, Slots, asking

SHORT_S = 0.5
LONG_S = 30.0


async def asks(answered: asyncio.Event) -> None:
    with asking():
        await answered.wait()


async def passed(limit_s: float) -> None:
    """Some time more than the limit."""
    await asyncio.sleep(2 * limit_s)


async def test_a_limit_ends_its_block_and_says_so() -> None:
    with pytest.raises(TimeoutError):
        async with Clock().running(SHORT_S) as limit:
            await asyncio.sleep(LONG_S)

    assert limit.expired()


async def test_no_limit_runs_while_somebody_is_asked_and_all_run_on_afterwards() -> None:
    answered = asyncio.Event()

    async def work() -> None:
        async with Clock().running(SHORT_S), Clock().running(SHORT_S):
            task = asyncio.create_task(asks(answered))
            await passed(SHORT_S)
            answered.set()
            await task
            await asyncio.sleep(LONG_S)

    with pytest.raises(TimeoutError):
        await work()

    assert answered.is_set()


async def test_a_wait_that_is_stopped_lets_the_clock_run_on() -> None:
    async def work() -> None:
        async with Clock().running(SHORT_S):
            task = asyncio.create_task(asks(asyncio.Event()))
            await passed(SHORT_S)
            task.cancel()
            await asyncio.sleep(LONG_S)

    with pytest.raises(TimeoutError):
        await work()


async def test_a_clock_shows_the_time_of_work_alone() -> None:
    clock = Clock()
    with clock.timing():
        began = clock.now()
        with asking():
            assert clock.now() == clock.now()
            await passed(SHORT_S)
            assert clock.now() == pytest.approx(began, abs=1.5 * SHORT_S)

    assert clock.now() - began < 1.5 * SHORT_S


async def test_the_limit_of_other_work_runs_on() -> None:
    with Clock().timing():
        asked = asyncio.create_task(asks(asyncio.Event()))
    with pytest.raises(TimeoutError):
        async with Clock().running(SHORT_S):
            await asyncio.sleep(LONG_S)
    asked.cancel()


async def test_who_begins_to_wait_while_somebody_is_asked_is_not_timed_either() -> None:
    answered, work = asyncio.Event(), Clock()
    with work.timing():
        asked = asyncio.create_task(asks(answered))
    await asyncio.sleep(0)
    async with Clock().running(SHORT_S):
        with work.awaited():
            await passed(SHORT_S)
        answered.set()
        await asked


async def test_who_waits_for_a_slot_is_not_timed_while_its_owner_asks() -> None:
    slots, answered = Slots(1), asyncio.Event()

    async def owner() -> None:
        with Clock().timing():
            async with slots.taken():
                await asks(answered)

    owning = asyncio.create_task(owner())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(2 * SHORT_S, answered.set)
    async with Clock().running(SHORT_S), slots.taken():
        assert answered.is_set()
    await owning


async def test_who_waits_for_itself_is_ended_by_its_limit() -> None:
    slots = Slots(1)
    with pytest.raises(TimeoutError):
        async with Clock().running(SHORT_S), slots.taken(), slots.taken():
            pass
    async with slots.taken():
        pass


@pytest.mark.parametrize("around", [lambda inner: inner, lambda _: Clock()])
async def test_clocks_that_wait_for_each_other_stop_and_go_on(
    around: Callable[[Clock], Clock],
) -> None:
    clock = Clock()
    outer = around(clock)
    with clock.timing(), outer.timing(), clock.timing():
        before = clock.now(), outer.now()
        with asking():
            await passed(SHORT_S)
        assert (clock.now(), outer.now()) == pytest.approx(before, abs=1.5 * SHORT_S)
    stands = clock.now()
    await passed(SHORT_S)

    assert clock.now() - stands >= SHORT_S


async def test_a_task_is_waited_for_as_long_as_its_limit_and_as_a_person_takes() -> None:
    answered, clock = asyncio.Event(), Clock()
    with clock.timing():
        task = asyncio.create_task(asks(answered))
    asyncio.get_running_loop().call_later(2 * SHORT_S, answered.set)
    await asyncio.sleep(0)
    await clock.wait(task, limit_s=SHORT_S)
    endless = asyncio.create_task(asyncio.sleep(LONG_S))
    await clock.wait(endless, limit_s=SHORT_S)

    assert task.done()
    assert endless.cancel()


async def test_without_a_clock_nothing_stands() -> None:
    with asking():
        assert Clock.current().now() <= asyncio.get_running_loop().time()
