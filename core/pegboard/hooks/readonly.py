"""Read-only views of the values that plugins receive, and plain copies of what plugins return.

Structs are immutable, but the dicts and lists in them are not. A plugin receives these as
`ReadOnlyDict` and `ReadOnlyList`, subclasses of dict and list. Thus no plugin can change a value
that another plugin or the store uses.
"""

from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from operator import is_
from typing import Any, NoReturn
from weakref import ReferenceType, ref

import msgspec
from msgspec.structs import astuple

from pegboard.contract.context import SessionView
from pegboard.providers import ModelMessage, ToolDefinition
from pegboard.schema.config import Agent, Config
from pegboard.schema.message import Turn
from pegboard.schema.model import Model

_KEPT = frozenset({Turn, SessionView, ToolDefinition, Agent, Config, Model})
"""What is handed out again and again as the same object."""


def _refuse(*_arguments: object, **_named: object) -> NoReturn:
    raise TypeError("a hook's values are read-only: return a changed copy instead")


class ReadOnlyDict(dict[Any, Any]):
    """A dict that cannot be changed; `dict(view)` is a mutable copy."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    pop = popitem = clear = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[object]]:
        return dict, (dict(self),)


class ReadOnlyList(list[Any]):
    """A list that cannot be changed; `list(view)` is a mutable copy."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = reverse = sort = _refuse

    def __reduce__(self) -> tuple[type, tuple[object]]:
        return list, (list(self),)


_SCALARS = frozenset({str, int, float, bool, type(None)})
_AS_THEY_ARE = _SCALARS | {ReadOnlyDict, ReadOnlyList}


class ReadOnlyViews:
    """The maker of read-only views, which also turns views back into plain values.

    A value that plugins receive often, such as a turn, keeps the same view. If a plugin returns the
    view, it is replaced by the original object.
    """

    def __init__(self) -> None:
        self._views: dict[int, object] = {}
        self._values: dict[int, ReferenceType[object]] = {}
        self._last: dict[type, tuple[tuple[object, ...], tuple[object, ...]]] = {}
        self._newest: dict[type, tuple[object, object]] = {}

    def given(self, value: object) -> Any:  # noqa: ANN401 - as typed as what comes in
        """Return the read-only view of an argument; plugins given the same value share it."""
        kind: type = type(value)
        if (form := _form(kind)) is not msgspec.Struct:
            return value if form is object else self.view(value)
        if (known := self._newest.get(kind)) is None or known[0] is not value:
            known = self._newest[kind] = value, self.view(value)
        return known[1]

    def view(self, value: Any) -> Any:  # noqa: ANN401 - as typed as what comes in
        """Return the value with every dict and list inside the value made read-only."""
        kind: type = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind in _KEPT:
            return self._view(value)
        form = _form(kind)
        if form is Mapping:
            return ReadOnlyDict(_mapped(value, self.view))
        if form is list:
            return ReadOnlyList(map(self.view, value))
        if form is tuple and value and type(value[0]) in _KEPT:
            return self._series(value)
        return _mapped(value, self.view)

    def _series(self, values: tuple[object, ...]) -> tuple[object, ...]:
        """Return read-only views of a tuple of turns or tools.

        The views from the last call are used again for the items that both tuples begin with.
        """
        last, views = self._last.get(kind := type(values[0]), ((), ()))
        if values is not last:
            same = [*map(is_, last, values), False].index(False)
            views = (*views[:same], *map(self._view, values[same:]))
            if self._values.keys().isdisjoint(map(id, values[same:])):  # none is itself a view
                self._last[kind] = values, views
        return views

    def plain(self, value: object) -> Any:  # noqa: ANN401 - as typed as what comes in
        """Return the value with every read-only dict and list in it replaced by a plain one."""
        if type(value) in _SCALARS:
            return value
        if (known := self._values.get(id(value))) and (found := known()) is not None:
            return found
        for series, views in self._last.values():
            if value is views:
                return series
        return _mapped(value, self.plain)

    def _view(self, value: object) -> object:
        if (key := id(value)) in self._values:
            return value
        if (view := self._views.get(key)) is None:
            view = self._views[key] = copy(_mapped(value, self.view))
            self._values[id(view)] = ref(value, lambda _: self._forget(key))
        return view

    def _forget(self, key: int) -> None:
        del self._values[id(self._views.pop(key))]


@cache
def _form(kind: type) -> type:
    """Return the base class that decides how a value is made read-only; `object` for scalars.

    The base classes are Mapping, list, tuple and Struct.
    """
    forms = (form for form in (Mapping, list, tuple, msgspec.Struct) if issubclass(kind, form))
    return next(forms, object)


def _mapped(value: Any, change: Callable[[object], object]) -> Any:  # noqa: ANN401 - as typed as what comes in
    """Apply `change` to the items of a value; return the same object if nothing differs."""
    kind: type = type(value)
    form = _form(kind)
    if form is Mapping:
        pairs = value.items()
        return {key: each if type(each) in _SCALARS else change(each) for key, each in pairs}
    if form is list:
        return [change(item) for item in value]
    # A history may be long, and hooks cannot change it here.
    if form is tuple and not (value and isinstance(value[0], ModelMessage)):
        items = tuple([each if type(each) in _SCALARS else change(each) for each in value])
        return value if all(map(is_, value, items)) else items
    if form is msgspec.Struct:
        changes = {}
        for name, before in zip(value.__struct_fields__, astuple(value), strict=True):
            if type(before) not in _SCALARS and (after := change(before)) is not before:
                changes[name] = after
        return msgspec.structs.replace(value, **changes) if changes else value
    return value
