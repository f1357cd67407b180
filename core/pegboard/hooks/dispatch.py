"""How the answers of plugins combine: collect, fold, first, strictest, notify.

pluggy keeps the register but is synchronous, so the callers here walk the implementations and
await them one at a time. Each call is isolated: it has a time limit, its failure is reported
with the plugin's name, and what it is handed it cannot change.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Generic, TypeVar

import msgspec

from pegboard.contract.marks import Answer, Origin
from pegboard.errors import PluginError
from pegboard.hooks.health import Health, Timing
from pegboard.hooks.listeners import LIMIT, Listener
from pegboard.hooks.readonly import Shield
from pegboard.hooks.stalls import Holder, Stalls
from pegboard.hooks.trace import Step, Trace
from pegboard.kit.threads import Threads
from pegboard.policy.clock import Clock
from pegboard.policy.permissions import strictest
from pegboard.schema.event import PluginFailed
from pegboard.schema.permission import Verdict

GRACE_S = 1.0
"""How long a call that is given up may take to end when the App closes."""

_T = TypeVar("_T")
_Check = Callable[[object], _T]
_FoldCheck = Callable[[object, _T], _T]


class Implementation(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One plugin's function for one hook.

    `key` tells plugins of one name apart. `arguments` are the names it wants; `position` is -1
    for one that wants to be asked first, 1 for last, else 0.
    """

    key: str
    plugin: str
    origin: Origin
    hook: str
    function: Callable[..., object]
    arguments: tuple[str, ...]
    timeout_s: float
    position: int = 0

    @cached_property
    def awaits(self) -> bool:
        """Whether the function is a coroutine's; others run in a thread."""
        return inspect.iscoroutinefunction(inspect.unwrap(self.function))

    @cached_property
    def holder(self) -> Holder:
        """Who is named when a call holds up the event loop."""
        return Holder(self.plugin, f"hook {self.hook}")


class _Outcome(msgspec.Struct, frozen=True):
    """What a call came to: a value, an error of the plugin, or neither in time."""

    value: object = None
    error: BaseException | None = None
    late: bool = False


class _Reply(msgspec.Struct, Generic[_T], frozen=True):
    """A checked answer (None is no answer), or the text of a failure."""

    value: _T | None = None
    failure: str = ""
    elapsed_ms: float = 0.0


