"""How the answers of plugins combine: collect, fold, first, strictest, notify.

pluggy keeps the register but is synchronous, so the callers here walk the implementations and
await them one at a time. Each call is isolated: it has a time limit, its failure is reported
with the plugin's name, and what it is handed it cannot change.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from pegboard.contract.plugin import Answer
from pegboard.errors import RequiredHookError
from pegboard.hooks.health import Listener, Timing
from pegboard.hooks.isolation import CALL, Check, Implementation, Isolation, ordered
from pegboard.policy.permissions import strictest
from pegboard.schema.event import PluginFailed
from pegboard.schema.session import Verdict

_T = TypeVar("_T")
QUARANTINED = "is quarantined after failures in a row"
_FoldCheck = Callable[[object, _T], _T]


class FoldStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one plugin made of the subject of a fold: the same object where it changed nothing.

    `session_id` is "" for a hook without a session.
    """

    session_id: str
    hook: str
    plugin: str
    before: object
    after: object
    elapsed_ms: float


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
    ) -> None:
        self.replace(implementations)
        self._record: Callable[[FoldStep], None] | None = None
        self.isolation = Isolation(on_failure)
        self._listeners: dict[str, Listener] = {}

    def replace(self, implementations: Mapping[str, Sequence[Implementation]]) -> None:
        """Call these from here on; what is under way goes on."""
        plain = {
            hook: [each for each in found if not each.wrapper]
            for hook, found in implementations.items()
        }
        self._oldest_first = {hook: ordered(found) for hook, found in plain.items()}
        self._newest_first = {hook: ordered(found[::-1]) for hook, found in plain.items()}
        self._wrappers = {
            hook: _with_time(ordered(wrappers), plain[hook])
            for hook, found in implementations.items()
            if (wrappers := [each for each in found if each.wrapper])
        }

    def of_plugins(self, keys: Collection[str]) -> Mapping[str, Sequence[Implementation]]:
        """The implementations of the plugins with these keys, without their wrappers."""
        return {
            hook: [each for each in found if each.key in keys]
            for hook, found in self._oldest_first.items()
        }

    def order(self, hook: str, *, newest_first: bool) -> tuple[Implementation, ...]:
        """The implementations as they are asked: wrappers, the outermost first, then the others."""
        plain = self._newest_first if newest_first else self._oldest_first
        return (*self._wrappers.get(hook, ()), *plain.get(hook, ()))

    def implementations(self, hook: str) -> tuple[Implementation, ...]:
        """The implementations of a hook, oldest plugin first."""
        return self._oldest_first.get(hook, ())

    def timings(self) -> tuple[Timing, ...]:
        """What each implementation has cost until this moment."""
        return self.isolation.health.timings()

    def record(self, record: Callable[[FoldStep], None]) -> None:
        """Tell each step of a fold from here on; `record` must not raise."""
        self._record = record

    def quarantined(self, key: str) -> tuple[str, ...]:
        """The plugin's hooks that failed three times in a row and are no longer called."""
        return self.isolation.health.quarantined(key)

    def failed(self, hook: str) -> tuple[str, ...]:
        """The keys of the plugins whose implementation has failed, or could not be called."""
        found = self._oldest_first.get(hook, ())
        failures = {each.plugin for each in self.timings() if each.hook == hook and each.failures}
        return tuple(each.key for each in found if each.refusal or each.key in failures)

    async def collect(
        self, hook: str, arguments: Mapping[str, object], check: Check[_T]
    ) -> tuple[Answer[_T], ...]:
        """The answers of all that gave one, oldest plugin first."""
        answers = []
        for each in self._active(hook):
            reply = await self.isolation.ask(each, arguments, check)
            if reply.value is not None:
                answers.append(Answer(each.plugin, each.origin, reply.value, each.key))
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

        :raises RequiredHookError: when an implementation that is required fails.
        """
        if hook not in self._wrappers:
            return await self._folded(hook, subject, arguments, check, passing)

        async def inner(changed: Mapping[str, object]) -> _T:
            return await self._folded(hook, subject, changed, check, passing)

        def fits(answer: object) -> _T:
            return check(answer, arguments[subject])  # type: ignore[arg-type]  # the check's own type

        return await self._surrounded(hook, arguments, inner, fits, passing)

    async def _folded(
        self,
        hook: str,
        subject: str,
        arguments: Mapping[str, object],
        check: _FoldCheck[_T],
        passing: tuple[type[Exception], ...],
    ) -> _T:
        value: _T = arguments[subject]  # type: ignore[assignment]  # the check's own type
        for each in self.implementations(hook):
            if absence := self._absence(each):
                _insist(each, absence)
                continue

            def fits(answer: object, before: _T = value) -> _T:
                return check(answer, before)

            reply = await self.isolation.ask(
                each, {**arguments, subject: value}, fits, passing=passing
            )
            if reply.failure:
                _insist(each, reply.failure)
            after = value if reply.value is None else reply.value
            self._note_step(each, arguments, (value, after), reply.elapsed_ms)
            value = after
        return value

    async def first(
        self, hook: str, arguments: Mapping[str, object], check: Check[_T]
    ) -> _T | None:
        """The first answer, newest plugin first."""

        async def inner(changed: Mapping[str, object]) -> _T | None:
            return await self._first(hook, changed, check)

        if hook not in self._wrappers:
            return await inner(arguments)
        return await self._surrounded(hook, arguments, inner, check, ())

    async def _first(
        self, hook: str, arguments: Mapping[str, object], check: Check[_T]
    ) -> _T | None:
        for each in filter(self._is_active, self._newest_first.get(hook, ())):
            reply = await self.isolation.ask(each, arguments, check)
            if reply.value is not None:
                return reply.value
        return None

    async def _surrounded(
        self,
        hook: str,
        arguments: Mapping[str, object],
        inner: Callable[[Mapping[str, object]], Awaitable[_T]],
        fits: Check[_T],
        passing: tuple[type[Exception], ...],
    ) -> _T:
        """What the wrappers make of the inner call, the first of them outermost."""
        run = inner
        for each in reversed(self._wrappers[hook]):
            if absence := self._absence(each):
                _insist(each, absence)
            else:
                run = partial(self._around, each, run, fits, (RequiredHookError, *passing))
        return await run(arguments)

    async def _around(
        self,
        each: Implementation,
        inner: Callable[[Mapping[str, object]], Awaitable[_T]],
        fits: Check[_T],
        passing: tuple[type[Exception], ...],
        arguments: Mapping[str, object],
    ) -> _T:
        """What one wrapper makes of it; who fails, or has no answer, changes nothing.

        No wrapper can undo that a call was refused.
        """
        answers: list[_T] = []
        refusals: list[Exception] = []

        async def call(**changes: object) -> _T:
            if strange := changes.keys() - arguments.keys():
                raise TypeError(f"the hook {each.hook} has no argument {', '.join(strange)}")
            try:
                answers.append(await inner({**arguments, **changes}))
            except passing as error:
                refusals.append(error)
                raise
            return answers[-1]

        reply = await self.isolation.ask(each, {**arguments, CALL: call}, fits, passing=passing)
        if refusals:
            raise refusals[0]
        if reply.failure:
            _insist(each, reply.failure)
        if reply.value is not None:
            return reply.value
        return answers[-1] if answers else await inner(arguments)

    async def opinions(
        self, hook: str, arguments: Mapping[str, object], check: Check[Verdict]
    ) -> tuple[Answer[Verdict], ...]:
        """The opinions of all that have one; who fails, or cannot be asked, denies."""
        found = []
        for each in self.implementations(hook):
            absence = self._absence(each)
            verdict: Verdict | None = _denial(each, absence)
            if not absence:
                reply = await self.isolation.ask(each, arguments, check)
                said = _signed(each, reply.value, arguments.get("session"))
                verdict = _denial(each, reply.failure) if reply.failure else said
            if verdict is not None:
                found.append(Answer(each.plugin, each.origin, verdict, each.key))
        return tuple(found)

    async def strictest(
        self, hook: str, arguments: Mapping[str, object], check: Check[Verdict]
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
            await self.isolation.ask(each, arguments, _nothing)

    async def aclose(self) -> None:
        """End what still runs; a thread that hangs is left behind, as a daemon."""
        for listener in self._listeners.values():
            await listener.aclose()
        await self.isolation.aclose()

    def _active(self, hook: str) -> tuple[Implementation, ...]:
        return tuple(each for each in self.implementations(hook) if self._is_active(each))

    def _is_active(self, each: Implementation) -> bool:
        return not self._absence(each)

    def _absence(self, each: Implementation) -> str:
        """Why the implementation is not called, "" if it is."""
        quarantined = self.isolation.health.is_quarantined(each.key, each.hook)
        return each.refusal or (QUARANTINED if quarantined else "")

    def _listener(self, listening: Implementation) -> Listener:
        if (known := self._listeners.get(listening.key)) is not None:
            return known

        async def deliver(hook: str, arguments: Mapping[str, object]) -> None:
            for each in self._active(hook):
                if each.key == listening.key:
                    await self.isolation.ask(each, arguments, _nothing)

        def lost(text: str) -> None:
            self.isolation.report(listening, text)

        listener = Listener(deliver, lost, limit_s=listening.timeout_s)
        self._listeners[listening.key] = listener
        return listener

    def _note_step(
        self,
        each: Implementation,
        arguments: Mapping[str, object],
        values: tuple[object, object],
        elapsed_ms: float,
    ) -> None:
        if self._record is not None:
            step = FoldStep(
                session_id=str(getattr(arguments.get("session"), "id", "")),
                hook=each.hook,
                plugin=each.plugin,
                before=values[0],
                after=values[1],
                elapsed_ms=elapsed_ms,
            )
            self._record(step)


def _with_time(
    wrappers: Sequence[Implementation], inner: Sequence[Implementation]
) -> tuple[Implementation, ...]:
    """The wrappers, each with the time of all that it is around, and its own."""
    inside_s = sum(each.timeout_s for each in inner)
    found = []
    for each in reversed(wrappers):
        inside_s += each.timeout_s
        found.append(msgspec.structs.replace(each, timeout_s=inside_s))
    return tuple(reversed(found))


def _insist(each: Implementation, failure: str) -> None:
    if each.required:
        raise RequiredHookError(each.plugin, f"the required hook {each.hook} {failure}")


def _nothing(answer: object) -> None:
    """A listener's answer has no use and is not looked at."""


def _signed(each: Implementation, verdict: Verdict | None, session: object) -> Verdict | None:
    """The opinion with the plugin's name at it: what the plugin calls itself comes behind.

    One that goes by a rule of the session's has that rule's source. The reason, which the user and
    the model read, names a plugin that does not come with Pegboard.
    """
    if verdict is None or _is_by_rule(verdict, session):
        return verdict
    behind = f": {verdict.source}" if verdict.source not in ("", each.plugin) else ""
    named = f"plugin {each.plugin}"
    reason = verdict.reason
    if reason and each.origin != "builtin" and named not in reason:
        reason = f"{named}: {reason}"
    return msgspec.structs.replace(verdict, source=f"{each.plugin}{behind}", reason=reason)


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
