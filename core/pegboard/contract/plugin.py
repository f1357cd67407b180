"""The parts of a plugin: decorators for hooks, and its own name, options, folders and secrets."""

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
    """A plugin's answer to a hook; `key` distinguishes plugins with the same name."""

    plugin: str
    origin: Origin
    value: _T
    key: str = ""


class ImplMark(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `hookimpl` that describe one implementation of a hook."""

    timeout_s: float | None = None
    required: bool = False
    wrapper: bool = False
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    requires: Sequence[str] = ()


class ImplFacts(TypedDict, total=False):
    """The keyword arguments of `hookimpl` that Pegboard defines."""

    timeout_s: float | None
    required: bool
    wrapper: bool
    before: Sequence[str]
    after: Sequence[str]
    requires: Sequence[str]


When = Literal["open", "load", "run", "show"]
"""When a hook is called: at opening alone, at opening and each reload, in turns, by viewers."""


class HookFacts(TypedDict, total=False):
    """The arguments of `hookspec`, which `HookMark` describes."""

    subject: str
    check: Check | None
    raises: tuple[type[Exception], ...]
    limit_s: float | None
    when: When
    since: str


class HookMark(msgspec.Struct, frozen=True, kw_only=True):
    """What `hookspec` says about a hook in addition to its signature.

    `subject` is the argument that a fold replaces. `check` gets an answer of the annotated type,
    and for a fold also the value before; it returns the answer or raises `ValueError`. An error of
    a type in `raises` counts as the plugin's answer and not as its failure. `limit_s` replaces the
    configured time limit, in seconds. `since` is the version that introduced the hook.
    """

    kind: Kind
    subject: str = ""
    check: Check | None = None
    raises: tuple[type[Exception], ...] = ()
    limit_s: float | None = None
    when: When = "run"
    since: str = ""


def hookspec(kind: Kind, **facts: Unpack[HookFacts]) -> Callable[[_Function], _Function]:
    """Mark a function as the specification of a hook; the function's name is the hook's name.

    Its return annotation is the type of an answer. `HookMark` describes the other facts.
    """

    def mark(function: _Function) -> _Function:
        marked = _spec(function)
        marked.pegboard_hook = HookMark(kind=kind, **facts)  # type: ignore[attr-defined]  # read by `mark_of`
        return marked

    return mark


def mark_of(spec: Callable[..., Any]) -> HookMark:
    """Return what `hookspec` recorded about a hook.

    :raises TypeError: when the function is not the specification of a hook.
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
    """Mark a function as an implementation of a hook; the function's name is the hook's name.

    `tryfirst` and `trylast` make the hook call this implementation first or last. With
    `optionalhook` it is no error if the plugin that defines the hook is missing. A
    `required` implementation of a fold is never left out: when it fails or cannot be called, the
    operation ends with a `RequiredHookError`, even if the plugin is quarantined.

    `before`, `after` and `requires` are names of plugins: those that are asked later, those that
    are asked earlier, and those without which this one is left out.

    A `wrapper` is an async function around the whole of a fold, or of a hook whose first answer
    counts. It receives `call`: `await call()` returns the result of the other implementations, and
    `call(name=value)` changes their arguments.
    """
    said = ImplMark(**facts)

    def mark(function: _Function) -> _Function:
        marked = _impl(function, tryfirst=tryfirst, trylast=trylast, optionalhook=optionalhook)
        marked.pegboard_said = said  # type: ignore[attr-defined]  # read by `said_by`
        return marked

    return mark if function is None else mark(function)


def said_by(function: object) -> ImplMark:
    """Return what `hookimpl` recorded about an implementation, by default `ImplMark()`."""
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
    """The plugin whose code runs, as the hook argument `plugin` and as `context.plugin`."""

    @property
    def name(self) -> str:
        """The name of the plugin in the user's configuration."""
        ...

    @property
    def options(self) -> Any:  # noqa: ANN401 - of the class that the plugin declares
        """The user's `[plugins.NAME.options]`, in the class that the plugin declares.

        A plugin declares the class as its attribute `options`: a pydantic model, a msgspec struct
        or a dataclass. If it declares none, this is the table itself.
        """
        ...

    @property
    def data_dir(self) -> Path:
        """A private folder for data that must last; it is created at first access."""
        ...

    @property
    def cache_dir(self) -> Path:
        """A folder for data that can be rebuilt; it is created at first access."""
        ...

    @property
    def logger(self) -> "LoggerAdapter[Logger]":
        """A log whose lines have the plugin's name and no secrets."""
        ...

    @property
    def http(self) -> "Http":
        """The HTTP client that all plugins of the App share; the App closes it."""
        ...

    def secret(self, name: str) -> str | None:
        """Return the secret `name` that the user has set for the plugin, or None if not set.

        The environment variable `PEGBOARD_SECRET_PLUGIN_NAME` comes first, then the secret that is
        stored in the user's data folder.
        """
        ...


T = TypeVar("T")


class StashKey(Generic[T]):
    """A key of `Stash`; only the module that made the key can read its value.

    Make it once, at the top of a module: `_CACHE = StashKey[dict[str, int]]()`.
    """

    __slots__ = ()


class Stash:
    """Values that plugins keep in memory until the App closes.

    Nothing closes them: a plugin closes its own in `shutdown`.
    """

    def __init__(self) -> None:
        self._values: dict[StashKey[Any], Any] = {}

    def get(self, key: StashKey[T]) -> T | None:
        """Return the value that is stored under the key, or None without a value."""
        found: T | None = self._values.get(key)
        return found

    def setdefault(self, key: StashKey[T], make: Callable[[], T]) -> T:
        """Return the value that is stored under the key; if none is, store the result of `make`."""
        item: T = self._values[key] if key in self._values else self._values.setdefault(key, make())
        return item


def evolve(value: _T, /, **changes: Any) -> _T:  # noqa: ANN401 - as typed as the fields
    """Return a copy of the value with these fields changed.

    The value can be a turn, a part, a request, a configuration or anything else that hooks receive,
    and also a frozen dataclass of your own.

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
    """Return the names of the fields of a struct or dataclass, given as a class or an instance.

    :raises TypeError: when it is neither.
    """
    fields: tuple[str, ...] | None = getattr(value, "__struct_fields__", None)
    if fields is not None:
        return fields
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    raise TypeError(f"{type(value).__name__} is no struct and no dataclass: it has no fields")
