"""The options of a plugin as the class that it declares, or what is wrong with them."""

import dataclasses
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from pegboard.contract.values import field_names
from pegboard.kit.suggestions import nearest_names
from pegboard.loading.discovery import LoadFailure, attempt

DECLARED = "options"
"""The attribute of a plugin that declares the class of its options."""


class Flaw(msgspec.Struct, frozen=True):
    """What is wrong with an option: its dotted key in the options, and why, on one line."""

    key: str
    text: str


class Judged(NamedTuple):
    """The options as the class that the plugin declares, and what is wrong with them.

    Where something is wrong, `value` has no use.
    """

    model: type | None
    value: object
    flaws: tuple[Flaw, ...]


def options_of(plugin: object, table: Mapping[str, Any]) -> Judged:
    """The options of a plugin whose settings are this table; its own code may fail in it."""
    found = attempt(lambda: _judged(declared(plugin), table))
    if isinstance(found, LoadFailure):
        return Judged(None, None, (Flaw("", found.text),))
    return found


def declared(plugin: object) -> type | None:
    """The class of the plugin's options, None where it declares none."""
    model = getattr(plugin, DECLARED, None)
    if not isinstance(model, type):
        return None
    is_model = issubclass(model, msgspec.Struct) or dataclasses.is_dataclass(model)
    return model if is_model or _is_pydantic(model) else None


def _judged(model: type | None, table: Mapping[str, Any]) -> Judged:
    if model is None:
        return Judged(None, MappingProxyType(table), ())
    unknown = tuple(_unknown(model, table))
    known = {name: value for name, value in table.items() if name in names_of(model)}
    make = _with_pydantic if _is_pydantic(model) else _with_msgspec
    options, flaws = make(model, known)
    return Judged(model, options, (*unknown, *flaws))


def names_of(model: type) -> tuple[str, ...]:
    """The names by which the options can be set."""
    if _is_pydantic(model):
        fields: Mapping[str, Any] = model.model_fields  # type: ignore[attr-defined]  # pydantic's
        return tuple(field.alias or name for name, field in fields.items())
    if issubclass(model, msgspec.Struct):
        return model.__struct_encode_fields__
    return field_names(model)


def _unknown(model: type, table: Mapping[str, Any]) -> Iterator[Flaw]:
    known = names_of(model)
    for name in table:
        if name not in known:
            nearest = nearest_names(name, known, limit=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(known)}"
            yield Flaw(name, f"unknown option; {hint}")


def _is_pydantic(model: type) -> bool:
    return hasattr(model, "model_validate") and hasattr(model, "model_fields")


def _with_msgspec(model: type, table: Mapping[str, Any]) -> tuple[object, tuple[Flaw, ...]]:
    try:
        return msgspec.convert(table, model), ()
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `")
        return None, (Flaw(path.rstrip("`").lstrip("$").lstrip("."), text),)


def _with_pydantic(model: Any, table: Mapping[str, Any]) -> tuple[object, tuple[Flaw, ...]]:  # noqa: ANN401 - pydantic is not loaded here
    from pydantic import ValidationError

    try:
        return model.model_validate(table), ()
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return None, tuple(
            Flaw(".".join(map(str, each["loc"])), str(each["msg"])) for each in found
        )
