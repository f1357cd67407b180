"""Deprecated names and functions, which warn when a program uses them."""

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class PegboardDeprecationWarning(DeprecationWarning):
    """The warning about a name that a later release removes."""


def warn_of(name: str, goes_in: str, instead: str, *, level: int = 3) -> None:
    """Warn at the code that is `level` calls up; Python shows each location once."""
    text = f"{name} goes in Pegboard {goes_in}: use {instead}"
    warnings.warn(text, PegboardDeprecationWarning, stacklevel=level)


def deprecated(goes_in: str, *, instead: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Return a decorator for a function that will be removed in the release `goes_in`."""

    def marked(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @functools.wraps(function)
        def warned(*args: _P.args, **named: _P.kwargs) -> _T:
            warn_of(function.__qualname__, goes_in, instead)
            return function(*args, **named)

        warned.__deprecated__ = f"use {instead}"  # type: ignore[attr-defined]
        return warned

    return marked
