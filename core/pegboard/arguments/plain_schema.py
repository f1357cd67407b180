"""The JSON Schema of parameters whose types are plain, without pydantic.

Plain are texts, numbers, truth values, paths, None, Any, Literal, the standard library's
dataclasses, and lists, dicts and unions of them: what most tools take. The schema is the one
that pydantic would make, so that a session can start without importing pydantic.
"""

import dataclasses
import inspect
import math
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from pegboard.arguments.signature import REQUIRED, Parameter

Schema = dict[str, Any]

_SCALARS: Mapping[type, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Path: {"type": "string", "format": "path"},
}

_MADE_ANEW = dataclasses.MISSING
"""The default of a field whose default is made by a function: optional, and not told."""


class NotPlainError(Exception):
    """A type or a default that only pydantic can describe."""


def plain_schema(parameters: Sequence[Parameter]) -> Schema:
    """The schema of all parameters in one object.

    :raises NotPlainError: when a type or a default is not plain.
    """
    types_seen = _Types()
    schema = types_seen.fields(parameters)
    if types_seen.definitions:
        schema["$defs"] = {kind.__name__: made for kind, made in types_seen.definitions.items()}
    return schema


class _Types(msgspec.Struct, frozen=True):
    """Makes schemas of types; `definitions` are those that others refer to."""

    definitions: dict[type, Schema] = {}

    def fields(self, parameters: Sequence[Parameter]) -> Schema:
        properties: dict[str, Schema] = {}
        for parameter in parameters:
            properties[parameter.name] = dict(self.schema(parameter.annotation))
            if parameter.default not in (REQUIRED, _MADE_ANEW):
                properties[parameter.name]["default"] = _json(parameter.default)
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [each.name for each in parameters if each.default is REQUIRED]
        return schema | {"required": required} if required else schema

    def schema(self, annotation: object) -> Schema:
        if annotation in (Any, object):
            return {}
        if isinstance(annotation, type) and annotation in _SCALARS:
            return _SCALARS[annotation]
        if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
            return self.reference(annotation)
        origin, args = get_origin(annotation) or annotation, get_args(annotation)
        if origin in (Union, types.UnionType):
            return self.union(args)
        if origin is Literal:
            return _literal(args)
        return self.collection(origin, args)

    def union(self, members: Sequence[object]) -> Schema:
        """Alternatives without repetition, null last."""
        choices: list[Schema] = []
        for member in sorted(members, key=lambda member: member is type(None)):
            schema = self.schema(member)
            if schema not in choices:
                choices.append(schema)
        return {"anyOf": choices} if len(choices) > 1 else choices[0]

    def collection(self, origin: object, args: Sequence[object]) -> Schema:
        if origin is list:
            return {"type": "array", "items": self.schema(args[0] if args else Any)}
        if origin is dict and (not args or args[0] is str):
            values = self.schema(args[1] if args else Any)
            return {"type": "object", "additionalProperties": values or True}
        raise NotPlainError

    def reference(self, kind: type) -> Schema:
        if kind not in self.definitions:
            # Two of one name, and one that contains itself, are told apart by pydantic.
            if kind.__name__ in {known.__name__ for known in self.definitions}:
                raise NotPlainError
            self.definitions[kind] = {}
            self.definitions[kind] = self.dataclass(kind)
        elif not self.definitions[kind]:
            raise NotPlainError
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def dataclass(self, kind: type) -> Schema:
        if any(name.startswith("__pydantic") or name == "__get_validators__" for name in dir(kind)):
            raise NotPlainError
        schema = self.fields(tuple(_dataclass_fields(kind)))
        signature = str(inspect.signature(kind)).replace(" -> None", "")
        doc = inspect.cleandoc(kind.__doc__ or "")
        return {"description": doc} | schema if doc != kind.__name__ + signature else schema


def _dataclass_fields(kind: type) -> Iterator[Parameter]:
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError) as error:
        raise NotPlainError from error
    for each in dataclasses.fields(kind):
        if not each.init:
            raise NotPlainError
        default = each.default
        if each.default is each.default_factory is dataclasses.MISSING:
            default = REQUIRED
        yield Parameter(name=each.name, annotation=hints[each.name], default=default)


def _literal(values: Sequence[object]) -> Schema:
    kinds = {type(value) for value in values}
    if kinds not in ({str}, {int}):
        raise NotPlainError
    scalar = _SCALARS[kinds.pop()]
    if len(values) == 1:
        return {**scalar, "const": values[0]}
    return {**scalar, "enum": list(values)}


def _json(value: object) -> object:
    """A default as JSON has it."""
    match value:
        case None | bool():
            return value
        case float() if type(value) is float and math.isfinite(value):
            return value
        case str() | int() if type(value) in (str, int):
            return value
        case Path():
            return str(value)
        case list():
            return [_json(item) for item in value]
        case dict() if all(type(key) is str for key in value):
            return {key: _json(item) for key, item in value.items()}
        case _:
            raise NotPlainError
