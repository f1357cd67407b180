"""What a plugin has of its own: options, places, log, secrets, memory; and `evolve` for values."""

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

import msgspec

from pegboard.kit.suggestions import nearest_names

if TYPE_CHECKING:
    from logging import Logger, LoggerAdapter

    import httpx

Secret = Annotated[str, msgspec.Meta(extra={"secret": True})]
"""The type of an option that nobody may see: it is masked wherever settings are shown or logged.

pydantic's `SecretStr` is one, too, and a dataclass' `field(metadata={"secret": True})`.
"""


class Plugin(Protocol):
    """The plugin whose code runs: the argument `plugin` of a hook, `context.plugin` of a tool."""

    @property
    def name(self) -> str:
        """Its name, as the user's configuration has it."""
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
        """A folder for what must stay, private to the user; it is made when it is asked for."""
        ...

    @property
    def cache_dir(self) -> Path:
        """A folder for what can be made again; it is made when it is asked for."""
        ...

    @property
    def logger(self) -> "LoggerAdapter[Logger]":
        """A log whose lines have the plugin's name; secrets are left out of them."""
        ...

    @property
    def http(self) -> "httpx.AsyncClient":
        """An HTTP client that all plugins of the App share; the App closes it."""
        ...

    def secret(self, name: str) -> str | None:
        """A secret that the user has set for the plugin, None if there is none.

        It is `PEGBOARD_SECRET_PLUGIN_NAME` of the environment, else what is stored in the user's
        data folder.
        """
        ...


T = TypeVar("T")


class StashKey(Generic[T]):
    """A key that is its own name: only who has the object gets at the value.

    Made once, at a module's top: `_CACHE = StashKey[dict[str, int]]()`.
    """

    __slots__ = ()


class Stash:
    """Values of plugins, gone with the App; what must be closed is closed in `shutdown`."""

    def __init__(self) -> None:
        self._values: dict[StashKey[Any], Any] = {}

    def get(self, key: StashKey[T]) -> T | None:
        """The value, None if there is none."""
        found: T | None = self._values.get(key)
        return found

    def setdefault(self, key: StashKey[T], make: Callable[[], T]) -> T:
        """The value; what `make` gives, where there is none yet."""
        if key not in self._values:
            self._values[key] = make()
        found: T = self._values[key]
        return found


_T = TypeVar("_T")


def evolve(value: _T, /, **changes: Any) -> _T:  # noqa: ANN401 - as typed as the fields
    """The value with these fields changed; the value itself stays as it is.

    It may be a turn, a part, a request, a configuration or any other value that hooks are handed,
    and a frozen dataclass of your own.

    :raises TypeError: for a field that it does not have, with the nearest name, and for what has no
        fields.
    """
    for name in changes:
        if name not in (fields := field_names(value)):
            raise TypeError(f"{type(value).__name__} has no field {name}{_hint(name, fields)}")
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]  # `field_names` has looked


def field_names(value: object) -> tuple[str, ...]:
    """The names of the fields of a struct or dataclass, or of a class of them.

    :raises TypeError: when it is neither.
    """
    if isinstance(value, msgspec.Struct) or _is_struct_class(value):
        return tuple(value.__struct_fields__)  # type: ignore[attr-defined]  # of a struct
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    raise TypeError(f"{type(value).__name__} is no struct and no dataclass: it has no fields")


def _is_struct_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct)


def _hint(name: str, fields: Iterable[str]) -> str:
    known = tuple(fields)
    nearest = nearest_names(name, known, limit=1)
    return f"; did you mean {nearest[0]}?" if nearest else f" (it has {', '.join(known)})"
