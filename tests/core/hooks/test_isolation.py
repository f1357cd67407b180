"""A plugin that raises, hangs, answers nonsense or meddles fails alone."""

import asyncio
import threading
import time
from typing import Any

import pytest

from pegboard.errors import ToolError
from pegboard.hooks import stalls
from pegboard.schema.session import Verdict
from support.plugins.dispatching import (
    FOLD,
    HOOK,
    JUDGE,
    REFUSABLE,
    Plugins,
    adds,
    fails,
    hangs,
    implementation,
    spec,
    text,
)


@pytest.mark.parametrize("origin", ["builtin", "installed"])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration("x")])
async def test_a_plugin_cannot_end_the_process(error: BaseException, origin: str) -> None:
    def sync(value: str) -> str:
        raise error

    async def on_loop(value: str) -> str:
        raise error

    plugins = Plugins(
        implementation("sync", sync, origin=origin), implementation("async", on_loop, origin=origin)
    )

    async with plugins as hooks:
        assert await hooks.fold(FOLD, value="-") == "-"

    assert len(plugins.failures) == 2


@pytest.mark.parametrize("origin", ["builtin", "installed"])
async def test_a_plugin_that_cancels_itself_has_failed(origin: str) -> None:
    async def cancelled(value: str) -> str:
        raise asyncio.CancelledError

    async def cancelled_later(value: str) -> str:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    plugins = Plugins(
        implementation("odd", cancelled, origin=origin),
        implementation("later", cancelled_later, origin=origin),
    )

    async with plugins as hooks:
        assert await hooks.fold(FOLD, value="-") == "-"

    assert ["cancelled itself" in told for told in plugins.told] == [True, True]


async def test_a_hook_of_pegboards_own_ends_with_its_caller() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def waits(value: str) -> str:
        begun.set()
        try:
            return await hangs(value)
        finally:
            ended.set()

    async with Plugins(implementation("waits", waits, origin="builtin")) as hooks:
        calling = asyncio.create_task(hooks.fold(FOLD, value="-"))
        await begun.wait()
        calling.cancel()
        await asyncio.wait({calling})

    assert calling.cancelled()
    assert ended.is_set()


@pytest.mark.parametrize(("origin", "told"), [("builtin", 0), ("installed", 1)])
async def test_a_stall_is_told_to_the_user_unless_it_is_pegboards_own(
    origin: str, told: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stalls, "STALL_S", 0.5)

    async def sleeps(value: str) -> str:
        time.sleep(2)  # noqa: ASYNC251 - the fault
        return value + "x"

    plugins = Plugins(implementation("slow", sleeps, origin=origin, timeout_s=60))
    async with plugins as hooks:
        assert await hooks.fold(FOLD, value="-") == "-x"
        await asyncio.sleep(0)

    assert len(plugins.told) == told
    logged = [line for line in caplog.messages if "held up everything" in line]
    assert len(logged) == 1 - told


