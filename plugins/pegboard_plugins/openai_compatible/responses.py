"""A request to OpenAI's Responses API (platform.openai.com/docs/api-reference/responses).

OpenAI stores nothing unless the user asks for it (see `chain`). Reasoning items are encrypted and
sent back unchanged. Each message of the history is encoded once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pegboard.http import Endpoint, Post, encode_json, media_inputs, note_instead, valid_id
from pegboard.providers import (
    Call,
    Content,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    Text,
)
from pegboard.unstable import media_bytes, media_kind, snake_case

OWN = "responses"
"""What is under this name in the metadata of parts is ours."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_LENGTH = 24
_MIMES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"})
_REASONING = {
    "reasoningEffort": "effort",
    "reasoning_effort": "effort",
    "effort": "effort",
    "reasoningSummary": "summary",
}
_VERBOSITY = ("textVerbosity", "verbosity")
_ENCRYPTED = "reasoning.encrypted_content"


def encode(request: ModelRequest, endpoint: Endpoint, key: str) -> Post:
    """Return the HTTP request for a response that the server does not store."""
    return post(endpoint, key, encode_fields(request, store=False), encode_history(request))


def post(endpoint: Endpoint, key: str, fields: bytes, items: Sequence[bytes]) -> Post:
    """Return the request with these encoded fields and items."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    body = b'%b,"input":[%b]}' % (fields[:-1], b",".join(items))
    return Post(endpoint.at("responses"), headers, body)


def encode_fields(request: ModelRequest, *, store: bool) -> bytes:
    """Return the request body's fields as JSON, without `input`."""
    options, able = request.options, request.model.capabilities
    own = {*_REASONING, *_VERBOSITY}
    verbosity = next((options[name] for name in _VERBOSITY if name in options), None)
    chosen = {
        "model": request.model.api.id,
        "stream": True,
        "store": store,
        "instructions": "\n\n".join(filter(None, request.system)),
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ],
        "temperature": request.temperature if able.temperature else None,
        "top_p": request.top_p if able.temperature else None,
        "max_output_tokens": request.max_output_tokens,
        "prompt_cache_key": request.session_id,
        "include": [_ENCRYPTED] if able.reasoning else None,
        "reasoning": _thinking(options) if able.reasoning else None,
        "text": _text_options(request, verbosity),
        **{snake_case(name): value for name, value in options.items() if name not in own},
    }
    return encode_json(
        {name: value for name, value in chosen.items() if value not in (None, "", [])}
    )


def _text_options(request: ModelRequest, verbosity: object) -> dict[str, Any] | None:
    form = {"type": "json_schema", "name": "answer", "schema": request.output_schema}
    chosen = {"verbosity": verbosity, "format": form if request.output_schema else None}
    return {name: value for name, value in chosen.items() if value} or None


def _thinking(options: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {_REASONING[name]: value for name, value in options.items() if name in _REASONING}
    return {"summary": "auto", **chosen}


def encode_history(request: ModelRequest) -> list[bytes]:
    """Return the encoded items of each message; reuse the bytes cached on each message."""
    kinds = media_inputs(request.model)
    form = f"{OWN}:{':'.join(sorted(kinds))}"
    messages = request.messages
    found = [each.encoded.get(form) or _encode_message(each, kinds, form) for each in messages]
    return [items for items in found if items != _NOTHING]


_NOTHING = b" "
"""The content of a message that has nothing for the model."""


def _encode_message(message: ModelMessage, kinds: frozenset[str], form: str) -> bytes:
    content = message.content
    if message.role == "assistant":
        encoded = encode_answer(content)
    elif message.role == "tool":
        encoded = _joined(_result(part, kinds) for part in content if isinstance(part, Result))
    else:
        encoded = _joined(_message(content, kinds))
    kept = message.encoded[form] = encoded or _NOTHING
    return kept


def encode_answer(content: tuple[Content, ...]) -> bytes:
    """Return the encoded items of a model's answer; empty if no item must be sent back."""
    return _joined(_answered(content))


def _joined(items: Iterable[dict[str, Any]]) -> bytes:
    return b",".join([encode_json(each) for each in items])


def _message(content: tuple[Content, ...], kinds: frozenset[str]) -> Iterator[dict[str, Any]]:
    parts = [_input(part, kinds) for part in content if isinstance(part, Text | Media)]
    if parts:
        yield {"type": "message", "role": "user", "content": parts}


def _answered(content: tuple[Content, ...]) -> list[dict[str, Any]]:
    """Return the items of an answer, without reasoning of other models or at the answer's end.

    Items keep their ids only if the answer has reasoning, to which an id refers.
    """
    items = [item for part in content for item in _item(part)]
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    if any(item["type"] == "reasoning" for item in items):
        return [_with_id(item) for item in items]
    return [{name: value for name, value in item.items() if name != "id"} for item in items]


def _with_id(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] != "message" or "id" not in item:
        return item
    content = [{"type": "output_text", "text": item["content"], "annotations": []}]
    return {**item, "status": "completed", "content": content}


def _item(part: Content) -> Iterator[dict[str, Any]]:
    own = _own(part)
    named = {"id": own["id"]} if own.get("id") else {}
    match part:
        case Text(text=text) if text.strip():
            phase = {"phase": own["phase"]} if own.get("phase") else {}
            yield {"type": "message", "role": "assistant", "content": text, **named, **phase}
        case Reasoning(text=text) if own.get("encrypted_content"):
            summary = [{"type": "summary_text", "text": text}] if text else []
            encrypted = own["encrypted_content"]
            yield {"type": "reasoning", **named, "summary": summary, "encrypted_content": encrypted}
        case Reasoning() if "item" in own:
            yield own["item"]
        case Call():
            yield {
                "type": "function_call",
                "call_id": valid_id(part.id, _ID, _ID_LENGTH),
                "name": part.name,
                "arguments": encode_json(part.input).decode(),
                **named,
            }
        case _:
            return


def _own(part: Content) -> Mapping[str, Any]:
    metadata = part.metadata if isinstance(part, Text | Reasoning | Call) else None
    own = (metadata or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def _result(part: Result, kinds: frozenset[str]) -> dict[str, Any]:
    """Return the item of a tool result, with the result's images and files."""
    output: Any = part.output
    if part.media:
        text = {"type": "input_text", "text": part.output}
        output = [text, *(_input(each, kinds) for each in part.media)]
    call_id = valid_id(part.id, _ID, _ID_LENGTH)
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _input(part: Text | Media, kinds: frozenset[str]) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if note := note_instead(part, kinds, _MIMES):
        return {"type": "input_text", "text": note}
    if media_kind(part) == "image":
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    if not media_bytes(part):
        return {"type": "input_file", "file_url": part.url}
    name = part.filename or "document.pdf"
    return {"type": "input_file", "filename": name, "file_data": part.url}
