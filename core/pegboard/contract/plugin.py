"""The parts of a plugin: marked functions that implement or specify hooks, and its own facts."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

import msgspec
import pluggy

from pegboard.kit.suggestions import did_you_mean

PROJECT = "pegboard"
Origin = Literal["builtin", "installed", "user", "project", "embedded"]
Kind = Literal["collect", "fold", "first", "strictest", "notify"]

Check = Callable[[Any, Any], object]
"""A function of an answer and, for a fold, the value before: the usable answer, or an error."""

_spec = pluggy.HookspecMarker(PROJECT)
_impl = pluggy.HookimplMarker(PROJECT)
_Function = TypeVar("_Function", bound=Callable[..., Any])
_T = TypeVar("_T")


class Answer(msgspec.Struct, Generic[_T], frozen=True):
    """One answer with the plugin that gave it; `key` tells plugins of one name apart."""

    plugin: str
    origin: Origin
    value: _T
    key: str = ""


class ImplMark(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of an implementation, as passed to `hookimpl`."""

    timeout_s: float | None = None
    required: bool = False
    wrapper: bool = False
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    requires: Sequence[str] = ()


class ImplFacts(TypedDict, total=False):
    """The facts that `hookimpl` takes in addition to those of pluggy."""

    timeout_s: float | None
    required: bool
    wrapper: bool
    before: Sequence[str]
    after: Sequence[str]
    requires: Sequence[str]


When = Literal["open", "load", "run", "show"]
"""When a hook is called: at opening alone, at opening and each reload, in turns, by viewers."""


class HookFacts(TypedDict, total=False):
    """The facts about a hook that `hookspec` takes, each described at `HookMark`."""

    subject: str
    check: Check | None
    raises: tuple[type[Exception], ...]
    limit_s: float | None
    when: When
    since: str


