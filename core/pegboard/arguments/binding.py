"""The arguments of a tool: their JSON Schema, and the validation of a model's input.

The arguments of a function are validated by pydantic, those of a raw JSON Schema by jsonschema.
Both are imported at their first use. Scalars that have exactly the right types need neither.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pegboard.arguments import foreign_schema
from pegboard.arguments.signature import (
    Documentation,
    NotPlainError,
    Parameter,
    Schema,
    Signature,
    is_exactly,
    is_scalar,
    plain_schema,
    read_docstring,
    read_signature,
    terse,
)
from pegboard.errors import SignatureError, ToolError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator
    from pydantic import BaseModel

MAX_MESSAGE = 400
MAX_PROBLEMS = 10
"""A model that wrote everything wrong learns no more from a longer list."""


class FunctionArguments(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The arguments of a tool that is a function, read from its signature and docstring.

    `tool` is the name of the tool in errors.
    """

    function: Callable[..., Any]
    tool: str

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules that the first `validate` imports: pydantic, or none for scalars."""
        return () if self._scalar else ("pegboard.arguments.pydantic_model",)

    def check(self) -> None:
        """Check that a JSON Schema can describe every parameter.

        A name in an annotation may be defined after the decorator has run. Therefore an unknown
        name is an error only at the first use.

        :raises SignatureError: for a parameter that cannot be described.
        """
        try:
            _ = self._signature
        except SignatureError as error:
            if isinstance(error.__cause__, NameError):
                return
            raise
        if self._plain is None and self._model.__pydantic_complete__:
            _ = self.schema

    @property
    def description(self) -> str:
        """The text of the docstring, without its descriptions of parameters."""
        return self._documentation.description

    @cached_property
    def schema(self) -> Schema:
        """The JSON Schema; descriptions are from the annotations, or else from the docstring."""
        schema = self._plain
        if schema is None:  # to import pydantic takes 0.1 s, which plain tools save
            from pegboard.arguments.pydantic_model import model_schema

            schema = model_schema(self._parameters, self._refuse)
        properties = schema.get("properties", {})
        for name, text in self._documentation.parameters.items():
            if text and name in properties:
                properties[name].setdefault("description", text)
        return schema

    @cached_property
    def offered(self) -> Schema:
        """The JSON Schema in a shorter form, in which it is sent to models."""
        return terse(self.schema)

    def quick(self, args: Mapping[str, Any]) -> bool:
        """Return whether `validate` is quick for `args` and runs no code of the type annotations.

        This holds if all arguments are scalars of the exact type. It also holds if all types are
        plain and the pydantic model has been built.
        """
        return self.exact(args) or ("_model" in vars(self) and self._plain is not None)

    def validate(self, args: Mapping[str, Any], *, tool: str) -> dict[str, object]:
        """Convert the arguments in pydantic's lax mode, and add the defaults.

        :raises ToolError: when the arguments are invalid; the message is for the model.
        """
        if self.exact(args):
            return {each.name: args.get(each.name, each.default) for each in self._parameters}
        from pydantic import ValidationError  # saves 0.1 s before the first call

        from pegboard.arguments.pydantic_model import problems

        if not self._model.__pydantic_complete__:
            _ = self.schema  # completes the model, or says what it lacks
        try:
            model = self._model.model_validate(args)
        except ValidationError as error:
            raise _refusal(tool, problems(error)) from None
        parameters = enumerate(self._parameters)
        return {each.name: getattr(model, f"p{index}") for index, each in parameters}

    def bind(self, context: object, values: Mapping[str, object]) -> Callable[[], Any]:
        """Return the tool's function with its arguments filled in, ready to be called."""
        return partial(self.function, **values, **dict.fromkeys(self._signature.contexts, context))

    def warm(self) -> None:
        """Import pydantic and build its model of the arguments, unless all are scalars."""
        if not self._scalar:
            _ = self._model

    def exact(self, args: Mapping[str, Any]) -> bool:
        """Return whether each argument is a scalar of exactly its parameter's type."""
        if self._plain is None or not args.keys() <= {each.name for each in self._parameters}:
            return False
        return all(
            is_exactly(args.get(each.name, each.default), each.annotation)
            for each in self._parameters
        )

    @property
    def _parameters(self) -> tuple[Parameter, ...]:
        return self._signature.parameters

    @cached_property
    def _scalar(self) -> bool:
        return self._plain is not None and all(
            is_scalar(each.annotation) for each in self._parameters
        )

    @cached_property
    def _documentation(self) -> Documentation:
        return read_docstring(self.function.__doc__)

    @cached_property
    def _signature(self) -> Signature:
        try:
            return read_signature(self.function, tool=self.tool)
        except NameError as error:
            reason = f"{error}; a name in an annotation must exist at run time too"
            raise self._refuse("", reason) from error

    @cached_property
    def _plain(self) -> Schema | None:
        """The schema made without pydantic, or None if a parameter's type needs pydantic."""
        try:
            return plain_schema(self._parameters)
        except NotPlainError:
            return None

    @cached_property
    def _model(self) -> "type[BaseModel]":
        # Saves 0.1 s before the first call.
        from pegboard.arguments.pydantic_model import build_model

        return build_model(self._parameters, self._refuse)

    def _refuse(self, parameter: str, reason: str) -> SignatureError:
        return SignatureError(self.function.__module__, reason, tool=self.tool, parameter=parameter)


