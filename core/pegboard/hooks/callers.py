"""The callers of hooks, one for each kind: a call is typed by the hook's own specification.

`await hooks.fold(hookspecs.text_complete, session=..., part=..., text=...)` asks every plugin.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ParamSpec, Protocol, TypeVar

from pegboard.contract import hookspecs
from pegboard.contract.plugin import Answer, Plugin, mark_of
from pegboard.errors import PluginError
from pegboard.hooks.checks import check_of
from pegboard.hooks.dispatch import Dispatch, FoldStep
from pegboard.hooks.health import Timing, blaming
from pegboard.hooks.isolation import Implementation
from pegboard.hooks.stalls import Holder
from pegboard.schema.event import PluginFailed
from pegboard.schema.session import Verdict

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Closable(Protocol):
    """What is open until it is closed."""

    async def aclose(self) -> None:
        """Close it."""
        ...


class Hooks:
    """The hooks of one App.

    `implementations` are given oldest plugin first. `on_failure` hears of every plugin that
    raises, hangs or answers with the wrong type; it must not raise.
    """

    def __init__(
        self,
        implementations: Mapping[str, Sequence[Implementation]],
        *,
        on_failure: Callable[[PluginFailed], None],
    ) -> None:
        self._dispatch = Dispatch(implementations, on_failure=on_failure)
        self._on_failure = on_failure
        self._owners: Mapping[str, Plugin] = {}
        self._bringers: dict[int, tuple[object, str]] = {}

    def has(self, spec: Callable[..., object]) -> bool:
        """Whether any plugin implements the hook."""
        return bool(self._dispatch.implementations(spec.__name__))

    async def collect(
        self, spec: Callable[_P, Sequence[_T] | None], /, *_: _P.args, **named: _P.kwargs
    ) -> tuple[Answer[_T], ...]:
        """The items of all answers in one row, oldest plugin first, each with its plugin."""
        found = await self._dispatch.collect(spec.__name__, named, _unary(spec))
        for answer in found:
            self._bringers.update((id(item), (item, answer.plugin)) for item in answer.value)
        return tuple(
            Answer(answer.plugin, answer.origin, item, answer.key)
            for answer in found
            for item in answer.value
        )

    async def tables(
        self, spec: Callable[_P, Mapping[str, _T] | None], /, *_: _P.args, **named: _P.kwargs
    ) -> Mapping[str, _T]:
        """The entries of all answers in one table; the newest plugin's entry counts."""
        found = await self._dispatch.collect(spec.__name__, named, _unary(spec))
        for answer in found:
            entries = answer.value.values()
            self._bringers.update((id(entry), (entry, answer.plugin)) for entry in entries)
        return {name: entry for answer in found for name, entry in answer.value.items()}

    async def fold(self, spec: Callable[_P, _T | None], /, *_: _P.args, **named: _P.kwargs) -> _T:
        """The subject as the newest plugin left it.

        :raises Exception: what the hook's specification says that a plugin may raise.
        :raises RequiredHookError: when an implementation that is required fails.
        """
        mark = mark_of(spec)
        check: Callable[[object, _T], _T] = check_of(spec)  # type: ignore[assignment]  # by its annotation
        return await self._dispatch.fold(
            spec.__name__, mark.subject, named, check, passing=mark.raises
        )

    async def first(
        self, spec: Callable[_P, _T | None], /, *_: _P.args, **named: _P.kwargs
    ) -> _T | None:
        """The answer of the newest plugin that has one."""
        return await self._dispatch.first(spec.__name__, named, _unary(spec))

    async def strictest(
        self, spec: Callable[_P, Verdict | None], /, *_: _P.args, **named: _P.kwargs
    ) -> Verdict | None:
        """The strictest opinion, None when nobody has one."""
        return await self._dispatch.strictest(spec.__name__, named, _unary(spec))

    async def opinions(
        self, spec: Callable[_P, Verdict | None], /, *_: _P.args, **named: _P.kwargs
    ) -> tuple[Answer[Verdict], ...]:
        """What each plugin that has an opinion says, oldest plugin first."""
        return await self._dispatch.opinions(spec.__name__, named, _unary(spec))

    def notify(self, spec: Callable[_P, None], /, *_: _P.args, **named: _P.kwargs) -> None:
        """Queue the news for every plugin that listens; it never blocks."""
        self._dispatch.notify(spec.__name__, named)

    async def notify_last(
        self, spec: Callable[_P, None], /, *_: _P.args, **named: _P.kwargs
    ) -> None:
        """Let all plugins hear what still waits for them, then this, within their limits."""
        await self._dispatch.notify_last(spec.__name__, named)

    def quarantined(self, key: str) -> tuple[str, ...]:
        """The hooks of the plugin with this key that are no longer called."""
        return self._dispatch.quarantined(key)

    def failed(self, spec: Callable[..., object]) -> tuple[str, ...]:
        """The keys of the plugins whose implementation has failed, or could not be called."""
        return self._dispatch.failed(spec.__name__)

    def order(self, hook: str) -> tuple[str, ...]:
        """The plugins that have the hook, in the order in which they are asked."""
        spec = getattr(hookspecs, hook, None)
        newest_first = spec is not None and mark_of(spec).kind == "first"
        return tuple(each.plugin for each in self._dispatch.order(hook, newest_first=newest_first))

    def timings(self) -> tuple[Timing, ...]:
        """What each implementation has cost until this moment; `plugin` is a plugin's key."""
        return self._dispatch.timings()

    def record(self, record: Callable[[FoldStep], None]) -> None:
        """Tell what each plugin makes of a fold from here on; `record` must not raise."""
        self._dispatch.record(record)

    def set_owners(self, owners: Mapping[str, Plugin]) -> None:
        """Say which plugin each tool is of, by the tool's id."""
        self._owners = owners

    def owner(self, tool: str) -> Plugin:
        """The plugin that the tool of this id is of."""
        return self._owners[tool]

    def blaming(
        self, brought: object, what: str, *, passing: tuple[type[Exception], ...] = ()
    ) -> AbstractContextManager[None]:
        """A block that runs code of what a plugin has brought: its errors are told as the plugin's.

        `what` names the thing, as "the provider house"; errors of the types `passing` are left.
        """
        _, plugin = self._bringers.get(id(brought), (None, type(brought).__name__))
        return blaming(plugin, what, passing=passing)

    def tell(self, plugin: str, hook: str, message: str) -> None:
        """Tell of something about a plugin as of its failures."""
        self._dispatch.isolation.tell(plugin, hook, message)

    def only(self, keys: Collection[str]) -> "Hooks":
        """Callers of the plugins with these keys alone, for what others were asked already."""
        some = Hooks(self._dispatch.of_plugins(keys), on_failure=self._on_failure)
        some._bringers = self._bringers
        return some

    def replace(self, implementations: Mapping[str, Sequence[Implementation]]) -> None:
        """Call these from here on; what is under way goes on."""
        self._dispatch.replace(implementations)

    async def close(self, brought: Closable, what: str) -> None:
        """Close what a plugin has brought; that it fails is told, and keeps nobody from closing."""
        try:
            with self.blaming(brought, what):
                await brought.aclose()
        except PluginError as error:
            self._dispatch.isolation.tell(error.plugin, "aclose", str(error))

    def calling(self, tool: str) -> AbstractContextManager[None]:
        """While this lasts, what the current task does is done by the tool of this id."""
        name = self._owners[tool].name if tool in self._owners else tool
        holder = Holder(name, f"tool {tool}")
        return self._dispatch.isolation.stalls.running(asyncio.current_task(), holder)

    def loading(self, plugin: str, what: str = "import") -> AbstractContextManager[None]:
        """While this lasts, what the current task does is done by a plugin that is loaded."""
        return self._dispatch.isolation.loading(Holder(plugin, what))

    async def aclose(self) -> None:
        """End what plugins still do; called after `shutdown`."""
        await self._dispatch.aclose()


def _unary(spec: Callable[..., _T | None]) -> Callable[[object], _T]:
    """The check of answers that replace nothing."""
    check = check_of(spec)
    return lambda answer: check(answer, None)  # type: ignore[return-value]  # by its annotation
