"""The expected form of a final answer: a JSON Schema, checked by Pegboard or by the server."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace as with_fields
from functools import partial
from typing import Any

import msgspec

from pegboard.arguments import foreign_schema
from pegboard.errors import InvalidInputError
from pegboard.kit.threads import run_in_thread
from pegboard.schema.message import AssistantMessage, JsonFormat, Prompt, Turn, TypedTurn

REPAIRS = 2
"""How often a model is asked for the corrected answer."""
_MOST_PROBLEMS = 5
_MOST_STARTS = 50
"""Places in an answer at which the JSON is looked for."""
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)


class MismatchError(Exception):
    """An answer that has not the required form; the message tells the model where and why."""


class Expected:
    """The expected form of a final answer: a JSON Schema, and optionally a Python type."""

    def __init__(self, output: Any) -> None:  # noqa: ANN401 - a type, a schema or a format
        """Derive the schema of a type, or take a schema as it is.

        The first call blocks for 0.2 s.

        :raises InvalidInputError: when the type has no JSON Schema, or the schema is invalid.
        """
        self._value: tuple[Any, Any] | None = None
        self._type: type[msgspec.Struct] | None = None
        self._adapter: Any = None
        self.format = output if isinstance(output, JsonFormat) else self._described(output)
        self.retries = min(self.format.retry_count, REPAIRS)
        if wrong := foreign_schema.excess(self.format.schema):
            raise InvalidInputError(f"the JSON Schema of the output {wrong}; give a smaller one")
        try:
            self._validator = foreign_schema.validator_of(self.format.schema)
        except ValueError as error:
            text = f"the JSON Schema of the output is wrong {error}; correct it"
            raise InvalidInputError(text) from error

    def _described(self, output: Any) -> JsonFormat:  # noqa: ANN401 - as above
        if isinstance(output, Mapping):
            return JsonFormat(schema=dict(output))
        if isinstance(output, type) and issubclass(output, msgspec.Struct):
            self._type = output
            schema = msgspec.json.schema(output)
            own = schema.pop("$ref").rpartition("/")[2]  # servers want the object at the top
            return JsonFormat(schema={**schema["$defs"][own], **schema})
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        try:
            self._adapter = TypeAdapter(output)
            return JsonFormat(schema=self._adapter.json_schema())
        except PydanticUserError as error:
            text = f"there is no JSON Schema for the output {output!r}: {error.message}"
            raise InvalidInputError(text) from error

    def read(self, text: str) -> Any:  # noqa: ANN401 - JSON
        """Parse and check the JSON value of an answer.

        This blocks for up to 0.3 s, plus the validation time of the type.

        :raises MismatchError: when the answer is not JSON, or does not match the schema or the
          type.
        """
        found = _json_in(text)
        wrong = foreign_schema.problems(self._validator, found, most=_MOST_PROBLEMS)
        if wrong:
            raise MismatchError("; ".join(f"{each.json_path}: {each.message}" for each in wrong))
        try:
            self._value = (found, self._typed(found))
        except (ValueError, msgspec.ValidationError) as error:
            raise MismatchError(str(error)) from error
        return found

    def _typed(self, found: Any) -> Any:  # noqa: ANN401 - a value of the type
        if self._type is not None:
            return msgspec.convert(found, self._type)
        if self._adapter is not None:
            return self._adapter.validate_json(msgspec.json.encode(found))
        return found

    def typed(self, turn: Turn) -> Turn:
        """Return the turn with its output as a Python object, if the prompt requires a type."""
        info, value = turn.info, self._value
        is_plain = self._type is None and self._adapter is None
        if is_plain or value is None or not isinstance(info, AssistantMessage):
            return turn
        is_ours = info.structured is not msgspec.UNSET and info.structured == value[0]
        return TypedTurn(info=info, parts=turn.parts, value=value[1]) if is_ours else turn


def _json_in(text: str) -> Any:  # noqa: ANN401 - JSON
    """Parse the JSON in an answer.

    The first valid JSON value counts: the whole text, a fenced block (the last block first), or the
    rest of the text from an opening bracket.
    """
    starts = [match.start() for match in re.finditer(r"[\[{]", text)][:_MOST_STARTS]
    for each in (text, *reversed(_FENCE.findall(text)), *(text[start:] for start in starts)):
        try:
            return msgspec.json.decode(each)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            continue
    raise MismatchError("it is not a JSON value")


async def prompt_for_output(send: Callable[[Prompt], Awaitable[Turn]], prompt: Prompt) -> Turn:
    """Send a prompt that requires a form of the answer, and return the turn of the final answer.

    Its `output` is the JSON value of the answer, or an instance of the required Python type.

    :raises InvalidInputError: when the output has no JSON Schema, or its schema is invalid.
    """
    expected = await run_in_thread(partial(Expected, prompt.output), name="pegboard-schema")
    return expected.typed(await send(with_fields(prompt, output=expected)))
