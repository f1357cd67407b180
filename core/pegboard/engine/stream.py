"""The events of one step, from the provider and from tools, in the order of time.

Events of text, reasoning and tool input come from the provider unchanged; this module adds those
of tools. A tool starts as soon as its call is complete, while the
model still writes; the step ends when the answer and every tool have ended.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any

import msgspec

from pegboard.contract.results import ToolResult
from pegboard.errors import ProviderError
from pegboard.kit.threads import closing
from pegboard.providers import (
    StreamEvent,
    StreamFinish,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)

LONGEST_INPUT_BYTES = 8 << 20
"""A call with longer arguments is refused; what a tool writes at once is much shorter."""
MOST_CALLS = 256
"""An answer with more calls is cut off."""
TOO_LONG_INPUT = (
    f"This call was not made: the arguments of a call of the answer are over"
    f" {LONGEST_INPUT_BYTES >> 20} MB. Write less at once, a long file in several pieces."
)
TOO_MANY_CALLS = (
    f"This call was not made: the answer makes more than {MOST_CALLS} calls. Make fewer at once."
)
_WATCH_STEP_S = 1.0
"""The limit on silence is this coarse, so that a delta does not move a timer."""


class ToolRunning(msgspec.Struct, frozen=True, kw_only=True):
    """A call has begun to run, with its repaired name and arguments."""

    id: str
    name: str
    input: Mapping[str, Any]
    metadata: dict[str, Any] | None = None


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a running tool."""

    id: str
    title: str | None
    metadata: Mapping[str, Any] | None


class ToolDone(msgspec.Struct, frozen=True, kw_only=True):
    """The tool answered."""

    id: str
    result: ToolResult


class ToolFailed(msgspec.Struct, frozen=True, kw_only=True):
    """The tool failed, was denied or was stopped; `error` is for the model."""

    id: str
    error: str
    input: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


async def run_step(
    answer: AsyncIterator[StreamEvent],
    *,
    on_event: Callable[[StreamEvent], Awaitable[None] | None],
    run_tool: Callable[[ToolCall], Coroutine[Any, Any, None]],
    idle_timeout_s: float,
) -> StreamFinish:
    """The end of the model's answer, once all its tool calls have ended too.

    Events go to `on_event` in order; `run_tool` runs beside the stream. When the stream fails,
    running tools are waited for, so that their changes of files are known. Cancelling cancels
    them.

    :raises ProviderError: when the answer breaks off, ends without `StreamFinish`, or is silent
        for `idle_timeout_s`.
    """
    finish: StreamFinish | None = None
    failure: ProviderError | None = None
    async with asyncio.TaskGroup() as tools:
        try:
            async with closing(answer), _progress_within(idle_timeout_s) as progress:
                async for event in answer:
                    progress()
                    waits = on_event(event)
                    if waits is not None:
                        await waits
                    if isinstance(event, ToolCall):
                        tools.create_task(run_tool(event))
                    elif isinstance(event, StreamFinish):
                        finish = event
        except ProviderError as error:
            failure = error
        except (ConnectionError, TimeoutError, socket.gaierror) as error:
            failure = ProviderError(f"the connection failed: {error}", retryable=True)
    if failure is not None:
        raise failure
    if finish is None:
        raise ProviderError("the answer ended without saying that it is complete", retryable=True)
    return finish


async def within_bounds(
    answer: AsyncIterator[StreamEvent],
    refuse: Callable[[ToolInputStart, str], None],
    blaming: AbstractContextManager[None] | None = None,
) -> AsyncGenerator[StreamEvent, None]:
    """The answer up to the first call that is too long, or one too many.

    The answer ends there, as one with calls. Each incomplete call goes to `refuse`, with the
    reason. `blaming` is around the provider's code alone.
    """
    calls = _Calls()
    with blaming or nullcontext():
        async with closing(answer):
            async for event in answer:
                if reason := calls.excess(event):
                    for call in calls.incomplete():
                        refuse(call, reason)
                    yield StreamFinish("tool-calls")
                    return
                yield event


class _Calls:
    """The calls of an answer, with the lengths of their arguments so far."""

    def __init__(self) -> None:
        self._begun: dict[str, ToolInputStart] = {}
        self._sizes: dict[str, int] = {}
        self._complete: set[str] = set()

    def excess(self, event: StreamEvent) -> str:
        """Why the answer ends at this event, empty as long as it goes on."""
        match event:
            case ToolInputStart():
                return self._begin(event)
            case ToolInputDelta():
                size = self._sizes.get(event.id, 0) + _bytes_of(event.text)
                self._sizes[event.id] = size
                return TOO_LONG_INPUT if size > LONGEST_INPUT_BYTES else ""
            case ToolCall():
                reason = self._begin(ToolInputStart(event.id, event.name))
                if not reason and _bytes_of(event.input) > LONGEST_INPUT_BYTES:
                    reason = TOO_LONG_INPUT
                if not reason:
                    self._complete.add(event.id)
                return reason
            case _:
                return ""

    def incomplete(self) -> tuple[ToolInputStart, ...]:
        """The calls that have begun and are not complete."""
        return tuple(call for name, call in self._begun.items() if name not in self._complete)

    def _begin(self, call: ToolInputStart) -> str:
        if call.id not in self._begun and len(self._begun) >= MOST_CALLS:
            return TOO_MANY_CALLS
        self._begun.setdefault(call.id, call)
        return ""


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@asynccontextmanager
async def _progress_within(limit_s: float) -> AsyncIterator[Callable[[], None]]:
    """A function to report progress; the block fails after `limit_s` without any."""
    loop = asyncio.get_running_loop()
    seen = loop.time()

    def progress() -> None:
        nonlocal seen
        now = loop.time()
        if now - seen > _WATCH_STEP_S:
            seen = now
            limit.reschedule(now + limit_s + _WATCH_STEP_S)

    limit = asyncio.timeout(limit_s + _WATCH_STEP_S)
    try:
        async with limit:
            yield progress
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise ProviderError(
            f"the model has said nothing for {limit_s:g} s", retryable=True
        ) from error
