"""The stream of one step: the events of the model's answer, and the tools that run meanwhile.

A tool starts when its call is complete, while the model still writes. The step ends when the answer
and every tool have ended.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from pegboard.errors import ProviderError
from pegboard.kit.threads import closing
from pegboard.providers import StreamEvent, StreamFinish, ToolCall, ToolInputDelta, ToolInputStart

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


async def run_step(
    answer: AsyncIterator[StreamEvent],
    *,
    on_event: Callable[[StreamEvent], Awaitable[None] | None],
    run_tool: Callable[[ToolCall], Coroutine[Any, Any, None]],
    idle_timeout_s: float,
) -> StreamFinish:
    """Consume the model's answer, and wait for the end of all its tool calls.

    Events go to `on_event` in order, and `run_tool` runs during the stream. If the stream fails,
    running tools are still awaited, so that their file changes are known. Cancelling this function
    cancels the tools.

    :raises ProviderError: when the answer breaks off, ends without `StreamFinish`, or is silent for
      `idle_timeout_s`.
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
    blaming: AbstractContextManager[None],
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the answer up to the first call that is too long, or that exceeds `MOST_CALLS`.

    The answer then ends with the finish reason "tool-calls". `refuse` receives each incomplete call
    and the reason. `blaming` is a context manager that attributes errors to the provider; it
    surrounds only the reading of `answer`.
    """
    calls = _Calls()
    with blaming:
        async with closing(answer):
            async for event in answer:
                if reason := calls.excess(event):
                    for call in calls.incomplete():
                        refuse(call, reason)
                    yield StreamFinish("tool-calls")
                    return
                yield event


class _Calls:
    """The tool calls of an answer, with the lengths of the calls' arguments so far."""

    def __init__(self) -> None:
        self._begun: dict[str, ToolInputStart] = {}
        self._sizes: dict[str, int] = {}
        self._complete: set[str] = set()

    def excess(self, event: StreamEvent) -> str:
        """Return why the model's answer must be ended at this event, or "" to continue."""
        size = 0
        if isinstance(event, ToolInputDelta):
            size = self._sizes[event.id] = self._sizes.get(event.id, 0) + _bytes_of(event.text)
        elif isinstance(event, ToolInputStart | ToolCall):
            if event.id not in self._begun and len(self._begun) >= MOST_CALLS:
                return TOO_MANY_CALLS
            self._begun.setdefault(event.id, ToolInputStart(event.id, event.name))
            if isinstance(event, ToolCall):
                size = _bytes_of(event.input)
                if size <= LONGEST_INPUT_BYTES:
                    self._complete.add(event.id)
        return TOO_LONG_INPUT if size > LONGEST_INPUT_BYTES else ""

    def incomplete(self) -> tuple[ToolInputStart, ...]:
        """Return the calls that have started but are not complete."""
        return tuple(call for name, call in self._begun.items() if name not in self._complete)


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@asynccontextmanager
async def _progress_within(limit_s: float) -> AsyncIterator[Callable[[], None]]:
    """Yield a function to report progress; without a report within `limit_s` the block fails."""
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
