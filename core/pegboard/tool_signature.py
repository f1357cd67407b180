"""A function's signature as a tool has it: what the model fills, and where the context goes."""

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from pegboard.errors import SignatureError

REQUIRED = inspect.Parameter.empty

_REFUSED: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments; make it one list",
    inspect.Parameter.VAR_KEYWORD: "takes any names; make it one dict, or name the parameters",
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only, and tools are called by name",
}


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter that the model fills; `default` is REQUIRED where there is none."""

    name: str
    annotation: object
    default: object = REQUIRED


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that the model fills, and the names of those that get the context."""

    parameters: tuple[Parameter, ...]
    contexts: tuple[str, ...]


def read_signature(function: Callable[..., object], *, tool: str) -> Signature:
    """What a function takes.

    A parameter without annotation takes anything.

    :raises SignatureError: for a parameter that no model can fill by name.
    :raises NameError: when an annotation names what does not exist (yet).
    """
    parameters = _parameters(function, tool=tool)
    for parameter in parameters:
        _refuse_unnamed(parameter, function, tool=tool)
    annotations = {p.name: _annotation(p, function, tool=tool) for p in parameters}
    contexts = tuple(name for name, kind in annotations.items() if _is_context(kind))
    return Signature(
        parameters=tuple(
            Parameter(name=p.name, annotation=annotations[p.name], default=p.default)
            for p in parameters
            if p.name not in contexts
        ),
        contexts=contexts,
    )


def _parameters(function: Callable[..., object], *, tool: str) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:  # no function, or one of C without a signature
        raise SignatureError(type(function).__module__, str(error), tool=tool) from error


def _refuse_unnamed(
    parameter: inspect.Parameter, function: Callable[..., object], *, tool: str
) -> None:
    reason = _REFUSED.get(parameter.kind)
    if reason is None and parameter.name == "self" and _is_bare(parameter):
        reason = "belongs to a method; make a tool of a bound one: tool(thing.method)"
    if reason:
        raise SignatureError(function.__module__, reason, tool=tool, parameter=parameter.name)


class _Context:
    """Stands for ToolContext where a module imports it for the type checker only."""


def _is_bare(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is inspect.Parameter.empty


def _annotation(
    parameter: inspect.Parameter, function: Callable[..., object], *, tool: str
) -> object:
    """The annotation as an object; texts in it are names of the function's module."""
    if _is_bare(parameter):
        return Any
    written = parameter.annotation
    if isinstance(written, str) and written.endswith(".ToolContext"):
        return _Context
    names = getattr(inspect.unwrap(function), "__globals__", {})
    missing = {} if "ToolContext" in names else {"ToolContext": _Context}
    carrier = types.SimpleNamespace(__annotations__={"it": written})
    try:
        return get_type_hints(carrier, names, missing, include_extras=True)["it"]
    except (AttributeError, SyntaxError, TypeError) as error:
        reason = f"the annotation {written!r} cannot be read: {error}"
        raise SignatureError(
            function.__module__, reason, tool=tool, parameter=parameter.name
        ) from error


def _is_context(annotation: object) -> bool:
    """Whether it is ToolContext; known by name, as the context stands above this module."""
    annotation = getattr(annotation, "__value__", annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_context(args[0])
    if origin in (Union, types.UnionType):
        return all(member is type(None) or _is_context(member) for member in args)
    place = (getattr(annotation, "__module__", ""), getattr(annotation, "__qualname__", ""))
    return annotation is _Context or place == ("pegboard.context", "ToolContext")
