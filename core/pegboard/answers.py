"""What each hook may be answered with; every other answer counts as a failure of the plugin.

A check takes an answer (a fold's also the value before) and gives it back, a list made a tuple
where a tuple is asked for. It raises `TypeError` or `ValueError` whose text says what was
expected. Structs and dataclasses are not checked by Python when they are made, so their fields
are looked at too, by a round trip through their JSON form.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from pegboard.providers import ModelRequest, Provider, ToolDefinition
from pegboard.schema.agent import Agent, Command
from pegboard.schema.config import Config
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.part import Part
from pegboard.schema.permission import Verdict
from pegboard.tools import PendingCall, Tool, ToolResult

if TYPE_CHECKING:
    from pegboard.compactors import Compactor
    from pegboard.sandbox import Sandbox
    from pegboard.schema.service import Service
    from pegboard.search_backends import SearchBackend
    from pegboard.storage.protocol import OpenStorage

LIMIT_BYTES = 16 << 20
"""The JSON size of an answer: more is a plugin's mistake, and would not fit a request."""

_T = TypeVar("_T")


def _sound(answer: object, kind: type[_T]) -> _T:
    """The answer, which is of this type down to the last field, and not too large."""
    if not isinstance(answer, kind):
        raise TypeError(f"{_name(answer)} where {kind.__name__} is expected")
    encoded = msgspec.json.encode(answer)
    if len(encoded) > LIMIT_BYTES:
        raise ValueError(f"{len(encoded):,} bytes where {LIMIT_BYTES:,} are the limit")
    msgspec.json.decode(encoded, type=kind)
    return answer


def _items(answer: object) -> tuple[object, ...]:
    if not isinstance(answer, tuple | list):
        raise TypeError(f"{_name(answer)} where a tuple is expected")
    return tuple(answer)


def _name(value: object) -> str:
    return type(value).__name__


def each_of(kind: type[_T]) -> Callable[[object], tuple[_T, ...]]:
    """The check of a sequence of such structs."""
    return lambda answer: tuple(_sound(item, kind) for item in _items(answer))


def tools(answer: object) -> tuple[Tool, ...]:
    """The tools; what a tool can do is its own affair."""
    found = _items(answer)
    for item in found:
        if not isinstance(item, Tool):
            raise TypeError(f"{_name(item)} where Tool is expected: decorate it with @tool")
    return tuple(item for item in found if isinstance(item, Tool))


def providers(answer: object) -> tuple[Provider, ...]:
    """The providers; each must have what the protocol `Provider` names."""
    return tuple(_provider(item) for item in _items(answer))


def _provider(item: object) -> Provider:
    if isinstance(item, type):
        raise TypeError(f"the class {item.__name__} where a Provider made of it is expected")
    wanted = ("id", "name", "env", "models", "resolve", "stream", "aclose")
    missing = [name for name in wanted if not hasattr(item, name)]
    if missing:
        lack = ", ".join(missing)
        raise TypeError(f"{_name(item)} without {lack} where a Provider is expected")
    provider: Provider = item  # type: ignore[assignment]  # all of the protocol is there
    return provider


def services(answer: object) -> "tuple[Service, ...]":
    """The programs."""
    from pegboard.schema.service import Service  # nobody asks before a client does

    return each_of(Service)(answer)


def agents(answer: object) -> tuple[Agent, ...]:
    """The agents."""
    return each_of(Agent)(answer)


def commands(answer: object) -> tuple[Command, ...]:
    """The slash commands."""
    return each_of(Command)(answer)


def compactors(answer: object) -> "tuple[Compactor, ...]":
    """The compactors; each must have the one method of the protocol `Compactor`."""
    found = _items(answer)
    for item in found:
        if isinstance(item, type) or not callable(getattr(item, "compact", None)):
            raise TypeError(f"{_name(item)} where an object with `compact` is expected")
    return found  # type: ignore[return-value]  # all of the protocol is there


def sandboxes(answer: object) -> "tuple[Sandbox, ...]":
    """The sandboxes; each must have what the protocol `Sandbox` names."""
    found = _items(answer)
    for item in found:
        methods = all(callable(getattr(item, name, None)) for name in ("why_not", "enclose"))
        texts = all(isinstance(getattr(item, name, None), str) for name in ("name", "caveat"))
        if isinstance(item, type) or not (methods and texts):
            raise TypeError(
                f"{_name(item)} where a Sandbox is expected: name, caveat, why_not, enclose"
            )
    return found  # type: ignore[return-value]  # all of the protocol is there


def search_backends(answer: object) -> "tuple[SearchBackend, ...]":
    """The backends; each must have what the protocol `SearchBackend` names."""
    found = _items(answer)
    for item in found:
        named = isinstance(getattr(item, "name", None), str)
        if isinstance(item, type) or not named or not callable(getattr(item, "search", None)):
            raise TypeError(f"{_name(item)} where a SearchBackend is expected: name, search")
    return found  # type: ignore[return-value]  # all of the protocol is there