@pytest.mark.parametrize("fault", ["waits", "holds"])
async def test_slowness_of_pegboards_own_is_logged_until_it_costs_the_hook(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def slow(value: str) -> str:
        if fault == "waits":
            await asyncio.Event().wait()
        time.sleep(0.2)  # noqa: ASYNC251 - the fault
        return "late"

    plugins = Plugins(implementation("own", slow, origin="builtin", timeout_s=0.05))
    async with plugins as hooks:
        for _ in range(2):
            assert await hooks.fold(FOLD, value="-") == "-"
        assert plugins.told == []
        assert len([line for line in caplog.messages if "plugin own: hook" in line]) == 2
        await hooks.fold(FOLD, value="-")

    assert ["it is not called until" in told for told in plugins.told] == [True]


async def test_a_hook_of_pegboards_own_that_waits_for_nothing_makes_no_task() -> None:
    made: list[object] = []

    def make(loop: asyncio.AbstractEventLoop, work: Any, **facts: Any) -> asyncio.Task[Any]:
        made.append(work)
        return asyncio.Task(work, loop=loop, **facts)

    async def tells(value: str) -> str:
        return value + "x"

    own = [implementation(name, tells, origin="builtin") for name in "abc"]
    async with Plugins(*own) as hooks:
        asyncio.get_running_loop().set_task_factory(make)
        try:
            assert await hooks.fold(FOLD, value="-") == "-xxx"
        finally:
            asyncio.get_running_loop().set_task_factory(None)

    assert made == []


async def test_a_coroutine_for_an_answer_is_a_failure() -> None:
    async def inner() -> str:
        return "x"

    async def forgets(value: str) -> object:
        return inner()

    def plain(value: str) -> object:
        return inner()

    plugins = Plugins(implementation("forgets", forgets), implementation("plain", plain))

    async with plugins as hooks:
        assert await hooks.fold(FOLD, value="-") == "-"

    assert [told.endswith("that it did not await") for told in plugins.told] == [True, True]


async def test_a_wrong_answer_is_named_with_its_type() -> None:
    plugins = Plugins(implementation("odd", lambda value: 3))

    async with plugins as hooks:
        assert await hooks.fold(FOLD, value="-") == "-"

    assert "TypeError: int where str is expected" in plugins.told[0]


@pytest.mark.parametrize("origin", ["builtin", "installed"])
async def test_a_plugin_that_hangs_costs_its_time_limit_and_no_more(origin: str) -> None:
    over = threading.Event()
    plugins = Plugins(
        implementation("async", hangs, timeout_s=0.05, origin=origin),
        implementation("sync", lambda value: over.wait(60), timeout_s=0.05),
        implementation("good", adds("g")),
    )

    async with plugins as hooks:
        started = time.perf_counter()
        assert await hooks.fold(FOLD, value="-") == "-g"
        assert time.perf_counter() - started < 30
        over.set()

    late = [told for told in plugins.told if "took longer than 0.05 s" in told]
    assert len(late) == (1 if origin == "builtin" else 2)


async def test_what_holds_the_loop_beyond_its_limit_has_failed_whatever_it_answers() -> None:
    async def blocks(value: str) -> str:
        time.sleep(0.2)  # noqa: ASYNC251 - the fault
        return "late"

    async def blocks_later(value: str) -> str:
        await asyncio.sleep(0)
        return await blocks(value)

    async def fails_late(value: str) -> str:
        await blocks(value)
        raise ValueError("late")

    functions = (blocks, blocks_later, fails_late)
    plugins = Plugins(*(implementation(f.__name__, f, timeout_s=0.05) for f in functions))

    async with plugins as hooks:
        for _ in range(4):
            assert await hooks.fold(FOLD, value="-") == "-"
        for function in functions:
            assert hooks.quarantined(function.__name__) == (HOOK,)

    assert len(plugins.told) == 9, "one line for each time, and three times"
    assert all("s in all; its limit is 0.05 s" in told for told in plugins.told)


async def test_a_policy_that_holds_the_loop_beyond_its_limit_denies() -> None:
    async def blocks(value: str) -> Verdict:
        time.sleep(0.2)  # noqa: ASYNC251 - the fault
        return Verdict(action="allow")

    plugins = Plugins(implementation("slow", blocks, timeout_s=0.05))

    async with plugins as hooks:
        verdict = await hooks.strictest(JUDGE, value="-")

    assert verdict is not None
    assert verdict.action == "deny"


async def test_a_refusal_counts_however_late_it_comes() -> None:
    async def refuses(value: str) -> str:
        time.sleep(0.2)  # noqa: ASYNC251 - the fault
        raise ToolError("no")

    plugins = Plugins(implementation("slow", refuses, timeout_s=0.05))

    async with plugins as hooks:
        with pytest.raises(ToolError, match="no"):
            await hooks.fold(REFUSABLE, value="-")

    assert len(plugins.told) == 1


async def test_who_waits_while_another_holds_the_loop_has_not_failed() -> None:
    begun = asyncio.Event()

    async def waits(value: str) -> str:
        begun.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "done"

    plugins = Plugins(implementation("innocent", waits, timeout_s=0.1))

    async with plugins as hooks:
        folding = asyncio.ensure_future(hooks.fold(FOLD, value="-"))
        await begun.wait()
        time.sleep(0.3)  # noqa: ASYNC251 - another one's fault
        assert await folding == "done"

    assert plugins.told == []


async def test_one_that_swallows_its_cancellation_is_not_waited_for() -> None:
    over = asyncio.Event()

    async def stubborn(value: str) -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            await over.wait()
        return "late"

    plugins = Plugins(implementation("stubborn", stubborn, timeout_s=0.05))

    async with plugins as hooks:
        started = time.perf_counter()
        assert await hooks.fold(FOLD, value="-") == "-"
        assert time.perf_counter() - started < 30
        over.set()


async def test_blocking_code_leaves_the_loop_free() -> None:
    release = threading.Event()
    plugins = Plugins(implementation("slow", lambda value: release.wait(5) and "done"))

    async with plugins as hooks:
        folding = asyncio.ensure_future(hooks.fold(FOLD, value="-"))
        await asyncio.sleep(0.02)
        release.set()
        assert await folding == "done"


async def test_the_caller_s_cancellation_reaches_the_plugin_and_is_no_failure() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def waits(value: str) -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "never"

    plugins = Plugins(implementation("slow", waits))

    async with plugins as hooks:
        folding = asyncio.ensure_future(hooks.fold(FOLD, value="-"))
        await begun.wait()
        folding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await folding
        await asyncio.wait_for(ended.wait(), 30)

    assert plugins.failures == []


async def test_three_failures_in_a_row_are_the_last() -> None:
    calls = []

    def fail(value: str) -> str:
        calls.append(value)
        raise ValueError("again")

    plugins = Plugins(implementation("bad", fail), implementation("good", adds("g")))

    async with plugins as hooks:
        for _ in range(5):
            assert await hooks.fold(FOLD, value="-") == "-g"
        assert hooks.quarantined("bad")
        assert not hooks.quarantined("good")

    assert len(calls) == 3
    assert [failure.quarantined for failure in plugins.failures] == [False, False, True]


async def test_a_success_ends_the_row_and_quarantine_is_of_one_hook() -> None:
    answers = iter([True, True, False, True, True, False])

    def sometimes(value: str) -> str | None:
        if next(answers):
            raise ValueError("sometimes")
        return None

    broken, working = (
        spec("fold", text, subject="value", name=name) for name in ("broken", "working")
    )
    plugins = Plugins(
        implementation("shaky", sometimes),
        implementation("half", fails, hook="broken"),
        implementation("half", adds("h"), hook="working"),
    )

    async with plugins as hooks:
        for _ in range(6):
            await hooks.fold(FOLD, value="-")
        for _ in range(3):
            await hooks.fold(broken, value="-")
            await hooks.fold(working, value="-")
        assert not hooks.quarantined("shaky")
        assert hooks.quarantined("half") == ("broken",)
        assert await hooks.fold(working, value="-") == "-h"


@pytest.mark.parametrize("origin", ["builtin", "installed"])
async def test_no_plugin_can_change_what_another_sees(origin: str) -> None:
    value = {"deep": {"list": [1]}}

    def tampers(value: dict[str, Any]) -> None:
        value["deep"]["list"].append(2)

    kept = {"mine": [1]}
    anything = spec("fold", lambda answer, _: answer, subject="value")
    plugins = Plugins(
        implementation("bad", tampers, origin=origin),
        implementation("keeper", lambda value: kept, origin=origin),
    )

    async with plugins as hooks:
        folded = await hooks.fold(anything, value=value)

    kept["mine"].append(2)
    assert value == {"deep": {"list": [1]}}
    assert folded == {"mine": [1]}
    assert type(folded) is dict
    assert "read-only" in plugins.told[0]
