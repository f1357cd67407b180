"""Isolated calls of plugin functions: with a time limit, read-only values and failure reports.

A failure is reported with the plugin's name. After three failures in a row the hook is no longer
called. Errors of a plugin's other code are also reported with the plugin's name.
"""

import asyncio
import inspect
import sys
import types
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from pegboard.contract.plugin import Check
from pegboard.errors import PegboardError, PluginError
from pegboard.hooks.implementation import FAILURES, Implementation, Timing
from pegboard.hooks.readonly import ReadOnlyViews
from pegboard.hooks.stalls import PRINTING, Holder, Stalls, log_stall
from pegboard.kit.threads import Threads
from pegboard.policy.clock import Clock
from pegboard.schema.event import PluginFailed

MOST_NAMED = 3
"""Functions that a report names, of tasks that were left."""
GRACE_S = 1.0
"""How long a call that is given up may take to end when the App closes."""

CANCELLED_ITSELF = "the plugin cancelled itself"
QUARANTINED = "is quarantined after failures in a row"
Work = Coroutine[Any, Any, Any] | Generator[Any, None, Any]
TaskFactory = Callable[[asyncio.AbstractEventLoop, Work], asyncio.Task[Any]]


class _HookOutcome(msgspec.Struct, frozen=True):
    """The outcome of a plugin's call: the value, the error, or `late` after the time limit.

    `held_s` is the time in which the call blocked the event loop, in seconds.
    """

    value: object = None
    error: BaseException | None = None
    late: bool = False
    held_s: float = 0.0


class Reply(msgspec.Struct, frozen=True):
    """A valid answer of a plugin (None for no answer), or the message of a failure."""

    value: Any = None
    failure: str = ""
    elapsed_ms: float = 0.0


