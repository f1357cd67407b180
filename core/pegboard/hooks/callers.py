"""The callers of hooks, one per kind of hook, typed by each hook's own specification.

`await hooks.fold(modelhooks.text_complete, session=..., part=..., text=...)` asks every plugin.
pluggy registers the implementations but is synchronous, so the callers here await the
implementations one after another. Each call is isolated: it has a time limit, its arguments are
read-only, and a failure is reported with the plugin's name.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from copy import copy
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

import msgspec

from pegboard.contract import toolhooks
from pegboard.contract.plugin import Answer, Plugin, mark_of
from pegboard.contract.results import Activity, FoldStep
from pegboard.errors import PluginError, RequiredHookError
from pegboard.hooks.checks import check_of
from pegboard.hooks.implementation import CALL, Implementation, Listener, Timing, ordered, with_time
from pegboard.hooks.isolation import Isolation, Reply, blaming, inside, line_of
from pegboard.hooks.stalls import Holder
from pegboard.policy.permissions import strictest_verdict
from pegboard.schema.event import PluginFailed
from pegboard.schema.session import Verdict

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Spec = Callable[..., object]
_Arguments = Mapping[str, object]
_ASKING = "tool_definition", "chat_system_transform", "chat_messages_transform", "chat_params"


class Closable(Protocol):
    """A resource that must be closed after use."""

    async def aclose(self) -> None:
        """Close the resource."""
        ...


class Hooks:
    """The callers of one App's hooks: they ask the plugins in order and combine the answers.

    `implementations` are ordered with the oldest plugin first. `on_failure` receives the failure of
    every plugin that raises, hangs or answers with the wrong type; it must not raise.
    `fold_listeners` receive each plugin's result of a fold; they must not raise either.

    `steps` holds, for each session, how plugins changed the current model request. The engine
    removes them when it compares requests. `owners` maps tool ids to the plugin of the tool.
    `switches` maps tool ids to the setting that enables the tool.
    """

    def __init__(
        self,
        implementations: Mapping[str, Sequence[Implementation]],
        *,
        on_failure: Callable[[PluginFailed], None],
    ) -> None:
        self.replace(implementations)
        self._isolation = Isolation(on_failure)
        self._listeners: dict[str, Listener] = {}
        self.fold_listeners: list[Callable[[FoldStep], None]] = []
        self.steps: dict[str, list[FoldStep]] = {}
        self.owners: Mapping[str, Plugin] = {}
        self.sources: Mapping[str, str] = {}
        self.switches: Mapping[str, str] = {}
        self._bringers: dict[int, tuple[object, str]] = {}

    def replace(self, implementations: Mapping[str, Sequence[Implementation]]) -> None:
        """Use these implementations for all later calls, and not for calls that already run."""
        self._implementations = implementations
        self._asked: dict[str, tuple[Implementation, ...]] = {}
        self._wrappers: dict[str, tuple[Implementation, ...]] = {}
        for hook, found in implementations.items():
            plain = [each for each in found if not each.wrapper]
            if plain and plain[0].kind == "first":
                plain.reverse()
            self._asked[hook] = ordered(plain)
            self._wrappers[hook] = with_time(
                ordered([each for each in found if each.wrapper]), plain
            )

    def only(self, keys: Collection[str]) -> "Hooks":
        """Return callers that ask only the plugins with these keys."""
        some = copy(self)
        some.replace(
            {
                hook: [each for each in found if each.key in keys]
                for hook, found in self._implementations.items()
            }
        )
        return some

    def has(self, spec: _Spec) -> bool:
        """Return whether any plugin implements the hook."""
        return bool(self._asked.get(spec.__name__))

    async def answers(
        self, spec: Callable[_P, _T | None], /, *_: _P.args, **named: _P.kwargs
    ) -> tuple[Answer[_T], ...]:
        """Return the answer of each plugin that gives an answer, oldest plugin first."""
        check, found = check_of(spec), []
        for each in self._asked.get(spec.__name__, ()):
            reply = await self._isolation.ask(each, named, check)
            if reply.value is not None:
                found.append(Answer(each.plugin, each.origin, reply.value, each.key))
        return tuple(found)

    async def collect(
        self, spec: Callable[_P, Sequence[_T] | None], /, *_: _P.args, **named: _P.kwargs
    ) -> tuple[Answer[_T], ...]:
        """Return the items of the plugins' answers, oldest plugin first, each with its plugin."""
        return tuple(
            Answer(answer.plugin, answer.origin, item, answer.key)
            for answer in await self.answers(spec, *_, **named)
            for item in answer.value
        )

    async def fold(self, spec: Callable[_P, _T | None], /, *_: _P.args, **named: _P.kwargs) -> _T:
        """Pass the value of the subject argument through all plugins and return the last value.

        Each plugin receives the value that the plugin before it returned.

        :raises Exception: an error that the hook's specification lets plugins raise.
        :raises RequiredHookError: when a required implementation fails.
        """
        folded: _T = await self._surrounded(spec, self._folded, named)
        return folded

    async def _folded(self, spec: _Spec, arguments: _Arguments) -> object:
        mark, check = mark_of(spec), check_of(spec)
        value, session = arguments[mark.subject], arguments.get("session")
        for each in self._asked.get(spec.__name__, ()):
            reply = await self._isolation.ask(
                each, {**arguments, mark.subject: value}, check, value, passing=mark.raises
            )
            _insist(each, reply)
            after = value if reply.value is None else reply.value
            noted = each.hook in _ASKING and getattr(session, "purpose", "") == "turn"
            if noted or self.fold_listeners:
                name = str(getattr(session, "id", ""))
                step = FoldStep(name, each.hook, each.plugin, value, after, reply.elapsed_ms)
                for listener in self.fold_listeners:
                    listener(step)
                if noted:
                    self.steps.setdefault(name, []).append(step)
            value = after
        return value

    async def first(
        self, spec: Callable[_P, _T | None], /, *_: _P.args, **named: _P.kwargs
    ) -> _T | None:
        """Ask the newest plugin first and return the first answer, or None if no plugin answers."""
        found: _T | None = await self._surrounded(spec, self._first, named)
        return found

    async def _first(self, spec: _Spec, arguments: _Arguments) -> object:
        check, passing = check_of(spec), mark_of(spec).raises
        for each in self._asked.get(spec.__name__, ()):
            reply = await self._isolation.ask(each, arguments, check, passing=passing)
            if reply.value is not None:
                return reply.value
        return None

    async def _surrounded(
        self,
        spec: _Spec,
        call: Callable[[_Spec, _Arguments], Awaitable[object]],
        arguments: _Arguments,
    ) -> Any:  # noqa: ANN401 - as typed as the specification
        """Call the hook inside the wrappers that plugins have for it, the first one outermost."""
        inner: Callable[[_Arguments], Awaitable[object]] = partial(call, spec)
        for each in reversed(self._wrappers.get(spec.__name__, ())):
            inner = partial(self._around, spec, each, inner)
        return await inner(arguments)

    async def _around(
        self,
        spec: _Spec,
        each: Implementation,
        inner: Callable[[_Arguments], Awaitable[object]],
        arguments: _Arguments,
    ) -> object:
        """Call the wrapper `each` of a plugin around `inner`, and return the hook's answer.

        A wrapper that fails, or answers None, changes nothing. A wrapper cannot undo the refusal of
        a call.
        """
        mark = mark_of(spec)
        passing: tuple[type[Exception], ...] = (RequiredHookError, *mark.raises)
        answers: list[object] = []
        refusals: list[Exception] = []

        async def call(**changes: object) -> object:
            if strange := changes.keys() - arguments.keys():
                raise TypeError(f"the hook {each.hook} has no argument {', '.join(strange)}")
            try:
                answers.append(await inner({**arguments, **changes}))
            except passing as error:
                refusals.append(error)
                raise
            return answers[-1]

        given, before = {**arguments, CALL: call}, arguments.get(mark.subject)
        reply = await self._isolation.ask(each, given, check_of(spec), before, passing=passing)
        if refusals:
            raise refusals[0]
        _insist(each, reply)
        if reply.value is not None:
            return reply.value
        return answers[-1] if answers else await inner(arguments)

    async def opinions(
        self, spec: Callable[_P, Verdict | None], /, *_: _P.args, **named: _P.kwargs
    ) -> tuple[Answer[Verdict], ...]:
        """Return the verdict of each plugin that gives a verdict, oldest plugin first.

        A plugin that fails, or cannot be asked, counts as a denial.
        """
        check, found = check_of(spec), []
        for each in self._asked.get(spec.__name__, ()):
            reply = await self._isolation.ask(each, named, check)
            verdict = _signed(each, reply.value, named.get("session"))
            if reply.failure:
                reason = f"plugin {each.plugin}, which has to agree, {reply.failure}"
                verdict = Verdict(action="deny", reason=reason, source=each.plugin)
            if verdict is not None:
                found.append(Answer(each.plugin, each.origin, verdict, each.key))
        return tuple(found)

    async def strictest(
        self, spec: Callable[_P, Verdict | None], /, *_: _P.args, **named: _P.kwargs
    ) -> Verdict | None:
        """Return the strictest verdict of all plugins, or None if no plugin gives a verdict."""
        return strictest_verdict(each.value for each in await self.opinions(spec, *_, **named))

    @asynccontextmanager
    async def around(self, activity: Activity) -> AsyncIterator[Activity]:
        """Run a block inside the context managers that plugins return from `around_call`."""
        with ExitStack() as stack:
            for each in await self.collect(toolhooks.around_call, activity=activity):
                stack.enter_context(inside(each.value, partial(self._not_around, each.plugin)))
            try:
                yield activity
            except BaseException as error:
                activity.error = error
                raise

    def _not_around(self, plugin: str, error: BaseException) -> None:
        self.tell(plugin, "around_call", f"plugin {plugin}: around a call: {line_of(error)}")

    def notify(self, spec: Callable[_P, None], /, *_: _P.args, **named: _P.kwargs) -> None:
        """Queue a notification for every plugin that implements the hook; this never blocks."""
        for each in self._asked.get(spec.__name__, ()):
            if not self._isolation.absence(each):
                self._listener(each).post(partial(self._isolation.ask, each, named, check_of(spec)))

    def _listener(self, each: Implementation) -> Listener:
        if (known := self._listeners.get(each.key)) is None:
            lost = partial(self._isolation.report, each)
            known = self._listeners[each.key] = Listener(lost, limit_s=each.timeout_s)
        return known

    async def notify_last(
        self, spec: Callable[_P, None], /, *_: _P.args, **named: _P.kwargs
    ) -> None:
        """Deliver all queued notifications, then this one, within the plugins' time limits."""
        async with asyncio.TaskGroup() as group:
            for listener in self._listeners.values():
                group.create_task(listener.drain())
        await self.answers(spec, *_, **named)

    def quarantined(self, key: str) -> tuple[str, ...]:
        """Return the hooks of the plugin with this key that are skipped after repeated failures."""
        timings = (each for each in self.timings() if each.plugin == key)
        return tuple(each.hook for each in timings if each.quarantined)

    def failed(self, spec: _Spec) -> tuple[str, ...]:
        """Return the keys of the plugins with an implementation that failed or cannot be called."""
        found = self._asked.get(spec.__name__, ())
        failed = {(each.plugin, each.hook) for each in self.timings() if each.failures}
        return tuple(each.key for each in found if each.refusal or (each.key, each.hook) in failed)

    def order(self, hook: str) -> tuple[str, ...]:
        """Return the names of the plugins that implement the hook, in the order of their calls."""
        found = (*self._wrappers.get(hook, ()), *self._asked.get(hook, ()))
        return tuple(each.plugin for each in found)

    def timings(self) -> tuple[Timing, ...]:
        """Return the time that each implementation has taken so far."""
        return tuple(self._isolation.timings.values())

    def know(self, answers: Sequence[Answer[_T]]) -> None:
        """Remember which plugin gave each answer, so that `blaming` can name the plugin."""
        self._bringers.update((id(each.value), (each.value, each.plugin)) for each in answers)

    def blaming(
        self, brought: object, what: str, *, passing: tuple[type[Exception], ...] = ()
    ) -> AbstractContextManager[None]:
        """Run code of `brought`, a plugin's object, in a block; report errors as the plugin's.

        `what` names the object in the report, such as "the provider house". Errors of the types
        `passing` are raised unchanged.
        """
        _, plugin = self._bringers.get(id(brought), (None, type(brought).__name__))
        return blaming(plugin, what, passing=passing)

    def tell(self, plugin: str, hook: str, message: str) -> None:
        """Report a message about a plugin to `on_failure`."""
        self._isolation.tell(plugin, hook, message)

    async def close(self, brought: Closable, what: str) -> None:
        """Close `brought`, a plugin's object; report a failure instead of raising the error."""
        try:
            with self.blaming(brought, what):
                await brought.aclose()
        except PluginError as error:
            self.tell(error.plugin, "aclose", str(error))

    def calling(self, tool: str) -> AbstractContextManager[None]:
        """Attribute the current task's work in a block to the tool with this id."""
        name = self.owners[tool].name if tool in self.owners else tool
        return self._isolation.stalls.running(Holder(name, f"tool {tool}"))

    def loading(self, plugin: str, what: str = "import") -> AbstractContextManager[None]:
        """Attribute a block's work to a plugin that is being loaded; `what` is the part loaded."""
        return self._isolation.loading(Holder(plugin, what))

    async def aclose(self) -> None:
        """End the work that plugins still do, after the hook `shutdown` has been called.

        A thread that hangs keeps running as a daemon.
        """
        for listener in self._listeners.values():
            await listener.aclose()
        await self._isolation.aclose()


def _insist(each: Implementation, reply: Reply) -> None:
    if reply.failure and each.required:
        raise RequiredHookError(each.plugin, f"the required hook {each.hook} {reply.failure}")


def _signed(each: Implementation, verdict: Verdict | None, session: object) -> Verdict | None:
    """Return a plugin's verdict with the plugin's name as its source.

    The reason also begins with the plugin's name, unless the plugin comes with Pegboard. If the
    verdict is that of a permission rule of the session, it is returned unchanged.
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
