"""A request to a model, encoded as the body of a chat completion.

Each message of the history is encoded once and stored with it. A step of a long session then only
costs the joining of bytes.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from pegboard.http import Endpoint, Post, encode_json, media_inputs, note_instead, valid_id
from pegboard.providers import Call, Media, ModelMessage, ModelRequest, Result, Text, ToolDefinition
from pegboard.schema.model import Model
from pegboard.unstable import media_bytes, media_kind, snake_case
from pegboard_plugins.openai_compatible.quirks import Quirks
from pegboard_plugins.openai_compatible.thinking import EFFORT, effort_of, with_thoughts

_SHORT_ID = re.compile(r"[0-9A-Za-z]{9}")
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_END = b"}]}"
_MARK = b',"cache_control":{"type":"ephemeral"}'
MARKED_TURNS = 2
"""The newest turn, and the one that the last request ended with, which is in the cache."""
_FILLER = b'{"role":"assistant","content":"Done."}'


class Dialect(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The properties of a model that change its requests and encoded messages.

    `inputs` are the accepted media. `reasoning_field` is the field for the model's earlier
    reasoning. `marks` tells whether requests must mark the messages up to which the server caches.
    """

    inputs: frozenset[str] = frozenset()
    reasoning_field: str = ""
    marks: bool = False
    quirks: Quirks = Quirks()

    @cached_property
    def key(self) -> str:
        """The key of the encoded form of a message."""
        rules = f"{self.quirks.short_ids:d}{self.marks:d}"
        return f"openai:{':'.join((*sorted(self.inputs), self.reasoning_field, rules))}"


_MISTRAL = re.compile(r"(?i)(mis|minis|magis|codes|devs|pix)tral|mixtral")
"""Models of Mistral's, whose templates check ids and the order of messages on any server."""


def encode(request: ModelRequest, endpoint: Endpoint, key: str, *, quirks: Quirks) -> Post:
    """Return the request to a server with these quirks."""
    return Post(
        endpoint.at("chat/completions"),
        {"authorization": f"Bearer {key}"} if key else {},
        encode_request(request, _dialect(request.model, quirks)),
    )


def _dialect(model: Model, quirks: Quirks) -> Dialect:
    interleaved = model.capabilities.interleaved
    cached = model.cache_style
    return Dialect(
        inputs=media_inputs(model),
        reasoning_field=interleaved.get("field", "") if isinstance(interleaved, dict) else "",
        marks=cached == "marks" or (cached is None and "claude" in model.api.id.lower()),
        quirks=replace(quirks, short_ids=True) if _MISTRAL.search(model.api.id) else quirks,
    )


def encode_request(request: ModelRequest, dialect: Dialect) -> bytes:
    """Return the body of the request, without unneeded bytes."""
    fields = {
        "model": request.model.api.id,
        "stream": True,
        **({"stream_options": {"include_usage": True}} if dialect.quirks.usage_option else {}),
        **({"tools": [_tool(tool) for tool in request.tools]} if request.tools else {}),
        **_parameters(request, dialect),
        **effort_of(request, dialect.quirks),
    }
    # In one message, because the chat templates of many models take no second one.
    text = "\n\n".join(filter(None, request.system))
    content = _folded([{"type": "text", "text": text}], dialect)
    system = [encode_json({"role": "system", "content": content})] if text else []
    history = _history(request.messages, dialect)
    if dialect.marks:
        system = [_marked(each) for each in system]
        history = _with_marks(request.messages, history)
    return b'%b,"messages":[%b]}' % (encode_json(fields)[:-1], b",".join([*system, *history]))


def encode_message(message: ModelMessage, dialect: Dialect) -> bytes:
    """Return a message as JSON objects separated by commas; cache them on the message."""
    objects = _ENCODERS[message.role](message, dialect)
    kept = message.encoded[dialect.key] = b",".join([encode_json(value) for value in objects])
    return kept


def _history(messages: Sequence[ModelMessage], dialect: Dialect) -> list[bytes]:
    """Return the encoded messages; reuse the bytes cached on each message."""
    key = dialect.key
    found = [message.encoded.get(key) or encode_message(message, dialect) for message in messages]
    if not dialect.quirks.short_ids:
        return found
    encoded: list[bytes] = []
    before = ""
    for message, kept in zip(messages, found, strict=True):
        if before == "tool" and message.role == "user":
            encoded.append(_FILLER)
        encoded.append(kept)
        before = message.role
    return encoded


