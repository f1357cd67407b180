"""The marks of hooks: that a function specifies one, or implements one."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

import pluggy

PROJECT = "pegboard"
Kind = Literal["collect", "fold", "first", "strictest", "notify"]

_spec = pluggy.HookspecMarker(PROJECT)
_impl = pluggy.HookimplMarker(PROJECT)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def hookspec(kind: Kind, *, subject: str = "") -> Callable[[_Function], _Function]:
    """Marks a specification with its kind; `subject` is the argument that a fold replaces."""

    def mark(function: _Function) -> _Function:
        marked = _spec(function)
        marked.pegboard_kind = kind  # type: ignore[attr-defined]  # read back by `kinds()`
        marked.pegboard_subject = subject  # type: ignore[attr-defined]  # read back by `kinds()`
        return marked

    return mark


@overload
def hookimpl(function: _Function) -> _Function: ...
@overload
def hookimpl(
    *, tryfirst: bool = ..., trylast: bool = ..., timeout_s: float | None = ...
) -> Callable[[_Function], _Function]: ...


def hookimpl(
    function: Callable[..., Any] | None = None,
    *,
    tryfirst: bool = False,
    trylast: bool = False,
    timeout_s: float | None = None,
) -> Any:
    """Marks a function as an implementation of the hook that it is named after.

    `tryfirst` and `trylast` move it to the end of the order that its kind asks first or last.
    """

    def mark(function: _Function) -> _Function:
        marked = _impl(function, tryfirst=tryfirst, trylast=trylast)
        marked.pegboard_timeout_s = timeout_s  # type: ignore[attr-defined]  # read by dispatch
        return marked

    return mark if function is None else mark(function)