class Dispatch:
    """Calls implementations by the rules of their hook's kind.

    The implementations of each hook are given oldest plugin first. `on_failure` hears of every
    failure; it must not raise.
    """

    def __init__(
        self,
        implementations: Mapping[str, Sequence[Implementation]],
        *,
        on_failure: Callable[[PluginFailed], None],
        trace: bool = False,
    ) -> None:
        self._oldest_first = {
            hook: tuple(sorted(found, key=lambda each: each.position))
            for hook, found in implementations.items()
        }
        self._on_failure = on_failure
        self._trace = Trace(on=trace)
        self._health = Health()
        self._shield = Shield()
        self._threads = Threads()
        self.stalls = Stalls(self._held)
        self._running: set[asyncio.Task[_Outcome]] = set()
        self._listeners: dict[str, Listener] = {}

    def implementations(self, hook: str) -> tuple[Implementation, ...]:
        """The implementations of a hook, oldest plugin first."""
        return self._oldest_first.get(hook, ())

    def timings(self) -> tuple[Timing, ...]:
        """What each implementation has cost until this moment."""
        return self._health.timings()

    def steps(self, session_id: str | None = None) -> tuple[Step, ...]:
        """What each plugin changed in folds; empty unless tracing is on."""
        return self._trace.steps(session_id)

    def quarantined(self, key: str) -> bool:
        """Whether the plugin failed three times in a row and is no longer called."""
        return self._health.quarantined(key)

    async def collect(
        self, hook: str, arguments: Mapping[str, object], check: _Check[_T]
    ) -> tuple[Answer[_T], ...]:
        """The answers of all that gave one, oldest plugin first."""
        answers = []
        for each in self._active(hook):
            reply = await self._ask(each, arguments, check)
            if reply.value is not None:
                answers.append(Answer(each.plugin, each.origin, reply.value))
        return tuple(answers)

    async def fold(
        self,
        hook: str,
        subject: str,
        arguments: Mapping[str, object],
        check: _FoldCheck[_T],
        *,
        passing: tuple[type[Exception], ...] = (),
    ) -> _T:
        """The subject as the newest plugin left it.

        Errors of the types `passing` are the plugin's answer and are raised here.
        """
        value: _T = arguments[subject]  # type: ignore[assignment]  # the check's own type
        for each in self._active(hook):

            def fits(answer: object, before: _T = value) -> _T:
                return check(answer, before)

            reply = await self._ask(each, {**arguments, subject: value}, fits, passing=passing)
            after = value if reply.value is None else reply.value
            self._note_step(each, arguments, (value, after), reply.elapsed_ms)
            value = after
        return value

    async def first(
        self, hook: str, arguments: Mapping[str, object], check: _Check[_T]
    ) -> _T | None:
        """The first answer, newest plugin first."""
        newest_first = list(reversed(self._active(hook)))
        newest_first.sort(key=lambda each: each.position)
        for each in newest_first:
            reply = await self._ask(each, arguments, check)
            if reply.value is not None:
                return reply.value
        return None

    async def opinions(
        self, hook: str, arguments: Mapping[str, object], check: _Check[Verdict]
    ) -> tuple[Answer[Verdict], ...]:
        """The opinions of all that have one; who fails, or was quarantined for it, denies."""
        found = []
        for each in self.implementations(hook):
            verdict: Verdict | None = _denial(each, "is quarantined after failures in a row")
            if not self.quarantined(each.key):
                reply = await self._ask(each, arguments, check)
                said = _signed(each, reply.value, arguments.get("session"))
                verdict = _denial(each, reply.failure) if reply.failure else said
            if verdict is not None:
                found.append(Answer(each.plugin, each.origin, verdict))
        return tuple(found)

    async def strictest(
        self, hook: str, arguments: Mapping[str, object], check: _Check[Verdict]
    ) -> Verdict | None:
        """The strictest opinion, None when nobody has one."""
        return strictest(each.value for each in await self.opinions(hook, arguments, check))

    def notify(self, hook: str, arguments: Mapping[str, object]) -> None:
        """Queue the call for every plugin that listens; it never blocks."""
        for each in self._active(hook):
            self._listener(each).post(hook, arguments)

    async def notify_last(self, hook: str, arguments: Mapping[str, object]) -> None:
        """Let all plugins hear what still waits for them, then this, within their limits."""
        async with asyncio.TaskGroup() as group:
            for listener in self._listeners.values():
                group.create_task(listener.drain())
        for each in self._active(hook):
            await self._ask(each, arguments, _nothing)

    async def aclose(self) -> None:
        """End what still runs; a thread that hangs is left behind, as a daemon."""
        for listener in self._listeners.values():
            await listener.aclose()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE_S)
        self._threads.close()
        self.stalls.close()

    def _active(self, hook: str) -> tuple[Implementation, ...]:
        return tuple(each for each in self.implementations(hook) if not self.quarantined(each.key))

    def _listener(self, listening: Implementation) -> Listener:
        if (known := self._listeners.get(listening.key)) is not None:
            return known

        async def deliver(hook: str, arguments: Mapping[str, object]) -> None:
            for each in self._active(hook):
                if each.key == listening.key:
                    await self._ask(each, arguments, _nothing)

        def overflow() -> None:
            text = f"is more than {LIMIT:,} events behind, so the oldest are lost"
            self._report(listening, text, quarantined=False)

        listener = Listener(deliver, overflow, limit_s=listening.timeout_s)
        self._listeners[listening.key] = listener
        return listener

    async def _ask(
        self,
        each: Implementation,
        arguments: Mapping[str, object],
        check: _Check[_T],
        *,
        passing: tuple[type[Exception], ...] = (),
    ) -> _Reply[_T]:
        started = perf_counter()
        outcome = await self._limited(each, arguments)
        reply: _Reply[_T] = _Reply()
        if outcome.late:
            reply = _Reply(failure=f"took longer than {each.timeout_s:g} s")
        elif outcome.error is not None and not isinstance(outcome.error, passing):
            reply = _Reply(failure=_told(outcome.error, each.function))
        elif outcome.value is not None:
            reply = self._checked(outcome.value, check)
        elapsed_ms = (perf_counter() - started) * 1000
        quarantine = self._health.note(
            each.key, each.hook, elapsed_ms=elapsed_ms, failed=bool(reply.failure)
        )
        if reply.failure:
            self._report(each, reply.failure, quarantined=quarantine)
        elif outcome.error is not None:
            raise outcome.error
        return _Reply(reply.value, reply.failure, elapsed_ms)

    def _checked(self, answer: object, check: _Check[_T]) -> _Reply[_T]:
        if inspect.iscoroutine(answer):
            answer.close()
            return _Reply(failure="answered with a coroutine that it did not await")
        try:
            return _Reply(check(self._shield.plain(answer)))
        except Exception as error:  # noqa: BLE001 - an answer may be any object, with any trap in it
            return _Reply(failure=f"answered with what cannot be used: {_line(error)}")

    async def _limited(self, each: Implementation, arguments: Mapping[str, object]) -> _Outcome:
        """The outcome within the time limit; a call that is late is cancelled, not waited for."""
        named = {name: self._shield.view(arguments[name]) for name in each.arguments}
        with (clock := Clock()).timing():
            task = asyncio.get_running_loop().create_task(self._attempt(each, named))
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
            return _Outcome(late=True)
        if task.cancelled():
            return _Outcome(error=RuntimeError("the plugin cancelled itself"))
        return task.result()

    def _attempt(
        self, each: Implementation, named: Mapping[str, object]
    ) -> Coroutine[object, object, _Outcome]:
        if each.awaits:
            return _attempt_async(each.function, named)
        return self._threads.run(lambda: _attempt_sync(each.function, named))

    def _note_step(
        self,
        each: Implementation,
        arguments: Mapping[str, object],
        values: tuple[object, object],
        elapsed_ms: float,
    ) -> None:
        if self._trace.on:
            self._trace.note(
                session_id=str(getattr(arguments.get("session"), "id", "")),
                hook=each.hook,
                plugin=each.plugin,
                before=values[0],
                after=values[1],
                elapsed_ms=elapsed_ms,
            )

    def _report(self, each: Implementation, text: str, *, quarantined: bool) -> None:
        if quarantined:
            text += "; it failed three times in a row and is left alone from here on"
        message = str(PluginError(each.plugin, f"hook {each.hook} {text}"))
        self._on_failure(
            PluginFailed(
                plugin=each.plugin, hook=each.hook, message=message, quarantined=quarantined
            )
        )

    def _held(self, holder: Holder, text: str) -> None:
        message = str(PluginError(holder.plugin, f"{holder.what} {text}"))
        hook = holder.what.removeprefix("hook ")
        self._on_failure(PluginFailed(plugin=holder.plugin, hook=hook, message=message))


