"""What a hook may be answered with; every other answer counts as a failure of the plugin.

The annotation of the hook's specification says it. Structs are not checked by Python when they
are made, so their fields are looked at too, by a round trip through their JSON form; of any
other class, and of a protocol, it is asked that the object is one. A check gives the answer
back, a list made a tuple where a tuple is asked for, or raises `TypeError` or `ValueError` whose
text says what was expected.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Literal, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from pegboard.contract import hookspecs
from pegboard.contract.plugin import Check, mark_of
from pegboard.contract.results import PendingCall
from pegboard.contract.tools import Tool
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.part import FileInput, Part, TextInput

EXAMPLE_FIELDS = 4
"""A struct that needs more has a page for it, and no example in a message."""
LIMIT_BYTES = 16 << 20
"""The JSON size of an answer: more is a plugin's mistake, and would not fit a request."""

_T = TypeVar("_T")


@cache
def check_of(spec: Callable[..., object]) -> Check:
    """The check of a hook's answers: the specification's own, else what its annotation says."""
    if own := mark_of(spec).check or _OWN.get(spec):
        return own
    answer = get_type_hints(spec)["return"]
    wanted = [kind for kind in get_args(answer) if kind is not NoneType]
    return _check_for(wanted[0] if len(wanted) == 1 else answer)


def _check_for(annotation: type) -> Check:
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is NoneType or annotation is object:
        return lambda answer, _: answer
    if origin in (tuple, Sequence):
        return _sequence_of(_check_for(inner[0]), inner[0])
    if origin is Mapping:
        return _mapping_of(_check_for(inner[0]), _check_for(inner[1]), inner[1])
    if origin is Callable:
        return _called
    united = origin in (Union, UnionType)
    if united or annotation is str or issubclass(annotation, msgspec.Struct):
        return lambda answer, _: _sound(answer, annotation)
    return lambda answer, _: _instance(answer, annotation)


def _sequence_of(check: Check, kind: object) -> Check:
    """The check of each item, of this type, but those that are the same objects as before."""

    def checked(answer: object, before: object) -> object:
        known = set(map(id, before)) if isinstance(before, tuple) else set()
        if not isinstance(answer, tuple | list):
            of, example = _named(kind), _example(kind)
            such = f", such as ({example},)" if example else ""
            raise TypeError(f"{_name(answer)} where a tuple{of} is expected{such}")
        return tuple([item if id(item) in known else check(item, None) for item in answer])

    return checked


def _mapping_of(key: Check, value: Check, kind: object) -> Check:
    def checked(answer: object, _: object) -> object:
        if not isinstance(answer, Mapping):
            text = f"{_name(answer)} where a mapping of names{_named(kind, 'to')} is expected"
            raise TypeError(text)
        return {key(name, None): _entry(name, item, value) for name, item in answer.items()}

    return checked


def _entry(name: object, item: object, check: Check) -> object:
    try:
        return check(item, None)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error


def _called(answer: object, _: object) -> object:
    if not callable(answer):
        raise TypeError(f"{_name(answer)} where a function is expected")
    return answer


def _file_part(answer: object) -> object:
    """A part of a prompt; a picture may be large, and is a third larger encoded."""
    kind = TextInput if isinstance(answer, TextInput) else FileInput
    return _sound(answer, kind, limit=2 * LIMIT_BYTES)


def _sound(answer: object, kind: type[_T], *, limit: int = LIMIT_BYTES) -> _T:
    """The answer, which is of this type down to the last field, and not too large."""
    if not isinstance(answer, kind):
        such = f", such as {example}" if (example := _example(kind)) else ""
        raise TypeError(f"{_name(answer)} where {_name_of(kind)} is expected{such}")
    encoded = msgspec.json.encode(answer)
    if len(encoded) > limit:
        raise ValueError(f"{len(encoded):,} bytes where {limit:,} are the limit")
    msgspec.json.decode(encoded, type=kind)
    return answer


def _instance(answer: object, kind: type) -> object:
    """The object, which is one of the class, or has what the protocol names."""
    if "__call__" in vars(kind) and Protocol in kind.__bases__:
        return _called(answer, None)
    if inspect.isroutine(answer):
        raise TypeError(
            f"the function {answer.__name__} where {kind.__name__} is expected: "
            f"decorate it with @{kind.__name__.lower()}, or make a {kind.__name__} of it"
        )
    if isinstance(answer, type):
        raise TypeError(
            f"the class {answer.__name__} where a {kind.__name__} made of it is expected"
        )
    if Protocol not in kind.__bases__:
        lacking: list[str] = []
        fits = isinstance(answer, kind)
    else:
        lacking = [name for name in _members(kind) if not _has(answer, kind, name)]
        fits = not lacking
    if not fits:
        without = f" without {', '.join(lacking)}" if lacking else ""
        raise TypeError(f"{_name(answer)}{without} where a {kind.__name__} is expected")
    return answer


def _members(protocol: type) -> Iterator[str]:
    """The public names that a protocol asks for, in the order of its text."""
    for name in (*inspect.get_annotations(protocol), *vars(protocol)):
        if not name.startswith("_"):
            yield name


