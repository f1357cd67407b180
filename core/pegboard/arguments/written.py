"""The repair of tool calls with wrong names or arguments whose meaning is clear."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

_FENCE = re.compile(r"\s*```\w*\s*(.*?)\s*```\s*", re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_NUMBERS = {
    "integer": r"-?(0|[1-9]\d{0,17})",
    "number": r"-?(0|[1-9]\d{0,17})(\.\d+)?([eE][+-]?\d{1,2})?",
}
_BOOLEANS = {"true": True, "false": False}
_MOST_REFERENCES = 5
"""References and choices inside each other; a schema with more goes in a circle."""


def tool_named(name: str, known: Collection[str]) -> str | None:
    """Return the tool of the `known` ones that a misspelled name means, or None if uncertain.

    Outer spaces, a prefix such as `functions.`, a suffix such as `:0`, case, underscores and
    hyphens are ignored if only one tool matches.
    """
    if name in known:
        return name
    bare = re.sub(r":\d+$", "", name.strip())
    for written in (bare, bare.rpartition(".")[2]):
        found = [each for each in known if _spelling(each) == _spelling(written)]
        if len(found) == 1:
            return found[0]
    return None


def _spelling(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def read_arguments(text: str) -> object:
    """Return the JSON value in a text that a model wrote.

    Accepted are control characters in strings, trailing commas, a Markdown fence around the text,
    and JSON inside a JSON string.

    :raises ValueError: when the text is not JSON even so.
    """
    try:
        value = msgspec.json.decode(text.encode(errors="replace") or b"{}")
    except msgspec.DecodeError:
        fenced = _FENCE.fullmatch(text)
        plain = _TRAILING_COMMA.sub(r"\1", fenced[1] if fenced else text)
        try:
            value = json.loads(plain, strict=False)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict | list):
            raise
    except RecursionError as error:
        raise ValueError(str(error)) from error
    is_json = isinstance(value, str) and value.lstrip()[:1] in ("{", "[")
    return read_arguments(value) if is_json else value


def fitted(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with each value in the type that the schema requires.

    A string is parsed as a list, an object, a number or a boolean if the schema accepts no string.
    A null is dropped from an optional argument that does not accept null. Other values stay.
    """
    try:
        return _fitted_object(args, schema, schema)
    except RecursionError:
        return dict(args)


def _fitted_object(
    args: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(args)
    required = _list(schema.get("required"))
    found = {}
    for name, value in args.items():
        types, own = _types(properties.get(name), root)
        if value is not None or name in required or "null" in types or not types:
            found[name] = _fitted(value, types, own, root)
    return found


def _fitted(
    value: object, types: frozenset[str], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> object:
    if isinstance(value, str) and types and "string" not in types:
        value = _from_text(value, types)
    if isinstance(value, dict) and "object" in types:
        return _fitted_object(value, schema, root)
    if isinstance(value, list) and "array" in types:
        inner, own = _types(schema.get("items"), root)
        return [_fitted(each, inner, own, root) for each in value]
    return value


def _from_text(text: str, types: frozenset[str]) -> object:
    stripped = text.strip()
    if "boolean" in types and stripped.lower() in _BOOLEANS:
        return _BOOLEANS[stripped.lower()]
    for name, pattern in _NUMBERS.items():
        if name in types and re.fullmatch(pattern, stripped, re.ASCII):
            return json.loads(stripped)
    if stripped[:1] not in ("{", "[", "`"):
        return text
    try:
        value = read_arguments(stripped)
    except ValueError:
        return text
    wanted = "object" if isinstance(value, dict) else "array"
    return value if wanted in types else text


def _types(
    schema: object, root: Mapping[str, Any], depth: int = 0
) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Return the types that a schema accepts, and the schema of its objects and lists.

    Only `type`, `anyOf`, `oneOf` and references to `$defs` are considered.
    """
    nothing: tuple[frozenset[str], Mapping[str, Any]] = frozenset(), {}
    if not isinstance(schema, Mapping) or depth > _MOST_REFERENCES:
        return nothing
    if isinstance(reference := schema.get("$ref"), str):
        definitions = root.get("$defs")
        known = definitions if isinstance(definitions, Mapping) else {}
        return _types(known.get(reference.removeprefix("#/$defs/")), root, depth + 1)
    if kinds := schema.get("type"):
        named = kinds if isinstance(kinds, list) else [kinds]
        return frozenset(each for each in named if isinstance(each, str)), schema
    choices = schema.get("anyOf") or schema.get("oneOf")
    found = [_types(each, root, depth + 1) for each in _list(choices)]
    if not all(types for types, _ in found):
        return nothing
    own = (each for types, each in found if types & {"object", "array"})
    return frozenset().union(*(types for types, _ in found)), next(own, {})


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
