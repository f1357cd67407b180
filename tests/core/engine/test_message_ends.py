"""Each message that is announced comes to an end: whenever the run is aborted, whatever fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard import App, Prompt, hookimpl, tool
from pegboard.contract.results import PendingCall
from pegboard.errors import (
    AbortedError,
    ModelNotFoundError,
    PluginError,
    ProviderError,
    RequiredHookError,
)
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta
from pegboard.schema.event import SessionFailed, SessionIdle
from pegboard.schema.message import AssistantMessage, PluginFailure, Turn, UnknownFailure
from pegboard.schema.part import Completed, Failed, SubtaskInput, TextPart, ToolPart
from pegboard.schema.session import Idle
from pegboard_plugins import task
from pegboard_plugins.shared.frontend import ShellOrder, run_shell
from support.models.compacting import Shortens
from support.models.played import (
    HI,
    Played,
    ToolsPlugin,
    assistant,
    call,
    heard,
    opened,
    text,
    texts,
)

LIMIT_S = 60
Act = Callable[[App, str], Awaitable[object]]


class Counted(Coroutine[Any, Any, Any]):
    """A coroutine that says each time that it waits."""

    def __init__(self, inner: Coroutine[Any, Any, Any], on_wait: Callable[[], None]) -> None:
        self._inner = inner
        self._on_wait = on_wait

    def send(self, value: Any) -> Any:
        waits_for = self._inner.send(value)
        self._on_wait()
        return waits_for

    def throw(self, *error: Any) -> Any:
        waits_for = self._inner.throw(*error)
        self._on_wait()
        return waits_for

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()


class Abort:
    """Cancels the first run that begins at the n-th time that any task waits."""

    def __init__(self, at: int) -> None:
        self.left = at
        self._run: asyncio.Task[Any] | None = None

    def make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **facts: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(Counted(coro, self._waits), loop=loop, **facts)
        if self._run is None and getattr(coro, "__qualname__", "") == "Runs._run":
            self._run = task
        return task

    def _waits(self) -> None:
        if self._run is not None and self.left > 0:
            self.left -= 1
            if self.left == 0:
                self._run.cancel()


@contextmanager
def aborted(at: int) -> Any:
    abort = Abort(at)
    loop = asyncio.get_running_loop()
    loop.set_task_factory(abort.make_task)
    try:
        yield abort
    finally:
        loop.set_task_factory(None)


class Looks:
    """Hooks that wait a moment, wherever a turn has one."""

    @hookimpl
    async def chat_message(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def tool_definition(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def chat_system_transform(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def chat_messages_transform(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def chat_headers(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def chat_params(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def text_complete(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def tool_execute_before(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def tool_execute_after(self) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def session_compacting(self) -> None:
        await asyncio.sleep(0)


@tool
async def look() -> str:
    """Look."""
    await asyncio.sleep(0)
    return "seen"


class Model(Played):
    """Calls a tool for each prompt, breaks off once, and answers; all by what it is shown."""

    def __init__(self) -> None:
        super().__init__(self._play)
        self.broke = False

    async def _play(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        await asyncio.sleep(0)
        yield TextDelta("t", "Let me see. ")
        if not self.broke:
            self.broke = True
            raise ProviderError("busy", status=503)
        if request.tools and request.messages[-1].role != "tool":
            for event in call("look", "{}"):
                yield event
            yield StreamFinish("tool-calls")
            return
        await asyncio.sleep(0)
        yield StreamFinish("stop")


async def prompts(app: App, session_id: str) -> None:
    await app.prompt(session_id, HI)


async def hands_over(app: App, session_id: str) -> None:
    part = SubtaskInput(prompt="look", description="look", agent="helper")
    await app.prompt(session_id, Prompt(parts=(part,)))


async def summarises(app: App, session_id: str) -> None:
    await app.prompt(session_id, Prompt(HI, no_reply=True))
    await app.summarize(session_id)


async def runs_a_command(app: App, session_id: str) -> None:
    await run_shell(app, session_id, ShellOrder(command="echo hi"))


def unfinished(turns: tuple[Turn, ...]) -> list[object]:
    messages = [
        turn.info
        for turn in turns
        if isinstance(turn.info, AssistantMessage) and turn.info.time.completed is None
    ]
    open_parts = [
        part
        for turn in turns
        for part in turn.parts
        if (isinstance(part, ToolPart) and not isinstance(part.state, Completed | Failed))
        or (isinstance(part, TextPart) and part.time is not None and part.time.end is None)
    ]
    return [*messages, *open_parts]


@pytest.mark.parametrize("act", [prompts, hands_over, summarises, runs_a_command])
async def test_no_message_is_unfinished_wherever_the_run_is_aborted(
    tmp_path: Path, act: Act
) -> None:
    model = Model()
    plugins = (ToolsPlugin(look), Looks(), Shortens(), task)
    config = {"model": "played/m", "retry": {"cap_s": 0.001}}
    async with opened(tmp_path, model, *plugins, config=config) as app:
        at, ended = 0, False
        session = await app.create_session()
        while not ended:
            at += 1
            session = await app.create_session()
            model.broke = False
            with aborted(at) as abort:
                async with asyncio.timeout(LIMIT_S):
                    with suppress(AbortedError):
                        await act(app, session.id)
                    while app.session_status(session.id) != Idle():  # noqa: ASYNC110 - moments too
                        await asyncio.sleep(0)
            ended = abort.left > 0
            family = [session, *await app.children(session.id)]
            for each in family:
                assert unfinished(await app.list_turns(each.id)) == [], at
        answered = await app.prompt(session.id, HI)

    assert at > 20, "there were that many moments"
    assert isinstance(answered.info, AssistantMessage)
    assert answered.info.error is None


class Refuses(Played):
    """A provider that fails before there is a stream."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(text("fine"))
        self._error: BaseException | None = error

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return super().stream(request)


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), PluginError("x", "is broken")])
async def test_an_error_before_the_stream_ends_the_message_and_is_told_once(
    tmp_path: Path, error: Exception
) -> None:
    async with opened(tmp_path, Refuses(error)) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)
        with pytest.raises(PluginError):
            await app.prompt(session.id, HI)
        events = await listening
        turns = await app.list_turns(session.id)
        answered = await app.prompt(session.id, HI)

    assert unfinished(turns) == []
    assert isinstance(assistant(turns[-1]).error, PluginFailure)
    assert sum(isinstance(event.properties, SessionFailed) for event in events) == 1
    assert texts(answered) == ["fine"]