def _has(answer: object, protocol: type, name: str) -> bool:
    found = getattr(answer, name, None)
    if callable(vars(protocol).get(name)):
        return callable(found)
    is_text = inspect.get_annotations(protocol).get(name) in (str, "str")
    return isinstance(found, str) if is_text else hasattr(answer, name)


def _named(kind: object, word: str = "of") -> str:
    """A type behind a word, nothing where any would do."""
    if get_origin(kind) is Callable:
        return f" {word} a function"
    return f" {word} {kind.__name__}" if isinstance(kind, type) and kind is not object else ""


def _example(kind: object) -> str:
    """How a small struct is made, with the fields that it needs; "" for all else."""
    if kind is Tool:
        return "a function with @tool"
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return ""
    needed = [each for each in msgspec.structs.fields(kind) if each.required]
    if not 0 < len(needed) <= EXAMPLE_FIELDS:
        return ""
    return f"{kind.__name__}({', '.join(f'{each.name}={_value(each.type)}' for each in needed)})"


def _value(kind: object) -> str:
    if get_origin(kind) is Literal:
        return " | ".join(f'"{each}"' for each in get_args(kind))
    return '"..."' if kind is str else "..."


def _name(value: object) -> str:
    return type(value).__name__


def _name_of(kind: type) -> str:
    names = [each.__name__ for each in get_args(kind)] or [kind.__name__]
    return " or ".join(names)


_PIECES = _check_for(tuple[str, ...])
_TOOLS = _check_for(tuple[ToolDefinition, ...])
_HEADERS = _check_for(Mapping[str, str])


def same_message(answer: object, before: object) -> Turn:
    """The user's message, still the same one."""
    turn = _sound(answer, Turn)
    known: Turn = before  # type: ignore[assignment]  # the subject of the fold
    if (type(turn.info), turn.info.id) != (type(known.info), known.info.id):
        raise ValueError("another message: its id and role must stay")
    if turn.info.session_id != known.info.session_id:
        raise ValueError("a message of another session")
    _belong(turn.parts, known)
    return turn


def _belong(found: Sequence[Part], turn: Turn) -> None:
    seen = set()
    for part in found:
        if (part.session_id, part.message_id) != (turn.info.session_id, turn.info.id):
            raise ValueError(f"the part {part.id}, which belongs to another message")
        if part.id in seen:
            raise ValueError(f"two parts with the id {part.id}")
        seen.add(part.id)


def some_text(answer: object, before: object) -> tuple[str, ...]:
    """The pieces of the system prompt: at least one that has text."""
    pieces: tuple[str, ...] = _PIECES(answer, before)  # type: ignore[assignment]  # by its items
    if not any(piece.strip() for piece in pieces):
        raise ValueError("an empty system prompt")
    return pieces


def same_request(answer: object, before: object) -> ModelRequest:
    """The request; its history is not looked at, since the hook is not for that.

    Nor is what is the same object as before: each of the plugins changes little of it.
    """
    known: ModelRequest = before  # type: ignore[assignment]  # the subject of the fold
    if not isinstance(answer, ModelRequest):
        raise TypeError(f"{_name(answer)} where ModelRequest is expected")
    if answer.session_id != known.session_id:
        raise ValueError("a request of another session")
    if answer.messages is not known.messages:
        raise ValueError("other messages: chat_messages_transform is the hook for that")
    if answer.model is not known.model:
        _sound(answer.model, Model)
    if answer.options is not known.options:
        _sound(dict(answer.options), dict)
    if answer.headers is not known.headers:
        _HEADERS(answer.headers, None)
    if answer.tools is not known.tools:
        _TOOLS(answer.tools, known.tools)
    if answer.system is not known.system:
        some_text(answer.system, known.system)
    _numbers(answer)
    return answer


def _numbers(answer: ModelRequest) -> None:
    wanted = ("temperature", "top_p", "max_output_tokens", "idle_timeout_s")
    for name in wanted:
        value = getattr(answer, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(f"{name}={value!r} where a number is expected")


def same_tool(answer: object, before: object) -> ToolDefinition:
    """A tool's definition, its name and permission as they were."""
    found = _sound(answer, ToolDefinition)
    known: ToolDefinition = before  # type: ignore[assignment]  # the subject of the fold
    if (found.name, found.permission) != (known.name, known.permission):
        raise ValueError(f"the definition of another tool than {known.name}")
    return found


def same_call(answer: object, before: object) -> PendingCall:
    """A call with other arguments; the rest stays."""
    found = _sound(answer, PendingCall)
    known: PendingCall = before  # type: ignore[assignment]  # the subject of the fold
    if replace(found, input={}) != replace(known, input={}):
        raise ValueError("another call: only its input may change")
    return found


_OWN: Mapping[Callable[..., object], Check] = {
    hookspecs.chat_message: same_message,
    hookspecs.chat_params: same_request,
    hookspecs.chat_system_transform: some_text,
    hookspecs.expand_file: _sequence_of(lambda answer, _: _file_part(answer), FileInput),
    hookspecs.tool_definition: same_tool,
    hookspecs.tool_execute_before: same_call,
}
"""The checks of hooks whose annotation does not say enough."""