def _with_marks(messages: Sequence[ModelMessage], history: Sequence[bytes]) -> list[bytes]:
    """Add a cache mark to the last `MARKED_TURNS` messages that are not the model's."""
    marked = list(history)
    turns = [place for place, each in enumerate(messages) if each.role != "assistant"]
    for place in turns[-MARKED_TURNS:]:
        marked[place] = _marked(marked[place])
    return marked


def _marked(message: bytes) -> bytes:
    """Add a cache mark to the last part of a message."""
    return message.removesuffix(_END) + _MARK + _END if message.endswith(_END) else message


def _parameters(request: ModelRequest, dialect: Dialect) -> dict[str, Any]:
    """Return temperature, limits and the provider's options, which take precedence."""
    capable = request.model.capabilities.temperature
    chosen = {
        "temperature": request.temperature if capable else None,
        "top_p": request.top_p if capable else None,
        dialect.quirks.limit_field: request.max_output_tokens,
        "prompt_cache_key": request.session_id if dialect.quirks.cache_key else None,
        "response_format": _response_format(request, dialect),
        **{snake_case(name): each for name, each in request.options.items() if name not in EFFORT},
    }
    return {name: value for name, value in chosen.items() if value not in (None, "")}


def _response_format(request: ModelRequest, dialect: Dialect) -> dict[str, Any] | None:
    if request.output_schema is None or (request.tools and not dialect.quirks.form_with_tools):
        return None
    form = {"name": "answer", "schema": request.output_schema}
    return {"type": "json_schema", "json_schema": form}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _user(message: ModelMessage, dialect: Dialect) -> list[dict[str, Any]]:
    parts = [
        _media(part, dialect) if isinstance(part, Media) else {"type": "text", "text": part.text}
        for part in message.content
        if isinstance(part, Media | Text)
    ]
    return [{"role": "user", "content": _folded(parts, dialect)}]


def _assistant(message: ModelMessage, dialect: Dialect) -> list[dict[str, Any]]:
    text = "".join(part.text for part in message.content if isinstance(part, Text))
    calls = [_call(part, dialect) for part in message.content if isinstance(part, Call)]
    value: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        value["tool_calls"] = calls
    return [with_thoughts(value, message, dialect.reasoning_field)]


def _results(message: ModelMessage, dialect: Dialect) -> list[dict[str, Any]]:
    """Return a message for each tool result, and one user message with the media of all results."""
    results = [part for part in message.content if isinstance(part, Result)]
    values: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": _call_id(result.id, dialect),
            "content": _folded([{"type": "text", "text": result.output}], dialect),
        }
        for result in results
    ]
    media = [_media(item, dialect) for result in results for item in result.media]
    if media:
        if dialect.quirks.short_ids:
            values.append({"role": "assistant", "content": "Done."})
        heading = {"type": "text", "text": "Attached by the tools above:"}
        values.append({"role": "user", "content": _folded([heading, *media], dialect)})
    return values


_ENCODERS = {"user": _user, "assistant": _assistant, "tool": _results}


def _call(call: Call, dialect: Dialect) -> dict[str, Any]:
    function = {"name": call.name, "arguments": encode_json(call.input).decode()}
    return {"id": _call_id(call.id, dialect), "type": "function", "function": function}


def _call_id(given: str, dialect: Dialect) -> str:
    return valid_id(given, _SHORT_ID, 9) if dialect.quirks.short_ids else given


def _folded(parts: list[dict[str, Any]], dialect: Dialect) -> str | list[dict[str, Any]]:
    """Return the parts as one string if they are only text, since small servers accept no lists."""
    if not dialect.marks and all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _media(media: Media, dialect: Dialect) -> dict[str, Any]:
    kind, data = media_kind(media), media_bytes(media)
    if note := note_instead(media, dialect.inputs):
        return {"type": "text", "text": note}
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": media.url}}
    if kind == "pdf":
        file = {"filename": media.filename or "document.pdf", "file_data": media.url}
        return {"type": "file", "file": file}
    if kind == "audio" and data and media.mime in _AUDIO:
        audio: Mapping[str, str] = {"data": data, "format": _AUDIO[media.mime]}
        return {"type": "input_audio", "input_audio": audio}
    return {"type": "text", "text": note_instead(media, dialect.inputs, _AUDIO)}
