"""Read-only views of what plugins are handed, and plain values from what they answer.

Structs cannot be changed, but the dicts and lists in them can. A plugin gets them as
`ReadOnlyDict` and `ReadOnlyList`, which any reader and encoder takes for a dict and a list; so
no plugin can change what another, or the store, sees.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any, NoReturn, TypeGuard, TypeVar

import msgspec

from pegboard.contract.context import SessionView
from pegboard.providers import ModelMessage, ToolDefinition
from pegboard.schema.config import Agent, Config
from pegboard.schema.message import Turn
from pegboard.schema.model import Model

REMEMBERED = 4096
"""Values whose view is kept."""
HISTORIES = 16
"""Sessions whose turns are kept with their views: only what is new in one is looked at."""
_KEPT = frozenset({Turn, ToolDefinition, Agent, Config, Model})
"""What is handed out again and again as the same object."""

_T = TypeVar("_T")


def _refuse(*_arguments: object, **_named: object) -> NoReturn:
    raise TypeError("a hook's values are read-only: return a changed copy instead")


class ReadOnlyDict(dict[Any, Any]):
    """A dict that refuses to be changed; `dict(it)` is a copy whose own keys can be."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    pop = popitem = clear = setdefault = update = _refuse

    def __deepcopy__(self, _memo: dict[int, object]) -> object:
        return _mapped(self, _plain)

    def __reduce__(self) -> tuple[type, tuple[object]]:
        return dict, (dict(self),)


class ReadOnlyList(list[Any]):
    """A list that refuses to be changed; `list(it)` is a copy that can be."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = reverse = sort = _refuse

    def __deepcopy__(self, _memo: dict[int, object]) -> object:
        return _mapped(self, _plain)

    def __reduce__(self) -> tuple[type, tuple[object]]:
        return list, (list(self),)


_SCALARS = frozenset({str, int, float, bool, type(None)})
_AS_THEY_ARE = _SCALARS | {ReadOnlyDict, ReadOnlyList}


@dataclass(slots=True)
class _Seen:
    """The turns of a session as they were handed out last, and the turns by their views."""

    turns: tuple[Turn, ...] = ()
    views: tuple[Turn, ...] = ()
    values: dict[int, object] = field(default_factory=dict)


class ReadOnlyViews:
    """Makes views and takes them back.

    A turn, or what else is handed out often, is the very same object if it comes back unchanged.
    """

    def __init__(self) -> None:
        self._views: OrderedDict[int, tuple[object, object]] = OrderedDict()
        self._values: dict[int, object] = {}
        self._histories: OrderedDict[str, _Seen] = OrderedDict()
        self._session: tuple[SessionView, SessionView] | None = None

    def view(self, value: _T) -> _T:
        """The value with every dict and list in it read-only."""
        result: _T = self._view(value)
        return result

    def plain(self, value: _T) -> _T:
        """The value with dicts and lists of its own, which nobody else holds."""
        result: _T = self._plain(value)
        return result

    def _view(self, value: object) -> Any:  # noqa: ANN401 - as typed as what comes in
        if type(value) in _AS_THEY_ARE:
            return value
        if type(value) in _KEPT:
            return self._kept(value)
        if isinstance(value, SessionView):
            return self._session_view(value)
        if isinstance(value, Mapping):
            return ReadOnlyDict((key, self._view(item)) for key, item in value.items())
        if isinstance(value, list):
            return ReadOnlyList(self._view(item) for item in value)
        return self._turns_view(value) if _are_turns(value) else _mapped(value, self._view)

    def _session_view(self, session: SessionView) -> SessionView:
        """The view of a session, made once for all hooks and plugins of a step."""
        if self._session is None or self._session[0] is not session:
            self._session = (session, _mapped(session, self._view))
        return self._session[1]

    def _turns_view(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        seen = self._histories.setdefault(turns[0].info.session_id, _Seen())
        self._histories.move_to_end(turns[0].info.session_id)
        if len(self._histories) > HISTORIES:
            self._histories.popitem(last=False)
        same = list(map(is_, turns, seen.turns))
        common = same.index(False) if False in same else len(same)
        if common < len(turns) or common < len(seen.turns):
            for view in seen.views[common:]:
                seen.values.pop(id(view), None)
            views = [self._kept(turn) for turn in turns[common:]]
            for turn, view in zip(turns[common:], views, strict=True):
                seen.values[id(view)] = self._values.get(id(turn), turn)
            seen.turns, seen.views = turns, (*seen.views[:common], *views)
        return seen.views

    def _plain(self, value: object) -> Any:  # noqa: ANN401 - as typed as what comes in
        if type(value) in _SCALARS:
            return value
        if type(value) in _KEPT:
            kept = (self._values, *(seen.values for seen in self._histories.values()))
            for values in kept:
                if id(value) in values:
                    return values[id(value)]
        return _mapped(value, self._plain)

    def _kept(self, value: _T) -> _T:
        if id(value) in self._values:
            return value
        view: _T
        if (known := self._views.get(id(value))) is not None:
            self._views.move_to_end(id(value))
            _, view = known  # type: ignore[assignment]  # the value's own type
            return view
        view = _mapped(value, self._view)
        self._views[id(value)] = (value, view)
        self._values[id(view)] = value
        if len(self._views) > REMEMBERED:
            _, (_, oldest) = self._views.popitem(last=False)
            self._values.pop(id(oldest), None)
        return view


def _plain(value: object) -> object:
    return _mapped(value, _plain)


def _mapped(value: object, change: Callable[[object], object]) -> Any:  # noqa: ANN401 - as typed as what comes in
    """The value with `change` made to what is in it: the same object where nothing differs."""
    if isinstance(value, dict | Mapping):  # a dict is known for one at once
        return {key: change(item) for key, item in value.items()}
    if isinstance(value, list):
        return [change(item) for item in value]
    if isinstance(value, tuple) and not _is_history(value):
        items = tuple(change(item) for item in value)
        return value if all(map(_same, value, items)) else items
    if isinstance(value, msgspec.Struct):
        changes = _changes(value, value.__struct_fields__, change)
        return msgspec.structs.replace(value, **changes) if changes else value
    return value


def _are_turns(value: object) -> TypeGuard[tuple[Turn, ...]]:
    return isinstance(value, tuple) and bool(value) and type(value[0]) is Turn


def _is_history(value: tuple[object, ...]) -> bool:
    """A history passes as it is: no hook may change it here, and it may be long."""
    return bool(value) and isinstance(value[0], ModelMessage)


def _changes(
    value: object, names: Iterable[str], change: Callable[[object], object]
) -> dict[str, Any]:
    pairs = ((name, getattr(value, name)) for name in names)
    changed = {name: (item, change(item)) for name, item in pairs}
    return {name: after for name, (before, after) in changed.items() if before is not after}


def _same(before: object, after: object) -> bool:
    return before is after
