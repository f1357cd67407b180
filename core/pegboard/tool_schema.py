"""A function's signature as parameters of a tool, and their JSON Schema where types are plain.

Plain are texts, numbers, truth values, None, Any, Literal, and lists, dicts and unions of them:
what most tools take. Their schema is made here, the same as pydantic's, so that a session
can start without importing pydantic.
"""

import inspect
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pegboard.errors import SignatureError

Schema = dict[str, Any]
REQUIRED = inspect.Parameter.empty

_SCALARS: Mapping[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_REFUSED: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments; make it one list",
    inspect.Parameter.VAR_KEYWORD: "takes any names; make it one dict, or name the parameters",
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only, and tools are called by name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter that the model fills; `default` is REQUIRED where there is none."""

    name: str
    annotation: object
    default: object = REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The parameters that the model fills, and the names of those that get the context."""

    parameters: tuple[Parameter, ...]
    contexts: tuple[str, ...]


def read_signature(function: Callable[..., object], *, tool: str) -> Signature:
    """What a function takes.

    :raises SignatureError: for a parameter that no model can fill by name.
    :raises NameError: when an annotation names what does not exist (yet).
    """
    parameters: list[Parameter] = []
    contexts: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        refuse_kind(parameter, function, tool=tool)
        annotation = _evaluate(parameter, function, tool=tool)
        if _is_context(annotation):
            contexts.append(parameter.name)
        else:
            parameters.append(
                Parameter(name=parameter.name, annotation=annotation, default=parameter.default)
            )
    return Signature(parameters=tuple(parameters), contexts=tuple(contexts))


def refuse_kind(
    parameter: inspect.Parameter, function: Callable[..., object], *, tool: str
) -> None:
    """Nothing, for a parameter that can be given by name.

    :raises SignatureError: for any other.
    """
    reason = _REFUSED.get(parameter.kind)
    if reason is None and parameter.name in ("self", "cls") and _unannotated(parameter):
        reason = "belongs to a method; make a tool of the bound one: tool(thing.method)"
    if reason:
        raise SignatureError(function.__module__, reason, tool=tool, parameter=parameter.name)


class _Absent:
    """Stands for ToolContext where a module imports it for the type checker only."""


def _unannotated(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is inspect.Parameter.empty


def _evaluate(
    parameter: inspect.Parameter, function: Callable[..., object], *, tool: str
) -> object:
    if _unannotated(parameter):
        return Any
    text = parameter.annotation
    if isinstance(text, str) and text.endswith(".ToolContext"):
        return _Absent
    names = getattr(inspect.unwrap(function), "__globals__", {})
    fallback = {} if "ToolContext" in names else {"ToolContext": _Absent}
    carrier = types.SimpleNamespace(__annotations__={"it": text})
    try:
        return get_type_hints(carrier, names, fallback, include_extras=True)["it"]
    except (AttributeError, SyntaxError, TypeError) as error:
        raise SignatureError(
            function.__module__,
            f"the annotation {text!r} cannot be read: {error}",
            tool=tool,
            parameter=parameter.name,
        ) from error


def _is_context(annotation: object) -> bool:
    annotation = getattr(annotation, "__value__", annotation)
    if get_origin(annotation) is Annotated:
        return _is_context(get_args(annotation)[0])
    if _is_union(annotation):
        members = [member for member in get_args(annotation) if member is not type(None)]
        return len(members) == 1 and _is_context(members[0])
    if annotation is _Absent:
        return True
    # By name, because the context stands above this module and need not be imported.
    place = (getattr(annotation, "__module__", ""), getattr(annotation, "__name__", ""))
    return place == ("pegboard.context", "ToolContext")


def plain_schema(parameters: Sequence[Parameter]) -> Schema | None:
    """The schema of all parameters in one object, None when one of the types is not plain."""
    properties: dict[str, Schema] = {}
    for parameter in parameters:
        schema = _plain(parameter.annotation)
        if schema is None:
            return None
        if parameter.default is not REQUIRED:
            if not _is_json(parameter.default):
                return None
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    required = [p.name for p in parameters if p.default is REQUIRED]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required} if required else schema


def _plain(annotation: object) -> Schema | None:
    if annotation in (Any, object):
        return {}
    if isinstance(annotation, type) and annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    origin, args = get_origin(annotation) or annotation, get_args(annotation)
    if origin in (Union, types.UnionType):
        return _plain_union(args)
    if origin is Literal:
        return _plain_literal(args)
    return _plain_collection(origin, args)


def _plain_collection(origin: object, args: Sequence[object]) -> Schema | None:
    if origin is list:
        items = _plain(args[0] if args else Any)
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and (not args or args[0] is str):
        values = _plain(args[1] if args else Any)
        return (
            None if values is None else {"type": "object", "additionalProperties": values or True}
        )
    return None


def _is_union(annotation: object) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _plain_union(members: Sequence[Any]) -> Schema | None:
    """Alternatives without repetition, null last."""
    ordered = sorted(members, key=lambda member: member is type(None))
    choices: list[Schema] = []
    for schema in map(_plain, ordered):
        if schema is None:
            return None
        if schema not in choices:
            choices.append(schema)
    return {"anyOf": choices} if len(choices) > 1 else choices[0]


def _plain_literal(values: Sequence[object]) -> Schema | None:
    kinds = {type(value) for value in values}
    if kinds not in ({str}, {int}):
        return None
    kind = _SCALARS[kinds.pop()]
    if len(values) == 1:
        return {"type": kind, "const": values[0]}
    return {"type": kind, "enum": list(values)}


def _is_json(value: object) -> bool:
    match value:
        case None | bool():
            return True
        case float():
            return type(value) is float and math.isfinite(value)
        case str() | int():
            return type(value) in (str, int)
        case list():
            return all(map(_is_json, value))
        case dict():
            return all(type(key) is str and _is_json(item) for key, item in value.items())
        case _:
            return False