def anything(answer: object) -> tuple[object, ...]:
    """The items, whatever they are."""
    return _items(answer)


def openers(answer: object) -> "Mapping[str, OpenStorage]":
    """URL schemes with the functions that open them."""
    if not isinstance(answer, Mapping):
        raise TypeError(f"{_name(answer)} where a mapping is expected")
    for scheme, function in answer.items():
        if not isinstance(scheme, str) or not callable(function):
            raise TypeError(f"{scheme!r}: {function!r} where a scheme and a function are expected")
    return answer


def config(answer: object, _before: Config) -> Config:
    """The configuration."""
    return _sound(answer, Config)


def message(answer: object, before: Turn) -> Turn:
    """The user's message, still the same one."""
    turn = _sound(answer, Turn)
    if (type(turn.info), turn.info.id) != (type(before.info), before.info.id):
        raise ValueError("another message: its id and role must stay")
    if turn.info.session_id != before.info.session_id:
        raise ValueError("a message of another session")
    _belong(turn.parts, before)
    return turn


def _belong(found: Sequence[Part], turn: Turn) -> None:
    seen = set()
    for part in found:
        if (part.session_id, part.message_id) != (turn.info.session_id, turn.info.id):
            raise ValueError(f"the part {part.id}, which belongs to another message")
        if part.id in seen:
            raise ValueError(f"two parts with the id {part.id}")
        seen.add(part.id)


def messages(answer: object, before: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The history; turns that are the same objects as before are not looked at again."""
    known = {id(turn) for turn in before}
    return tuple(
        turn if id(turn) in known and isinstance(turn, Turn) else _sound(turn, Turn)
        for turn in _items(answer)
    )


def system(answer: object, _before: tuple[str, ...]) -> tuple[str, ...]:
    """The pieces of the system prompt: at least one that has text."""
    pieces = tuple(_sound(piece, str) for piece in _items(answer))
    if not any(piece.strip() for piece in pieces):
        raise ValueError("an empty system prompt")
    return pieces


def request(answer: object, before: ModelRequest) -> ModelRequest:
    """The request; its history is not looked at, since the hook is not for that."""
    if not isinstance(answer, ModelRequest):
        raise TypeError(f"{_name(answer)} where ModelRequest is expected")
    if answer.session_id != before.session_id:
        raise ValueError("a request of another session")
    if answer.messages is not before.messages:
        raise ValueError("other messages: chat_messages_transform is the hook for that")
    _sound(answer.model, Model)
    _sound(dict(answer.options), dict)
    text_table(answer.headers, {})
    for definition in answer.tools:
        _sound(definition, ToolDefinition)
    system(answer.system, ())
    _numbers(answer)
    return replace(answer, messages=before.messages)


def _numbers(answer: ModelRequest) -> None:
    wanted = ("temperature", "top_p", "max_output_tokens", "idle_timeout_s")
    for name in wanted:
        value = getattr(answer, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(f"{name}={value!r} where a number is expected")


def text_table(answer: object, _before: Mapping[str, str]) -> Mapping[str, str]:
    """A table of texts: headers, environment."""
    if not isinstance(answer, Mapping):
        raise TypeError(f"{_name(answer)} where a mapping is expected")
    return {_sound(key, str): _sound(value, str) for key, value in answer.items()}


def text(answer: object, _before: str) -> str:
    """A text."""
    return _sound(answer, str)


def verdict(answer: object) -> Verdict:
    """An opinion: allow, ask or deny."""
    return _sound(answer, Verdict)


def definition(answer: object, before: ToolDefinition) -> ToolDefinition:
    """A tool's definition, its name and permission as they were."""
    found = _sound(answer, ToolDefinition)
    if (found.name, found.permission) != (before.name, before.permission):
        raise ValueError(f"the definition of another tool than {before.name}")
    return found


def call(answer: object, before: PendingCall) -> PendingCall:
    """A call with other arguments; the rest stays."""
    found = _sound(answer, PendingCall)
    if replace(found, input={}) != replace(before, input={}):
        raise ValueError("another call: only its input may change")
    return found


def result(answer: object, _before: ToolResult) -> ToolResult:
    """A tool's answer."""
    return _sound(answer, ToolResult)


def parts(answer: object, _before: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts of a prompt."""
    found = _items(answer)
    encoded = msgspec.json.encode(found)
    if len(encoded) > LIMIT_BYTES:
        raise ValueError(f"{len(encoded):,} bytes where {LIMIT_BYTES:,} are the limit")
    return msgspec.json.decode(encoded, type=tuple[Part, ...])


def model(answer: object) -> Model:
    """A model."""
    return _sound(answer, Model)