async def _attempt_async(function: Callable[..., object], named: Mapping[str, object]) -> _Outcome:
    try:
        answer = function(**named)
        return _Outcome(await answer if inspect.isawaitable(answer) else answer)
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - foreign code
        return _Outcome(error=error)


def _attempt_sync(function: Callable[..., object], named: Mapping[str, object]) -> _Outcome:
    try:
        return _Outcome(function(**named))
    except BaseException as error:  # noqa: BLE001 - foreign code, in a thread that lives on
        return _Outcome(error=error)


def _nothing(answer: object) -> None:
    """A listener's answer has no use and is not looked at."""


def _signed(each: Implementation, verdict: Verdict | None, session: object) -> Verdict | None:
    """The opinion with the plugin's name at it: what the plugin calls itself comes behind.

    One that goes by a rule of the session's has that rule's source.
    """
    if verdict is None or _is_by_rule(verdict, session):
        return verdict
    behind = f": {verdict.source}" if verdict.source not in ("", each.plugin) else ""
    return msgspec.structs.replace(verdict, source=f"{each.plugin}{behind}")


def _is_by_rule(verdict: Verdict, session: object) -> bool:
    named = verdict.rule
    return named is not None and any(
        (rule.permission, rule.pattern) == (named.permission, named.pattern)
        for ruleset in getattr(session, "rulesets", ())
        if ruleset.source == verdict.source
        for rule in ruleset.rules
    )


def _denial(each: Implementation, text: str) -> Verdict:
    reason = f"plugin {each.plugin}, which has to agree, {text}"
    return Verdict(action="deny", reason=reason, source=each.plugin)


def _told(error: BaseException, function: Callable[..., object]) -> str:
    """The error on one line, with the line of the plugin's own file where it came from."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = code.co_filename if code is not None else ""
    line, step = 0, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == own:
            line = step.tb_lineno
        step = step.tb_next
    place = f" ({Path(own).name}:{line})" if line else ""
    return f"raised {_line(error)}{place}"


def _line(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - an error of a plugin may fail to say what it is
        text = ""
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
