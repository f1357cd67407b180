"""A function's parameters as a pydantic model, to describe and validate all types.

Importing this module imports pydantic, which takes 0.1 s. Therefore `binding` imports it only if
needed.
"""

import inspect
import reprlib
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from pegboard.arguments.signature import REQUIRED, Parameter, Schema

Refuse = Callable[[str, str], Exception]
"""Makes the error from a parameter's name, "" for the tool itself, and a reason."""

_T = TypeVar("_T")

# What pydantic raises for a type or a Field that it cannot use; most of it is not its own.
_UNUSABLE = (PydanticUserError, PydanticUndefinedAnnotation, TypeError, ValueError, RuntimeError)
_USABLE = "take numbers, texts, lists, dictionaries, Literal, dataclasses or pydantic models"
_NAMED_SCHEMAS = frozenset({"properties", "$defs"})
_VALUES = frozenset({"default", "examples", "enum", "const", "required", "discriminator"})


class _WithoutWarnings(GenerateJsonSchema):
    """The schema generator of pydantic, without warnings about defaults that are not JSON."""

    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {  # type: ignore[misc]  # theirs
        "skipped-choice",
        "non-serializable-default",
    }


def build_model(parameters: Sequence[Parameter], refuse: Refuse) -> type[BaseModel]:
    """Build a model with fields p0, p1, ... for the parameters, in order.

    The parameters' names are aliases, because a field cannot be called `_limit` or `copy`. `refuse`
    makes the error that is raised for a type without a validator.
    """
    return _blaming(_build, parameters, refuse)


def model_schema(parameters: Sequence[Parameter], refuse: Refuse) -> Schema:
    """Return the JSON Schema of the parameters without titles, which repeat the names.

    `refuse` makes the error that is raised for a type without a JSON Schema.
    """
    return _blaming(_describe, parameters, refuse)


def problems(error: ValidationError) -> Iterator[str]:
    """Yield a line for each invalid argument."""
    for problem in error.errors(include_url=False, include_context=False):
        place = ".".join(map(str, problem["loc"])) or "arguments"
        match problem["type"]:
            case "missing":
                yield f"{place}: is required, and missing"
            case "extra_forbidden":
                yield f"{place}: is not an argument of this tool"
            case _:
                yield f"{place}: {problem['msg']}, got {reprlib.repr(problem['input'])}"


def _blaming(
    act: Callable[[Sequence[Parameter]], _T], parameters: Sequence[Parameter], refuse: Refuse
) -> _T:
    """Return `act(parameters)`; if this fails, raise the error that `refuse` makes.

    The error names the parameter that causes the failure, if a single one does.
    """
    try:
        return act(parameters)
    except _UNUSABLE as error:
        if len(parameters) > 1:
            for parameter in parameters:
                _blaming(act, [parameter], refuse)
        name = parameters[0].name if len(parameters) == 1 else ""
        raise refuse(name, _reason(error, parameters)) from error


def _reason(error: Exception, parameters: Sequence[Parameter]) -> str:
    if isinstance(error, PydanticSchemaGenerationError) and len(parameters) == 1:
        shown = inspect.formatannotation(parameters[0].annotation)
        return f"no JSON becomes a {shown}: {_USABLE}"
    return str(error).partition("\n")[0]


def _build(parameters: Sequence[Parameter]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        f"p{index}": _aliased(parameter)
        if parameter.default is REQUIRED
        else (_aliased(parameter), parameter.default)
        for index, parameter in enumerate(parameters)
    }
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _aliased(parameter: Parameter) -> object:
    """Return the parameter's annotation with the parameter's name as its pydantic alias.

    Metadata that the annotation already has follows the alias.
    """
    annotation = parameter.annotation
    kinds = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    return Annotated[(kinds[0], Field(alias=parameter.name), *kinds[1:])]


def _describe(parameters: Sequence[Parameter]) -> Schema:
    schema = _build(parameters).model_json_schema(schema_generator=_WithoutWarnings)
    return {key: _untitled(key, value) for key, value in schema.items() if key != "title"}


def _untitled(key: str, value: object) -> object:
    """Remove the titles from the value of a schema's keyword, but not a property called `title`."""
    if key in _VALUES:
        return value
    if isinstance(value, list):
        return [_untitled("", item) for item in value]
    if not isinstance(value, dict):
        return value
    named = key in _NAMED_SCHEMAS
    return {
        name: _untitled("" if named else name, item)
        for name, item in value.items()
        if named or name != "title"
    }
