"""The encoder of messages and tools for litellm: OpenAI's format with Anthropic's signatures."""

import json
from collections.abc import Sequence
from typing import Any

from pegboard.providers import Call, Media, ModelMessage, ModelRequest, Reasoning, Result, Text
from pegboard.schema.model import Model

_EPHEMERAL = {"type": "ephemeral"}
_IMAGES_AND_FILES = {"image": "image", "application/pdf": "pdf", "audio": "audio", "video": "video"}


def messages_of(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the system prompt and the history, with prompt cache marks for Claude models."""
    # In one message, because the chat templates of many models take no second one.
    text = "\n\n".join(filter(None, request.system))
    system: list[dict[str, Any]] = [{"role": "system", "content": text}] if text else []
    history = [value for message in request.messages for value in _message(message, request.model)]
    if "claude" in request.model.id.lower():
        # Anthropic caches what comes before a mark: the system prompt, and all of the history.
        for marked in (*system, *history[-1:]):
            marked["cache_control"] = _EPHEMERAL
    return [*system, *history]


def tools_of(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the request's tools in OpenAI's format."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in request.tools
    ]


def _message(message: ModelMessage, model: Model) -> list[dict[str, Any]]:
    match message.role:
        case "user":
            return [{"role": "user", "content": _content(message.content, model)}]
        case "assistant":
            return [_answer(message)]
        case "tool":
            return _results(message, model)


def _answer(message: ModelMessage) -> dict[str, Any]:
    text = "".join(part.text for part in message.content if isinstance(part, Text))
    calls = [
        {
            "id": part.id,
            "type": "function",
            "function": {"name": part.name, "arguments": json.dumps(dict(part.input))},
        }
        for part in message.content
        if isinstance(part, Call)
    ]
    signed = [
        block
        for part in message.content
        if isinstance(part, Reasoning) and part.metadata
        for block in part.metadata.get("litellm", {}).get("thinking_blocks", ())
    ]
    value: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        value["tool_calls"] = calls
    if signed:
        value["thinking_blocks"] = signed
    return value


def _results(message: ModelMessage, model: Model) -> list[dict[str, Any]]:
    results = [part for part in message.content if isinstance(part, Result)]
    values: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": part.id, "name": part.name, "content": part.output}
        for part in results
    ]
    media = [item for part in results for item in part.media]
    if media:
        heading = Text(text="Attached by the tools above:")
        values.append({"role": "user", "content": _content((heading, *media), model)})
    return values


def _content(content: Sequence[object], model: Model) -> str | list[dict[str, Any]]:
    parts = [
        _media(part, model) if isinstance(part, Media) else {"type": "text", "text": part.text}
        for part in content
        if isinstance(part, Media | Text)
    ]
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _media(media: Media, model: Model) -> dict[str, Any]:
    kind = _IMAGES_AND_FILES.get(media.mime) or media.mime.partition("/")[0]
    if not getattr(model.capabilities.input, kind, False):
        name = f'"{media.filename}"' if media.filename else f"a file of type {media.mime}"
        text = f"ERROR: {name} was left out, because this model does not read {kind} input."
        return {"type": "text", "text": f"{text} Tell the user."}
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": media.url}}
    file = {"filename": media.filename or "file", "file_data": media.url, "format": media.mime}
    return {"type": "file", "file": file}
