"""The run of one prompt from the command line: events, questions to the user, and early stops."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import UNSET

from pegboard.app import Subscription
from pegboard.cli import Exit
from pegboard.errors import AbortedError, NotFoundError, ServerError, TimeLimitError
from pegboard.schema.event import (
    Event,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import PermissionRequest, QuestionRequest
from pegboard.unstable import complain
from pegboard_plugins.cli.message import PromptRequest
from pegboard_plugins.cli.render import failure_text
from pegboard_plugins.cli.tally import Tally
from pegboard_plugins.cli.views import RunResult, SettledTexts, View
from pegboard_plugins.shared.terminal import CUT, exit_of_answer, on_hangup

if TYPE_CHECKING:
    from pegboard_plugins.cli.catchup import CatchUp
    from pegboard_plugins.shared.frontend import Feed

QUIET_S = 0.4
"""The time without an event after which the user sees that work is in progress."""

END_LIMIT_S = 8.0
"""The time limit for the end of a stopped turn."""

DEAF_LIMIT_S = 4.0
"""The time limit for the event loop to handle a signal, because a plugin may block it."""

ABORT_AGAIN_AFTER_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""The pauses between the requests to stop a turn on a server."""

_SHOW_CURSOR = "\x1b[?25h"
_STOPPED = {
    Exit.INTERRUPTED: "interrupted",
    Exit.TIME_LIMIT: "the time limit is over",
}

Ask = Callable[[PermissionRequest | QuestionRequest], Coroutine[None, None, None]]


class Stop:
    """A function that stops a turn early; the first reason counts."""

    def __init__(self, feed: "Feed", session_id: str) -> None:
        self._feed = feed
        self._session_id = session_id
        self._stopping: asyncio.Task[None] | None = None
        self.prompting: asyncio.Task[Turn] | None = None
        self.reason: Exit | None = None

    def __call__(self, reason: Exit) -> None:
        """Stop the turn; on a second interrupt, end the process at once."""
        if self.reason is not None:
            if reason is Exit.INTERRUPTED:
                _leave_at_once()
            return
        self.reason = reason
        _end_in_time(reason)
        self._stopping = asyncio.create_task(self._abort())

    async def _abort(self) -> None:
        """Abort the turn; repeat this for a server, which may not have the prompt yet."""
        assert self.prompting is not None
        pauses = ABORT_AGAIN_AFTER_S if self._feed.facts.server else (None,)
        with suppress(ServerError, TimeLimitError):
            for pause_s in pauses:
                if not await self._feed.abort(self._session_id):
                    break
                if (await asyncio.wait({self.prompting}, timeout=pause_s))[0]:
                    return
        self.prompting.cancel()

    async def done(self) -> None:
        """Wait until the turn has stopped, if a stop was requested."""
        if self._stopping:
            await self._stopping


def _end_in_time(reason: Exit, limit_s: float = END_LIMIT_S) -> None:
    """End the process after `limit_s` seconds, even if a thread or the event loop hangs."""

    def leave(*_: object) -> NoReturn:
        complain(f"some work did not stop within {limit_s:g} s and is left running")
        _leave_at_once(reason)

    signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, limit_s)


def _interrupt(*_: object) -> None:
    """Start a timer that ends the process; a second signal ends the process at once."""
    if signal.getitimer(signal.ITIMER_REAL)[0]:
        _leave_at_once()
    _end_in_time(Exit.INTERRUPTED, DEAF_LIMIT_S)


def _overdue(stop: Stop) -> None:
    """End the process if a hanging event loop has prevented the stop at the time limit."""
    if stop.reason is None:
        complain("the time limit is over, and a plugin holds up everything")
        _leave_at_once(Exit.TIME_LIMIT)


def _leave_at_once(code: Exit = Exit.INTERRUPTED) -> NoReturn:
    """End the process at once, after showing the cursor again."""
    if sys.stderr.isatty():
        sys.stderr.write(_SHOW_CURSOR)
        sys.stderr.flush()
    os._exit(code)


