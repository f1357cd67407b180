"""Who holds up the event loop is named: by real plugins that really block."""

import asyncio
import inspect
import logging
import threading
import time
from pathlib import Path

import pytest

from pegboard import App, hookimpl, tool
from pegboard.hooks import stalls
from pegboard.hooks.stalls import Holder, Stalls
from pegboard.policy.clock import Clock, asking
from pegboard.schema.part import Completed
from support.models.played import HI, Played, ToolsPlugin, calls, opened, shout, text, tools_of
from support.models.played import call as model_call

LIMIT_S = 30


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that two seconds are long enough on a machine with much to do."""
    monkeypatch.setattr(stalls, "STALL_S", 0.5)


@tool
async def snore() -> str:
    """Sleep as a beginner would."""
    time.sleep(2)  # noqa: ASYNC251 - the fault
    return "done"


@tool
def nap() -> str:
    """Sleep in a thread."""
    time.sleep(2)
    return "done"


class Sleeper:
    """A plugin whose hook blocks."""

    @hookimpl
    async def tool_execute_after(self) -> None:
        """Sleep as a beginner would."""
        time.sleep(2)  # noqa: ASYNC251 - the fault


async def failures(app: App) -> list[tuple[str, str, str]]:
    """What is told once a prompt has been answered, and the loop has turned."""
    session = await app.create_session()
    await app.prompt(session.id, HI)
    (part,) = tools_of(await app.list_turns(session.id))
    assert isinstance(part.state, Completed)
    await asyncio.sleep(0)
    return [(each.plugin, each.hook, each.message) for each in app.failures]


@pytest.mark.usefixtures("impatient")
async def test_a_tool_that_holds_up_the_loop_is_named_once_with_its_line(tmp_path: Path) -> None:
    provider = Played(calls(model_call("snore", "{}")), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(snore)) as app:
        told = await failures(app)

    ((plugin, hook, message),) = told
    assert hook == "tool snore"
    assert plugin in message
    assert "held up everything for more than 0.5 s" in message
    first_line = inspect.getsourcelines(snore.arguments.function)[1]
    assert f"{__file__}:{first_line + 3} (snore)" in message


@pytest.mark.usefixtures("impatient")
async def test_a_hook_that_holds_up_the_loop_is_named(tmp_path: Path) -> None:
    provider = Played(calls(model_call("shout", '{"words": "x"}')), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(shout), Sleeper()) as app:
        told = await failures(app)

    ((plugin, hook, message),) = told
    assert (plugin, hook) == ("Sleeper", "tool_execute_after")
    assert "(tool_execute_after)" in message


async def test_a_tool_in_a_thread_holds_up_nothing(tmp_path: Path) -> None:
    provider = Played(calls(model_call("nap", "{}")), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(nap)) as app:
        assert await failures(app) == []


async def test_what_never_lets_go_is_logged_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stalls, "HANG_S", 1.0)
    watch = Stalls(lambda holder, text: None)
    caplog.set_level(logging.WARNING, "pegboard.plugins")

    with watch.running(Holder("mine", "tool stuck")):
        limit = time.monotonic() + LIMIT_S
        while not caplog.records and time.monotonic() < limit:
            time.sleep(0.05)  # noqa: ASYNC251 - the fault
    watch.close()

    (record,) = caplog.records
    assert record.getMessage().startswith("tool stuck of plugin mine held up everything")
    assert "has not let go" in record.getMessage()


@pytest.mark.usefixtures("impatient")
async def test_what_no_call_itself_holds_up_is_logged_and_blames_no_plugin(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[tuple[Holder, str]] = []
    watch = Stalls(lambda *found: told.append(found))

    async def inner() -> None:
        time.sleep(2)  # noqa: ASYNC251 - the fault

    with watch.running(Holder("mine", "tool outer")):
        await asyncio.create_task(inner())
        await asyncio.sleep(0)
    watch.close()

    assert told == []
    (message,) = caplog.messages
    assert message.startswith("something held up everything for more than 0.5 s while there ran ")
    assert "tool outer of mine, at " in message
    assert "(inner)" in message


async def test_when_nothing_runs_nothing_is_awake() -> None:
    watch = Stalls(lambda holder, text: None)
    with watch.running(Holder("mine", "hook event")):
        pass

    async with asyncio.timeout(LIMIT_S):
        while watch._timer is not None:  # noqa: ASYNC110 - it has no other trace
            await asyncio.sleep(0.05)

    assert not watch._awake.is_set()
    watch.close()
    for thread in threading.enumerate():
        if thread.name == "pegboard-stalls" and thread is watch._thread:
            thread.join(LIMIT_S)
            assert not thread.is_alive()


@pytest.mark.usefixtures("impatient")
async def test_while_a_user_is_asked_nothing_is_awake_and_then_the_watch_goes_on() -> None:
    told: list[tuple[Holder, str]] = []
    watch = Stalls(lambda *found: told.append(found))

    with Clock().timing(), watch.running(Holder("mine", "tool asks")):
        with asking():
            async with asyncio.timeout(LIMIT_S):
                while watch._timer is not None:  # noqa: ASYNC110 - it has no other trace
                    await asyncio.sleep(0.05)
            assert not watch._awake.is_set()
        await asyncio.sleep(0)
        assert watch._awake.is_set()
        time.sleep(2)  # noqa: ASYNC251 - the fault
    await asyncio.sleep(0)
    watch.close()

    assert [holder for holder, _ in told] == [Holder("mine", "tool asks")]


@pytest.mark.usefixtures("impatient")
async def test_a_loop_that_waits_for_a_processor_is_nobodys_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stalls, "starved", lambda thread_id: time.monotonic())
    told: list[tuple[Holder, str]] = []
    watch = Stalls(lambda *found: told.append(found))

    with watch.running(Holder("mine", "tool busy")):
        time.sleep(1)  # noqa: ASYNC251 - as if all processors were taken
    await asyncio.sleep(0)
    watch.close()

    assert told == []
