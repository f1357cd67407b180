"""The JSON text of values that functions return."""

import dataclasses
from typing import Any

import msgspec


def json_text(value: object) -> str:
    """Return a dictionary, list, tuple, dataclass, msgspec struct or pydantic model as JSON.

    :raises TypeError: for any other value, and for a value without a JSON form.
    """
    if not (
        isinstance(value, dict | list | tuple | msgspec.Struct)
        or hasattr(type(value), "model_dump")
        or (dataclasses.is_dataclass(value) and not isinstance(value, type))
    ):
        raise TypeError(type(value).__name__)
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except (ValueError, OverflowError, RecursionError) as error:
        raise TypeError(f"a {type(value).__name__} that is no JSON ({error})") from error


def _plain(value: Any) -> object:  # noqa: ANN401 - what msgspec does not know
    """Return the fields of a pydantic model, without importing pydantic."""
    if not hasattr(type(value), "model_dump"):
        raise TypeError(f"a {type(value).__name__} in it")
    return value.model_dump(mode="json")
