"""The extra fields that mark unknown values in JSON where the protocol requires numbers.

`pegboardUnknown` lists the fields of an object that are unknown although they have a number.
`pegboardEstimate` of a session has the missing part of its cost. The protocol does not define these
fields, so only a client that sends Pegboard's header gets them.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

UNKNOWN = "pegboardUnknown"
ASKS_UNKNOWN = ("x-pegboard-unknown", "named")
"""The name and value of the header with which a client requests the extra fields."""
_MARK = f'"{UNKNOWN}"'.encode()
_OURS = b'"pegboard'
_FIELDS = re.compile(rb',"pegboard(?:Unknown":\[[^\]]*\]|Estimate":\{[^{}\[\]]*\})')
_Value = TypeVar("_Value")


def for_client(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Remove the extra fields from JSON for a client that has not asked for them."""
    name, value = ASKS_UNKNOWN
    return body if _OURS not in body or headers.get(name) == value else _FIELDS.sub(b"", body)


def decoded(body: bytes | msgspec.Raw, kind: type[_Value]) -> _Value:
    """Decode a server's JSON, with None for values that the server does not know.

    :raises msgspec.DecodeError: when the body is not JSON, or not of this type.
    """
    if _MARK not in bytes(body):
        return msgspec.json.decode(body, type=kind)
    found = msgspec.json.decode(body)
    _forget(found)
    return msgspec.convert(found, kind)


def _forget(found: Any) -> None:  # noqa: ANN401 - any JSON
    """Set the fields that `pegboardUnknown` lists to None, in all nested objects."""
    still = [found]
    while still:
        match still.pop():
            case dict() as fields:
                still += fields.values()
                match fields.pop(UNKNOWN, ()):
                    case list() as names:
                        fields.update({name: None for name in names if name in fields})
            case list() as items:
                still += items