class Isolation:
    """The caller of plugins' functions, which isolates each call from the App.

    Every failure is passed to `on_failure`, which must not raise.
    """

    def __init__(self, on_failure: Callable[[PluginFailed], None]) -> None:
        self._on_failure = on_failure
        self.timings: dict[tuple[str, str], Timing] = {}
        self.stalls = Stalls(self._held)
        self._views = ReadOnlyViews()
        self._threads = Threads()
        self._running: set[asyncio.Task[_HookOutcome]] = set()
        self._stalled: dict[Holder, str] = {}
        self._begun: dict[Holder, set[asyncio.Task[Any]]] = {}

    def absence(self, each: Implementation) -> str:
        """Return why the implementation cannot be called now, or "" if it can be called."""
        timing = self.timings.get((each.key, each.hook))
        return each.refusal or (QUARANTINED if timing is not None and timing.quarantined else "")

    async def ask(
        self,
        each: Implementation,
        arguments: Mapping[str, object],
        check: Check,
        before: object = None,
        *,
        passing: tuple[type[Exception], ...] = (),
    ) -> Reply:
        """Call the implementation and return the validated answer, or the message of the failure.

        `before` is the value that the answer would replace. Errors of the types `passing` do not
        count as failures and are raised.
        """
        if absence := self.absence(each):
            return Reply(failure=absence)
        started = perf_counter()
        self._stalled[each.holder] = ""
        outcome = await self._limited(each, arguments)
        stalled = self._stalled.pop(each.holder, "")
        value, failure = None, ""
        is_slow = outcome.late or outcome.held_s > each.timeout_s
        if outcome.late:
            failure = f"took longer than {each.timeout_s:g} s"
        elif is_slow:
            held = f"{stalled or 'held up everything'}, {outcome.held_s:.1f} s in all"
            failure = f"{held}; its limit is {each.timeout_s:g} s"
        elif outcome.error is not None and not isinstance(outcome.error, passing):
            failure = _describe(outcome.error, each.function)
        elif outcome.value is not None:
            value, failure = self._checked(outcome.value, check, before)
        elapsed_ms = (perf_counter() - started) * 1000
        quarantine = self._timing(each).note(elapsed_ms, failed=bool(failure))
        if failure and (quarantine or not is_slow):
            self.report(each, failure, quarantined=quarantine)
        elif text := failure or stalled:
            self._tell(each.holder, text)
        if isinstance(outcome.error, passing):
            raise outcome.error
        return Reply(value, failure, elapsed_ms)

    def _timing(self, each: Implementation) -> Timing:
        if (known := self.timings.get((each.key, each.hook))) is None:
            known = self.timings[each.key, each.hook] = Timing(each.key, each.hook)
        return known

    def _checked(self, answer: object, check: Check, before: object) -> tuple[object, str]:
        """Return the answer and "", or None and the reason why the answer is invalid."""
        if inspect.iscoroutine(answer):
            answer.close()
            return None, "answered with a coroutine that it did not await"
        try:
            return check(self._views.plain(answer), before), ""
        except Exception as error:  # noqa: BLE001 - an answer may be any object, with any trap in it
            return None, f"answered with what cannot be used: {line_of(error)}"

    async def _limited(self, each: Implementation, arguments: Mapping[str, object]) -> _HookOutcome:
        """Call the plugin's function within its time limit; cancel a late call without waiting."""
        named = {name: self._views.given(arguments[name]) for name in each.arguments}
        named.update(each.given)
        if each.in_place:
            return await self._in_place(each, named)
        with (clock := Clock()).timing():
            token = PRINTING.set(each.plugin)
            task = asyncio.get_running_loop().create_task(self._attempt(each, named))
            PRINTING.reset(token)
            self._running.add(task)
            self.stalls.begin(task, each.holder)
            try:
                await clock.wait(task, limit_s=each.timeout_s)
            finally:
                self.stalls.end(task)
                late = not task.done() and task.cancel()
                if late:
                    task.add_done_callback(self._running.discard)
                else:
                    self._running.discard(task)
        if late:
            return _HookOutcome(late=True)
        if task.cancelled():
            return _HookOutcome(error=RuntimeError(CANCELLED_ITSELF))
        return task.result()

    async def _in_place(self, each: Implementation, named: Mapping[str, object]) -> _HookOutcome:
        """Call a built-in plugin's function in the caller's task and return the outcome.

        Most calls wait for nothing, so they need no timer and no new task.
        """
        steps = _Steps(_called(each.function, named), partial(self._begin, each.holder))
        with (clock := Clock()).timing(), self.stalls.running(each.holder):
            try:
                awaited = steps.go(steps.work.send, None)
                if steps.outcome is not None:
                    return steps.outcome
                async with clock.limit(each.timeout_s):
                    return await steps.rest(awaited)
            except TimeoutError:
                return _HookOutcome(late=True)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                return _HookOutcome(error=RuntimeError(CANCELLED_ITSELF))

    @contextmanager
    def loading(self, holder: Holder) -> Iterator[None]:
        """Run a plugin's code in a block, and attribute the tasks that it starts to the plugin."""
        loop = asyncio.get_running_loop()
        factory = loop.get_task_factory()
        loop.set_task_factory(partial(self._begin, holder))
        try:
            with self.stalls.running(holder):
                yield
        finally:
            loop.set_task_factory(factory)

    def _begin(
        self,
        holder: Holder,
        loop: asyncio.AbstractEventLoop,
        work: Work,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        """Start a task for a plugin; `aclose` cancels the task if it still runs."""
        task = asyncio.Task(work, loop=loop, context=context)
        begun = self._begun.setdefault(holder, set())
        begun.add(task)
        task.add_done_callback(begun.discard)
        return task

    async def _attempt(self, each: Implementation, named: Mapping[str, object]) -> _HookOutcome:
        if each.awaits:
            steps = _Steps(_called(each.function, named), partial(self._begin, each.holder))
            return await steps.rest(steps.go(steps.work.send, None))
        return await self._threads.run(lambda: _attempt_sync(each.function, named))

    async def aclose(self) -> None:
        """Cancel the plugins' remaining tasks; a thread that hangs keeps running as a daemon."""
        running: set[asyncio.Task[Any]] = {*self._running}
        for holder, tasks in self._begun.items():
            if left := tasks - running:
                names = {getattr(task.get_coro(), "__qualname__", "") for task in left}
                named = f"{len(left):,} tasks ({', '.join(sorted(names)[:MOST_NAMED])})"
                self._tell(holder, f"left {named} running when the App closed")
                running |= left
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=GRACE_S)
        self._threads.close()
        self.stalls.close()

    def report(self, each: Implementation, text: str, *, quarantined: bool = False) -> None:
        """Report a call's failure to `on_failure`, and the hook's quarantine if it begins now."""
        if quarantined:
            text += f"; {FAILURES} times in a row: it is not called until the App is opened again"
            if each.guards:
                text += ", and what it guards is refused"
        message = str(PluginError(each.plugin, f"hook {each.hook} {text}"))
        self._on_failure(
            PluginFailed(
                plugin=each.plugin, hook=each.hook, message=message, quarantined=quarantined
            )
        )

    def _held(self, holder: Holder, text: str) -> None:
        """Report that a plugin's call blocks the event loop.

        While a hook call runs, the text is kept and reported when the call ends. Otherwise it is
        reported at once.
        """
        if holder in self._stalled:
            self._stalled[holder] = text
        else:
            self._tell(holder, text)

    def _tell(self, holder: Holder, text: str) -> None:
        message = str(PluginError(holder.plugin, f"{holder.what} {text}"))
        if holder.is_builtin:
            log_stall(message)
        else:
            self.tell(holder.plugin, holder.what.removeprefix("hook "), message)

    def tell(self, plugin: str, hook: str, message: str) -> None:
        """Report a failure of a plugin that does not count towards the quarantine of a hook."""
        self._on_failure(PluginFailed(plugin=plugin, hook=hook, message=message))


