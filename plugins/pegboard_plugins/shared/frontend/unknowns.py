"""Unknown values in JSON, where the protocol requires numbers: an extra field marks them.

An object of the JSON names in `pegboardUnknown` those of its fields that are numbers for nothing.
A session has in `pegboardEstimate` what its cost lacks. Only a client that asks by a header gets
these fields: the protocol allows no others than its own.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

UNKNOWN = "pegboardUnknown"
ASKS_UNKNOWN = ("x-pegboard-unknown", "named")
"""The header of a request whose answer shall say what is not known, and its value."""
_MARK = f'"{UNKNOWN}"'.encode()
_OURS = b'"pegboard'
_FIELDS = re.compile(rb',"pegboard(?:Unknown":\[[^\]]*\]|Estimate":\{[^{}\[\]]*\})')
_Value = TypeVar("_Value")


def for_client(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Adapt JSON, or lines of JSON, to the client that sent these headers."""
    name, value = ASKS_UNKNOWN
    return body if _OURS not in body or headers.get(name) == value else _FIELDS.sub(b"", body)


def decoded(body: bytes | msgspec.Raw, kind: type[_Value]) -> _Value:
    """Decode a server's JSON, with None for values that the server does not know.

    :raises msgspec.DecodeError: for what is no JSON, or nothing of this kind.
    """
    if _MARK not in bytes(body):
        return msgspec.json.decode(body, type=kind)
    found = msgspec.json.decode(body)
    _forget(found)
    return msgspec.convert(found, kind)


def _forget(found: Any) -> None:  # noqa: ANN401 - any JSON
    """Replace the marked values of objects by None."""
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
