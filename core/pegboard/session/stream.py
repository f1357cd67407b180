"""A step's events: the provider's own and those of the tools, in the order of their happening.

The names are the protocol's: text, reasoning and tool-input come from the provider as they
are; this module adds what tools did. A tool starts as soon as its call is complete, while the
model still writes; the step ends when the answer and every tool have ended.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from pegboard.errors import ProviderError
from pegboard.providers import StreamEvent, StreamFinish, ToolCall
from pegboard.tools import ToolResult

_WATCH_STEP_S = 1.0
"""The limit on silence is this coarse, so that a delta does not move a timer."""


class ToolRunning(msgspec.Struct, frozen=True, kw_only=True):
    """The call is valid and runs; its name and arguments are the repaired ones."""

    id: str
    name: str
    input: Mapping[str, Any]
    metadata: dict[str, Any] | None = None


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The tool says how far it is."""

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


ToolEvent = ToolRunning | ToolProgress | ToolDone | ToolFailed
StepEvent = StreamEvent | ToolEvent


async def run_step(
    answer: AsyncIterator[StreamEvent],
    *,
    on_event: Callable[[StreamEvent], Awaitable[None] | None],
    run_tool: Callable[[ToolCall], Coroutine[Any, Any, None]],
    idle_timeout_s: float,
) -> StreamFinish:
    """How the model's answer ended, once all its tool calls have ended too.

    Events go to `on_event` in order; `run_tool` runs beside the stream. When the stream fails
    the tools that run already are waited for: what they do to files must be known. Cancelling
    cancels them.

    :raises ProviderError: when the answer breaks off, also when it just stops, or when nothing
        comes for `idle_timeout_s`.
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


@asynccontextmanager
async def _progress_within(limit_s: float) -> AsyncIterator[Callable[[], None]]:
    """A function that says that there is progress; without it the block ends after `limit_s`."""
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


@asynccontextmanager
async def closing(answer: AsyncIterator[StreamEvent]) -> AsyncIterator[None]:
    """A block at whose end the answer is closed, if its provider can close it."""
    try:
        yield
    finally:
        close = getattr(answer, "aclose", None)
        if close is not None:
            await close()
