"""Frozen values that change by becoming another."""

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from pegboard.kit.suggestions import nearest_names

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