class _Steps:
    """An async function of a plugin, run step by step to measure how long it blocks the event loop.

    `outcome` is None until the function has ended. `begin` creates the tasks that the function
    starts.
    """

    def __init__(self, work: Coroutine[object, object, object], begin: TaskFactory) -> None:
        self.work = work
        self.outcome: _HookOutcome | None = None
        self._begin = begin
        self._held_s = 0.0

    def go(self, step: Callable[[Any], object], given: object) -> object:
        """Run the plugin's function until it next waits; return the awaitable that it waits for."""
        loop, started = asyncio.get_running_loop(), perf_counter()
        factory = loop.get_task_factory()
        loop.set_task_factory(self._begin)
        value: object = None
        failure: BaseException | None = None
        try:
            return step(given)
        except StopIteration as end:
            value = end.value
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - foreign code
            failure = error
        finally:
            loop.set_task_factory(factory)
            self._held_s += perf_counter() - started
        self.outcome = _HookOutcome(value, failure, held_s=self._held_s)
        return None

    @types.coroutine
    def rest(self, awaited: object) -> Generator[object, object, _HookOutcome]:
        """Run the steps after a step that waits for `awaited`, until the function has ended."""
        while self.outcome is None:
            step: Callable[[Any], object] = self.work.send
            given: object = None
            try:
                given = yield awaited
            except BaseException as error:  # noqa: BLE001 - it is the function's to see
                step, given = self.work.throw, error
            awaited = self.go(step, given)
        return self.outcome


async def _called(function: Callable[..., object], named: Mapping[str, object]) -> object:
    answer = function(**named)
    return await answer if inspect.isawaitable(answer) else answer


def _attempt_sync(function: Callable[..., object], named: Mapping[str, object]) -> _HookOutcome:
    try:
        return _HookOutcome(function(**named))
    except BaseException as error:  # noqa: BLE001 - foreign code, in a thread that lives on
        return _HookOutcome(error=error)


def _describe(error: BaseException, function: Callable[..., object]) -> str:
    """Describe an error on one line, with the line of the plugin's own file that raised it."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = code.co_filename if code is not None else ""
    line, step = 0, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == own:
            line = step.tb_lineno
        step = step.tb_next
    place = f" ({Path(own).name}:{line})" if line else ""
    return f"raised {line_of(error)}{place}"


@contextmanager
def blaming(plugin: str, what: str, *, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Run a plugin's code in a block; `what` names the code in the error, as "the provider house".

    Pegboard's own errors and errors of the types `passing` are raised unchanged.

    :raises PluginError: for all other errors of the block.
    """
    try:
        yield
    except Exception as error:  # it is foreign code
        if isinstance(error, (PegboardError, *passing)):
            raise
        raise PluginError(plugin, f"{what} raised {line_of(error)}") from error


@contextmanager
def inside(
    manager: AbstractContextManager[object], on_failure: Callable[[BaseException], None]
) -> Iterator[None]:
    """Enter a plugin's context manager around a block; its errors are reported and not raised."""
    try:
        manager.__enter__()
    except Exception as error:  # noqa: BLE001 - foreign code
        on_failure(error)
        yield
        return
    try:
        yield
    finally:
        try:
            manager.__exit__(*sys.exc_info())
        except Exception as error:  # noqa: BLE001 - foreign code
            on_failure(error)


def line_of(error: BaseException) -> str:
    """Return the error's type and the first line of its message, or only the type."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - an error of a plugin may fail to say what it is
        text = ""
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
