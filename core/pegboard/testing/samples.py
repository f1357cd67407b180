"""Sample arguments that fit the JSON Schema of a tool."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

_MAX_DEPTH = 6
"""Recursive schemas end here; no tool that a model can use is deeper."""

Json = Any
_T = TypeVar("_T")


class _NoSampleError(Exception):
    """An error for a schema that no sample can be made for."""


def samples(schema: Mapping[str, Any]) -> Iterator[dict[str, Json]]:
    """Yield sample arguments that fit the schema.

    The first sample has all properties, the second the required ones. Each further sample is like
    the first, but one property has a different value, for example another one of its enum. Samples
    that jsonschema finds invalid are left out, so a schema with a pattern may have none.
    """
    return (each for each in _objects(schema) if fits(each, schema))


def fits(value: Json, schema: Mapping[str, Any]) -> bool:
    """Return whether a value fits a schema; true also if the schema cannot be checked here."""
    from jsonschema import Draft202012Validator
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import EMPTY_REGISTRY

    try:
        return Draft202012Validator(schema, registry=EMPTY_REGISTRY).is_valid(value)
    except (Unresolvable, re.error):
        return True


def _objects(schema: Mapping[str, Any]) -> Iterator[dict[str, Json]]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    choices = {name: _values(each, schema) for name, each in properties.items()}
    whole = {name: values[0] for name, values in choices.items() if values}
    yield whole
    yield {name: value for name, value in whole.items() if name in required}
    for name, values in choices.items():
        for value in values[1:]:
            yield whole | {name: value}


def _values(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Json]:
    """Return values for a schema's property: its default, its examples, one per alternative.

    Alternatives are the values of an enum, the types, or the schemas in `anyOf` and `oneOf`.
    """
    values = [schema["default"]] if "default" in schema else []
    values += schema.get("examples", ())
    for alternative in _alternatives(schema):
        try:
            values.append(_value(alternative, root, depth=0))
        except _NoSampleError:
            continue
    return values


def _alternatives(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "enum" in schema:
        yield from ({"const": value} for value in schema["enum"])
    elif isinstance(schema.get("type"), list):
        yield from (dict(schema) | {"type": each} for each in schema["type"])
    else:
        yield from schema.get("anyOf") or schema.get("oneOf") or [schema]


def _value(schema: Mapping[str, Any], root: Mapping[str, Any], *, depth: int) -> Json:
    if depth > _MAX_DEPTH:
        raise _NoSampleError
    if "const" in schema:
        return schema["const"]
    if "$ref" in schema:
        return _value(_target(schema["$ref"], root), root, depth=depth + 1)
    first = next(_alternatives(schema))
    if first is not schema:
        return _value(first, root, depth=depth + 1)
    make = _MAKERS.get(schema.get("type", ""))
    return make(schema, root, depth) if make else None


def _target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    target: Any = root
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(target, Mapping) or step not in target:
            raise _NoSampleError
        target = target[step]
    return dict(target)


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Json:
    required = schema.get("required", ())
    return {
        name: _value(each, root, depth=depth + 1)
        for name, each in schema.get("properties", {}).items()
        if name in required
    }


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Json:
    fixed = schema.get("prefixItems", ())
    count = max(schema.get("minItems", 1) - len(fixed), 0)
    items = [_value(each, root, depth=depth + 1) for each in fixed]
    more = schema.get("items", {})
    if not isinstance(more, Mapping):
        return items
    return items + [_value(more, root, depth=depth + 1) for _ in range(count)]


def _string(schema: Mapping[str, Any], _root: object, _depth: int) -> Json:
    text = _TEXTS.get(schema.get("format", ""))
    if text is None:
        raise _NoSampleError
    return text[: schema.get("maxLength")].ljust(schema.get("minLength", 0), "x")


def _number(schema: Mapping[str, Any], _root: object, _depth: int) -> Json:
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", low))
    rounded = -(-low // step) * step
    candidates = (0, low, high, rounded, rounded + step, high - step, (low + high) / 2)
    return next((each for each in candidates if fits(each, schema)), low)


_Maker = Callable[[Mapping[str, Any], Mapping[str, Any], int], Json]
_MAKERS: Mapping[str, _Maker] = {
    "array": _array,
    "boolean": lambda *_: True,
    "integer": _number,
    "number": _number,
    "object": _object,
    "string": _string,
}
_TEXTS = {
    "": "text",
    "binary": "text",
    "date": "2024-02-29",
    "date-time": "2024-02-29T12:00:00Z",
    "duration": "PT1S",
    "email": "ada@example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "password": "text",
    "path": "text",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "uuid": "12345678-1234-5678-1234-567812345678",
}


def minimal(kind: type[_T]) -> _T:
    """Return an instance of a struct type with only the required fields."""
    schema = msgspec.json.schema(kind)
    deep = -_MAX_DEPTH  # what is required of the schema's structs is never recursive
    return msgspec.convert(_value(schema, schema, depth=deep), kind)