async def test_a_provider_that_refuses_before_the_stream_is_asked_again(tmp_path: Path) -> None:
    config = {"model": "played/m", "retry": {"cap_s": 0.01}}
    provider = Refuses(ProviderError("busy", status=503))
    async with opened(tmp_path, provider, config=config) as app:
        session = await app.create_session()
        answered = await app.prompt(session.id, HI)

    assert texts(answered) == ["fine"]


async def test_work_of_the_users_that_a_required_hook_stops_ends_its_message(
    tmp_path: Path,
) -> None:
    class Breaks:
        @hookimpl(required=True)
        async def tool_execute_before(self, call: PendingCall) -> PendingCall:
            raise ValueError(call.id)

    async with opened(tmp_path, Played(text("fine")), task, Breaks()) as app:
        session = await app.create_session()
        with pytest.raises(RequiredHookError):
            await hands_over(app, session.id)
        turns = await app.list_turns(session.id)

    assert unfinished(turns) == []
    assert isinstance(assistant(turns[-1]).error, PluginFailure)


async def test_work_of_the_users_whose_call_a_plugin_spoils_is_told_to_the_model(
    tmp_path: Path,
) -> None:
    class Spoils:
        @hookimpl
        async def tool_execute_before(self, call: PendingCall) -> PendingCall:
            return replace(call, input={})

    async with opened(tmp_path, Played(text("fine")), task, Spoils()) as app:
        session = await app.create_session()
        await hands_over(app, session.id)
        turns = await app.list_turns(session.id)

    assert unfinished(turns) == []
    [part] = [part for part in turns[1].parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Failed)
    assert "subagent_type" in part.state.error
    assert texts(turns[-1]) == ["fine"]


async def test_a_summary_that_no_model_can_write_does_not_stop_the_session(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("fine")), Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        with pytest.raises(ModelNotFoundError):
            await app.summarize(session.id, model="played/none")
        refused = (await app.list_turns(session.id))[-1]
        answered = await app.prompt(session.id, HI)

    assert assistant(refused).summary
    assert isinstance(assistant(refused).error, UnknownFailure)
    assert texts(answered) == ["fine"]
