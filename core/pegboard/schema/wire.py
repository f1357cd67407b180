"""The form of values: snake_case in Python, the protocol's camelCase with `ID` on the wire.

The structs use msgspec because they are imported at every start: 30 of them take 10 ms, while
pydantic takes 4 ms for one. A field with its default value is absent on the wire.
"""

from typing import Any

import msgspec

from pegboard.errors import InvalidInputError

_AROUND = 40
"""Characters of a string that an error shows before and after what is wrong with it."""


def wire_name(name: str) -> str:
    """Return the protocol's spelling of a field name, such as `sessionID` for `session_id`."""
    first, *rest = name.split("_")
    return first + "".join("ID" if word == "id" else word.capitalize() for word in rest)


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=wire_name):
    """The base of all protocol values, which sets their struct options; it has no fields."""


encode = msgspec.json.Encoder().encode
"""The wire form of any value of the schema, as UTF-8 JSON."""


def encode_text(text: str) -> bytes:
    """Encode a string in UTF-8.

    :raises InvalidInputError: when the string has no UTF-8 form, such as a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"cannot be stored: {not_utf8(error)}") from error


def encode_checked(value: object) -> bytes:
    """Encode a value to which plugins contribute, such as the metadata of a tool call.

    :raises InvalidInputError: when a part of it has no JSON form.
    """
    try:
        return encode(value)
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"cannot be stored: {not_utf8(error)}") from error
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError) as error:
        raise InvalidInputError(f"cannot be stored as JSON: {error}") from error


def check_json(value: object, what: str) -> None:
    """Reject a plugin's value that has no JSON form.

    :raises InvalidInputError: when it has none; the message names `what`, the value and the reason.
    """
    try:
        encode_checked(value)
    except InvalidInputError as error:
        from reprlib import repr as shortened  # only a mistake of a plugin needs it

        raise InvalidInputError(f"{what} {error}, in {shortened(value)}") from error


def not_utf8(error: UnicodeEncodeError) -> str:
    """Return an error message with the string that is not UTF-8, and what the user can do."""
    text = error.object[max(error.start - _AROUND, 0) : error.end + _AROUND]
    return f"{text!a} is not UTF-8; write it in UTF-8, or rename the file"


def to_json(value: object) -> Any:  # noqa: ANN401 - JSON leaves here
    """Convert a value to dicts, lists, strings and numbers in the protocol's form."""
    return msgspec.to_builtins(value)


class Rest(Wire, frozen=True, omit_defaults=False):
    """A `Wire` value that is sent with all fields, including fields with default values."""
