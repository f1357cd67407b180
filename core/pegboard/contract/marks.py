"""The marks of hooks: that a function specifies one, or implements one."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

import msgspec
import pluggy

PROJECT = "pegboard"
Origin = Literal["builtin", "installed", "user", "project", "embedded"]
Kind = Literal["collect", "fold", "first", "strictest", "notify"]

Check = Callable[[object, object], object]
"""Gives back an answer that can be used, or raises; a fold's check gets the value before, too."""

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
    """What an implementation says of itself, as `hookimpl` is told."""

    timeout_s: float | None = None
    required: bool = False
    wrapper: bool = False
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    requires: Sequence[str] = ()


class ImplFacts(TypedDict, total=False):
    """What `hookimpl` can be told of an implementation, beside what pluggy has for it."""

    timeout_s: float | None
    required: bool
    wrapper: bool
    before: Sequence[str]
    after: Sequence[str]
    requires: Sequence[str]


class HookMark(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook's specification says of it, beside its signature.

    `subject` is the argument that a fold replaces. `check` looks at answers where their type
    does not say enough. Errors of the types `raises` are a plugin's answer, no failure of it.
    `limit_s` is the time limit of a call in place of the configuration's.
    """

    kind: Kind
    subject: str = ""
    check: Check | None = None
    raises: tuple[type[Exception], ...] = ()
    limit_s: float | None = None


def hookspec(
    kind: Kind,
    *,
    subject: str = "",
    check: Check | None = None,
    raises: tuple[type[Exception], ...] = (),
    limit_s: float | None = None,
) -> Callable[[_Function], _Function]:
    """Marks a function as the specification of the hook that it names.

    Its annotation says what an answer must be; `check` is asked in its place. The rest is told
    at `HookMark`.
    """

    def mark(function: _Function) -> _Function:
        marked = _spec(function)
        said = HookMark(kind=kind, subject=subject, check=check, raises=raises, limit_s=limit_s)
        marked.pegboard_hook = said  # type: ignore[attr-defined]  # read by `mark_of`
        return marked

    return mark


def mark_of(spec: Callable[..., Any]) -> HookMark:
    """The mark of a specification.

    :raises TypeError: when the function is none.
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
    """Marks a function as an implementation of the hook that it is named after.

    `tryfirst` and `trylast` move it to the end of the order that its kind asks first or last.
    With `optionalhook` it is no error if the plugin that brings the hook is not there. A fold that
    is `required` is never left out: when it fails, or cannot be called, what it was asked about
    ends with a `RequiredHookError`, and so it stays once it is quarantined.

    `before`, `after` and `requires` are names of plugins: those that are asked later, those that
    are asked earlier, and those without which this one is left out. A `wrapper` is an async
    function around the whole of a fold, or of a hook whose first answer counts: `await call()`, its
    argument, gives what the others come to, with `call(name=value)` about other arguments.
    """
    said = ImplMark(**facts)

    def mark(function: _Function) -> _Function:
        marked = _impl(function, tryfirst=tryfirst, trylast=trylast, optionalhook=optionalhook)
        marked.pegboard_said = said  # type: ignore[attr-defined]  # read by `said_by`
        return marked

    return mark if function is None else mark(function)


def said_by(function: object) -> ImplMark:
    """What an implementation says of itself; nothing, where pluggy's own mark is on it."""
    said: ImplMark = getattr(function, "pegboard_said", ImplMark())
    return said