async def take_turn(
    feed: "Feed", request: PromptRequest, view: View, tally: Tally, ask: Ask | None = None
) -> RunResult:
    """Send the prompt, show its events, and return its result.

    A signal or the time limit stops the turn; the session stays consistent.

    :raises PegboardError: when the prompt could not be run at all.
    """
    stop = Stop(feed, tally.session_id)
    catching = await _catching(feed, tally.session_id)
    subscription = feed.subscribe()
    prompting = asyncio.create_task(request.sent(feed, tally.session_id))
    stop.prompting = prompting
    replies, answers = Replies(), feed.subscribe()
    hearing = asyncio.create_task(replies.hear(answers))
    asking = _Asking(ask, prompting, replies) if ask else None
    drawing = _Drawing(feed, view)
    watching = asyncio.create_task(_watch(subscription, drawing, tally, asking, catching))
    with _stop_on(stop, request.limit_s):
        try:
            await asyncio.wait({prompting, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not prompting.done():
                await feed.abort(tally.session_id)
            subscription.close()
            await watching
            turn = await prompting
        except (asyncio.CancelledError, AbortedError):
            if stop.reason is None:
                raise
            error = _stopped(stop.reason, tally)
            return RunResult(exit=stop.reason, error=error, sandbox=tally.sandbox)
        finally:
            answers.close()
            await _end(prompting, watching, hearing)
            await stop.done()
    return _result(turn, tally, stop.reason)


async def _catching(feed: "Feed", session_id: str) -> "CatchUp | None":
    """Return the filter that adds missed events after a lost connection; None without a server."""
    if not feed.facts.server:
        return None
    from pegboard_plugins.cli.catchup import CatchUp

    turns = await feed.turns(session_id, limit=1)
    return CatchUp(feed, session_id, turns[-1].info.id if turns else "")


class Replies:
    """The ids of requests that were answered, here or by other clients."""

    def __init__(self) -> None:
        self._answered: set[str] = set()
        self._more = asyncio.Event()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._answered

    async def hear(self, subscription: Subscription) -> None:
        """Collect the ids of answered requests until the subscription is closed."""
        while events := await subscription.batch():
            for event in events:
                self._note(event)

    async def until(self, request_id: str) -> None:
        """Wait until the request is answered, without a time limit because a user answers it."""
        while request_id not in self._answered:
            self._more.clear()
            await self._more.wait()

    def _note(self, event: Event) -> None:
        match event.properties:
            case (
                PermissionReplied(request_id=request_id)
                | QuestionReplied(request_id=request_id)
                | QuestionRejected(request_id=request_id)
            ):
                self._answered.add(request_id)
                self._more.set()
            case _:
                pass


class Refuser:
    """A responder that refuses each request, because no user is there to answer.

    Other clients of a server first have `wait_s` seconds to answer. After the first wait without an
    answer, requests are refused at once.
    """

    def __init__(self, feed: "Feed", *, wait_s: float, tell: Callable[[str], None]) -> None:
        self._feed = feed
        self._wait_s = wait_s
        self._tell = tell

    async def refuse(self, request: PermissionRequest | QuestionRequest) -> None:
        """Wait for another client's answer, then refuse; an answer elsewhere cancels this call."""
        if isinstance(request, QuestionRequest) and request.tool is None:
            return  # what a server asks by itself holds nobody up
        if self._wait_s:
            self._tell(_waiting(request, self._wait_s))
            await asyncio.sleep(self._wait_s)
            self._wait_s = 0
        with suppress(NotFoundError):
            if isinstance(request, PermissionRequest):
                await self._feed.leave_unattended(request.id)
            else:
                await self._feed.answer(request.id, None)


def _waiting(request: PermissionRequest | QuestionRequest, wait_s: float) -> str:
    if isinstance(request, PermissionRequest):
        what = f"{request.permission} {', '.join(request.patterns)}"
    else:
        what = "; ".join(each.question for each in request.questions)
    return f"waiting {wait_s:g} s for another client of the server to answer: {what}"


class _Asking:
    """A dialog that asks the user about a request while the turn waits."""

    def __init__(self, ask: Ask, prompting: asyncio.Task[Turn], replies: Replies) -> None:
        self._ask = ask
        self._prompting = prompting
        self._replies = replies

    async def about(self, request: PermissionRequest | QuestionRequest) -> None:
        """Ask until there is a reply, the turn ends, or another client answers."""
        if request.id in self._replies:
            return
        asking = asyncio.create_task(self._ask(request))
        answered = asyncio.create_task(self._replies.until(request.id))
        ends: set[asyncio.Task[Any]] = {asking, answered, self._prompting}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(asking, answered)


class _Drawing:
    """An adapter that shows events in a `View`, and gives it formatted results of tool calls."""

    def __init__(self, feed: "Feed", view: View) -> None:
        self._feed = feed
        self.view = view

    async def show(self, event: Event) -> None:
        """Show an event in the view; first format the result of an ended tool call, if needed."""
        match event.properties:
            case PartUpdated(part=ToolPart(state=Completed() | Failed()) as part):
                if self.view.width:
                    block = await self._feed.block(part, self.view.width)
                    self.view.take_block(part.id, block)
            case _:
                pass
        self.view.show(event)


async def _watch(
    subscription: Subscription,
    drawing: _Drawing,
    tally: Tally,
    asking: _Asking | None,
    catching: "CatchUp | None",
) -> None:
    """Show all events until the subscription is closed; call `show_quiet` during pauses."""
    texts = SettledTexts()
    while True:
        try:
            async with asyncio.timeout(QUIET_S):
                events = await subscription.batch()
        except TimeoutError:
            drawing.view.show_quiet()
            continue
        if not events:
            for event in texts.rest():
                await drawing.show(event)
            return
        if catching is not None:
            events = tuple([event async for event in catching.complete(events)])
        for event in events:
            tally.note(event)
            for each in (event,) if drawing.view.is_live else texts.settle(event):
                await drawing.show(each)
            match event.properties:
                case PermissionAsked(request=asked) | QuestionAsked(request=asked) if asking:
                    if tally.depth(asked.session_id) is not None:
                        await asking.about(asked)
                case _:
                    pass


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks, and wait until they have ended; errors of the tasks are ignored."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _stop_on(stop: Stop, limit_s: float | None) -> Iterator[None]:
    """Within the context, stop the turn on Ctrl-C, SIGTERM, a closed terminal, or a timeout."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, stop, Exit.INTERRUPTED)
        signal.signal(number, _interrupt)

    def hang_up() -> None:
        if stop.reason is None:
            _interrupt()
            loop.call_soon_threadsafe(stop, Exit.INTERRUPTED)

    timers: list[asyncio.TimerHandle | threading.Timer] = []
    if limit_s is not None:
        timers.append(loop.call_later(limit_s, stop, Exit.TIME_LIMIT))
        timers.append(watch := threading.Timer(limit_s + DEAF_LIMIT_S, _overdue, [stop]))
        watch.daemon = True
        watch.start()
    try:
        with on_hangup(hang_up):
            yield
    finally:
        for timer in timers:
            timer.cancel()
        for number in signals:
            loop.remove_signal_handler(number)


def _result(turn: Turn, tally: Tally, stopped: Exit | None) -> RunResult:
    exit_code = stopped or exit_of_answer(turn.info, denied=bool(tally.denial))
    text = "\n".join(turn.own_texts)
    value = turn.info.structured if isinstance(turn.info, AssistantMessage) else UNSET
    error = _error(turn, tally, exit_code)
    return RunResult(
        exit=exit_code, text=text, error=error, sandbox=tally.sandbox, structured=value
    )


def _error(turn: Turn, tally: Tally, exit_code: Exit) -> str:
    match exit_code:
        case Exit.DONE:
            return ""
        case Exit.DENIED if not _has_failed(turn):
            return tally.denial
        case Exit.TIME_LIMIT | Exit.INTERRUPTED:
            return _stopped(exit_code, tally)
        case _:
            return _failure(turn)


def _stopped(reason: Exit, tally: Tally) -> str:
    return _STOPPED[reason] + ("; the session is saved" if tally.is_saved else "")


def _has_failed(turn: Turn) -> bool:
    return isinstance(turn.info, AssistantMessage) and turn.info.error is not None


def _failure(turn: Turn) -> str:
    match turn.info:
        case AssistantMessage(error=error) if error is not None:
            return failure_text(error)
        case AssistantMessage(finish=str(finish)) if finish in CUT:
            return CUT[finish]
        case _:
            return "the model returned no answer"