class HookMark(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a hook that its signature does not have.

    `subject` is the argument that a fold replaces. `check` gets an answer that has the annotated
    type, and for a fold the value before; it returns the answer or raises `ValueError`. An error
    of a type in `raises` is an answer of the plugin, not a failure. `limit_s` replaces the
    configured time limit, in seconds. `since` is the version that the hook came with.
    """

    kind: Kind
    subject: str = ""
    check: Check | None = None
    raises: tuple[type[Exception], ...] = ()
    limit_s: float | None = None
    when: When = "run"
    since: str = ""


def hookspec(kind: Kind, **facts: Unpack[HookFacts]) -> Callable[[_Function], _Function]:
    """Mark a function as the specification of the hook with its name.

    The return annotation is the type of an answer. The other facts are those of `HookMark`.
    """

    def mark(function: _Function) -> _Function:
        marked = _spec(function)
        marked.pegboard_hook = HookMark(kind=kind, **facts)  # type: ignore[attr-defined]  # read by `mark_of`
        return marked

    return mark


def mark_of(spec: Callable[..., Any]) -> HookMark:
    """Return the mark of a hook's specification.

    :raises TypeError: when the function is not a specification.
    """
    mark = getattr(spec, "pegboard_hook", None)
    if not isinstance(mark, HookMark):
        raise TypeError(f"{spec!r} is no hook: mark its specification with @hookspec")
    return mark


@overload
def hookimpl(function: _Function) -> _Function: ...
@overload
def hookimpl(
    *,
    tryfirst: bool = ...,
    trylast: bool = ...,
    optionalhook: bool = ...,
    **facts: Unpack[ImplFacts],
) -> Callable[[_Function], _Function]: ...


def hookimpl(
    function: Callable[..., Any] | None = None,
    *,
    tryfirst: bool = False,
    trylast: bool = False,
    optionalhook: bool = False,
    **facts: Unpack[ImplFacts],
) -> Any:
    """Mark a function as an implementation of the hook with its name.

    `tryfirst` and `trylast` move it to the end of the order that its kind asks first or last.
    With `optionalhook` it is no error if the plugin that defines the hook is missing. A fold that
    is `required` is never left out: when it fails, or cannot be called, its subject ends with a
    `RequiredHookError`, also after it is quarantined.

    `before`, `after` and `requires` are names of plugins: those that are asked later, those that
    are asked earlier, and those without which this one is left out. A `wrapper` is an async
    function around the whole of a fold, or of a hook whose first answer counts: `await call()`, its
    argument, returns the result of the others, and `call(name=value)` changes their arguments.
    """
    said = ImplMark(**facts)

    def mark(function: _Function) -> _Function:
        marked = _impl(function, tryfirst=tryfirst, trylast=trylast, optionalhook=optionalhook)
        marked.pegboard_said = said  # type: ignore[attr-defined]  # read by `said_by`
        return marked

    return mark if function is None else mark(function)


def said_by(function: object) -> ImplMark:
    """Return the marks of an implementation; the defaults if it has only pluggy's mark."""
    said: ImplMark = getattr(function, "pegboard_said", ImplMark())
    return said


if TYPE_CHECKING:
    from logging import Logger, LoggerAdapter

    from pegboard.kit.pluginhttp import Http

Secret = Annotated[str, msgspec.Meta(extra={"secret": True})]
"""The type of a secret option: it is masked wherever settings are displayed or logged.

pydantic's `SecretStr` is one, too, and a dataclass' `field(metadata={"secret": True})`.
"""


class Plugin(Protocol):
    """The plugin whose code runs: the argument `plugin` of a hook, `context.plugin` of a tool."""

    @property
    def name(self) -> str:
        """The plugin's name in the user's configuration."""
        ...

    @property
    def options(self) -> Any:  # noqa: ANN401 - of the class that the plugin declares
        """The user's `[plugins.NAME.options]`, as the class that the plugin declares.

        A plugin declares it as its attribute `options`: a pydantic model, a msgspec struct or a
        dataclass. Without one it is the table itself.
        """
        ...

    @property
    def data_dir(self) -> Path:
        """A folder for data that must last, private to the user; created at first access."""
        ...

    @property
    def cache_dir(self) -> Path:
        """A folder for data that can be rebuilt; created at first access."""
        ...

    @property
    def logger(self) -> "LoggerAdapter[Logger]":
        """A log whose lines have the plugin's name; secrets are left out of them."""
        ...

    @property
    def http(self) -> "Http":
        """An HTTP client that all plugins of the App share; the App closes it."""
        ...

    def secret(self, name: str) -> str | None:
        """Return a secret that the user has set for the plugin, None if there is none.

        It is `PEGBOARD_SECRET_PLUGIN_NAME` of the environment, else the one in the user's data
        folder.
        """
        ...


T = TypeVar("T")


class StashKey(Generic[T]):
    """A key of `Stash` that no other module can name: only its owner reads the value.

    Made once, at a module's top: `_CACHE = StashKey[dict[str, int]]()`.
    """

    __slots__ = ()


class Stash:
    """Values of plugins, gone with the App; what must be closed is closed in `shutdown`."""

    def __init__(self) -> None:
        self._values: dict[StashKey[Any], Any] = {}

    def get(self, key: StashKey[T]) -> T | None:
        """Return the value, None if there is none."""
        found: T | None = self._values.get(key)
        return found

    def setdefault(self, key: StashKey[T], make: Callable[[], T]) -> T:
        """Return the value, after storing that of `make` if there is none."""
        item: T = self._values[key] if key in self._values else self._values.setdefault(key, make())
        return item


def evolve(value: _T, /, **changes: Any) -> _T:  # noqa: ANN401 - as typed as the fields
    """Return a copy of the value with these fields changed.

    It may be a turn, a part, a request, a configuration or any other value that hooks receive,
    and a frozen dataclass of your own.

    :raises TypeError: for an unknown field, with the nearest name, and for a value without fields.
    """
    for name in changes:
        if name not in (fields := field_names(value)):
            hint = did_you_mean(name, fields, f" (it has {', '.join(fields)})")
            raise TypeError(f"{type(value).__name__} has no field {name}{hint}")
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]  # `field_names` has looked


def field_names(value: object) -> tuple[str, ...]:
    """Return the names of the fields of a struct or dataclass, or of a class of them.

    :raises TypeError: when it is neither.
    """
    fields: tuple[str, ...] | None = getattr(value, "__struct_fields__", None)
    if fields is not None:
        return fields
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    raise TypeError(f"{type(value).__name__} is no struct and no dataclass: it has no fields")
