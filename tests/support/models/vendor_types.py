"""Requests held against the types that vendors publish with their SDKs, where these are installed.

The extra `sdk` has them. Without it a test goes on with its own assertions.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import is_typeddict

_SAMPLING = ("temperature", "top_p", "top_k")


def check_claude(body: Mapping[str, Any]) -> None:
    """A body of Anthropic's Messages API; its types do not name what only older models take."""
    named = {name: value for name, value in body.items() if name not in _SAMPLING}
    if types := _types("anthropic.types.message_create_params"):
        _check(types.MessageCreateParamsStreaming, named)


def check_chat(body: Mapping[str, Any]) -> None:
    """A body of OpenAI's chat completions."""
    if types := _types("openai.types.chat.completion_create_params"):
        _check(types.CompletionCreateParamsStreaming, body)


def check_responses(body: Mapping[str, Any]) -> None:
    """A body of OpenAI's Responses API."""
    if types := _types("openai.types.responses.response_create_params"):
        _check(types.ResponseCreateParamsStreaming, body)


def check_gemini(body: Mapping[str, Any]) -> None:
    """A body of Gemini's `generateContent`."""
    types = _types("google.genai.types")
    if types is None:
        return
    config = {
        **body.get("generationConfig", {}),
        "systemInstruction": body.get("systemInstruction"),
        "tools": body.get("tools"),
    }
    for content in body["contents"]:
        types.Content.model_validate(content)
    types.GenerateContentConfig.model_validate(config)
    unknown = set(body) - {"contents", "generationConfig", "systemInstruction", "tools"}
    assert unknown == set()


def _types(name: str) -> Any:
    """The module of a vendor's SDK, None where it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


def _check(kind: Any, body: Mapping[str, Any]) -> None:
    assert list(_misfits(kind, dict(body), "body")) == []


def _misfits(kind: Any, value: Any, place: str) -> Iterator[str]:
    """The places where a value is not what the type says; a field that is not in it is one."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Annotated, Required, NotRequired):
        yield from _misfits(args[0], value, place)
    elif origin in (Union, UnionType):
        found = [list(_misfits(each, value, place)) for each in args]
        yield from min(found, key=_nearness) if all(found) else ()
    elif origin is Literal:
        yield from () if value in args else (f"{place}: {value!r} is none of {args}",)
    elif is_typeddict(kind):
        yield from _misfits_in_fields(kind, value, place)
    elif origin is not None and issubclass(origin, Mapping):
        right = isinstance(value, dict)
        yield from () if right else (f"{place}: no object",)
    elif origin is not None:  # all other generic types are sequences
        if not isinstance(value, list):
            yield f"{place}: no list"
            return
        for number, each in enumerate(value):
            yield from _misfits(args[0], each, f"{place}[{number}]")
    elif kind not in (Any, object) and not isinstance(value, _PLAIN.get(kind, kind)):
        yield f"{place}: {value!r} is no {kind.__name__}"


_PLAIN: Mapping[Any, Any] = {float: (int, float), None: type(None)}


def _misfits_in_fields(kind: Any, value: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place}: no object"
        return
    hints = get_type_hints(kind, include_extras=True)
    open_ended = getattr(kind, "__pydantic_config__", {}).get("extra") == "allow"
    for name in kind.__required_keys__ - set(value):
        yield f"{place}.{name} is missing"
    for name, each in value.items():
        if name in hints:
            yield from _misfits(hints[name], each, f"{place}.{name}")
        elif not open_ended:
            yield f"{place}.{name} is unknown"


def _nearness(misfits: list[str]) -> tuple[bool, int, int]:
    """Of the members of a union that one is meant whose `type` or `role` is right."""
    tagged = any(".type: " in each or ".role: " in each for each in misfits[:3])
    return tagged, len(misfits), -max(map(len, misfits))