class RawArguments(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The arguments of a tool with a JSON Schema that Pegboard did not make.

    Validation neither changes arguments nor adds defaults. It skips what `foreign_schema` cannot
    decide. `tool` is the name of the tool in errors.
    """

    function: Callable[..., Any]
    tool: str
    parameters: Mapping[str, Any]
    description: str
    imports: ClassVar[tuple[str, ...]] = ()
    """None: a session may do without jsonschema, which only the check of such a call needs."""

    @property
    def offered(self) -> Schema:
        """The schema that is sent to a model, unchanged."""
        return self.schema

    @cached_property
    def schema(self) -> Schema:
        """The JSON Schema, with the keys `type` and `properties`, which providers require.

        :raises SignatureError: when it is too large or nested too deep.
        """
        if wrong := foreign_schema.excess(self.parameters):
            raise self._refuse(f"the JSON Schema {wrong}")
        return {"type": "object", "properties": {}} | dict(self.parameters)

    def quick(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - whatever they are
        """Return False, because validation by a foreign schema may take any time."""
        return False

    def exact(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - whatever they are
        """Return False, because only a validator can tell."""
        return False

    def validate(self, args: Mapping[str, Any], *, tool: str) -> dict[str, object]:
        """Return the arguments unchanged if they match the schema.

        :raises ToolError: when they do not match; the message is for the model.
        """
        wrong = foreign_schema.problems(self._validator, dict(args), most=MAX_PROBLEMS + 1)
        if wrong:
            raise _refusal(tool, map(_line, wrong))
        return dict(args)

    def bind(self, context: object, values: Mapping[str, object]) -> Callable[[], Any]:
        """Return a function without arguments that calls the tool's function with these values."""
        return partial(self.function, context, values)

    def warm(self) -> None:
        """Import jsonschema and build the validator of this schema."""
        _ = self._validator

    @cached_property
    def _validator(self) -> "Validator":
        try:
            return foreign_schema.validator_of(self.schema)
        except ValueError as error:
            raise self._refuse(f"the JSON Schema is wrong {error}") from error

    def _refuse(self, reason: str) -> SignatureError:
        return SignatureError(self.function.__module__, reason, tool=self.tool)


Arguments = FunctionArguments | RawArguments
"""What a tool's function takes: its schema, and the check and the binding of what a model wrote."""


def _line(problem: "ValidationError") -> str:
    """Return the location and message of a validation problem, the middle of a long message cut."""
    place = ".".join(map(str, problem.absolute_path)) or "arguments"
    message = problem.message
    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE // 2]} … {message[-MAX_MESSAGE // 2 :]}"
    return f"{place}: {message}"


def _refusal(tool: str, problems: Iterable[str]) -> ToolError:
    listed = list(islice(problems, MAX_PROBLEMS + 1))
    lines = [f"- {problem}" for problem in listed[:MAX_PROBLEMS]]
    if len(listed) > MAX_PROBLEMS:
        lines.append("- and more")
    head = f"The arguments of this call of {tool} are invalid:"
    return ToolError("\n".join([head, *lines, "Write the call again with valid arguments."]))


def own_names(
    args: Mapping[str, Any], known: Collection[str], aliases: Mapping[str, str]
) -> Mapping[str, Any]:
    """Rename arguments to the parameters' names, by alias or by ignoring case and underscores."""
    strange = [name for name in args if name not in known]
    if not strange:
        return args
    spelt = {_spelling(name): name for name in known}
    found = dict(args)
    for name in strange:
        own = aliases.get(name) or spelt.get(_spelling(name))
        if own is not None and own not in found:
            found[own] = found.pop(name)
    return found


def _spelling(name: str) -> str:
    return name.replace("_", "").lower()
