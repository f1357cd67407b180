"""The encoder of requests for the Messages API (docs.anthropic.com/en/api/messages).

Each message of the history is encoded once, and its bytes are cached on the message. The
`cache_control` marks move from step to step, so each request inserts them into those bytes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pegboard.http import Endpoint, Post, encode_json, media_inputs, note_instead, valid_id
from pegboard.providers import Call, Media, ModelMessage, ModelRequest, Reasoning, Result, Text
from pegboard.unstable import media_bytes, snake_case
from pegboard_plugins.anthropic.thinking import thinking_of

OUTPUT_TOKENS = 8192
"""The limit for a model whose own is unknown, because the API requires one: all models allow it."""
MARKED_TURNS = 2
"""Of four marks two are for what changes: the newest turn, and the one that the last request
ended with, which is found in the cache again."""
OWN = "anthropic"
"""What is under this name in the metadata of parts is ours."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_LENGTH = 24
_MIMES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"})
_END = b"}]}"
"""How each kept message ends: its last block, the blocks, the message."""
_USER = b'{"role":"user"'
_NOTHING = b" "
"""The content of a message that has nothing for the model."""
_SAMPLING = ("temperature", "top_p", "top_k")
_CONTROL = ("cache_ttl", "tool_streaming", "thinking", "effort", "reasoning_effort", *_SAMPLING)
"""Options that are not sent as they are."""


def encode(request: ModelRequest, endpoint: Endpoint, key: str, *, version: str) -> Post:
    """Encode the request for the API version `version`, with marks for the prompt cache."""
    headers = {"anthropic-version": version, **({"x-api-key": key} if key else {})}
    return Post(endpoint.at("messages"), headers, _body(request, endpoint))


def _body(request: ModelRequest, endpoint: Endpoint) -> bytes:
    options = request.options
    mark = {"type": "ephemeral", **({"ttl": ttl} if (ttl := options.get("cacheTtl")) else {})}
    limit = request.max_output_tokens or OUTPUT_TOKENS
    thinking = thinking_of(request, limit)
    system = [{"type": "text", "text": text} for text in request.system if text.strip()]
    plain = {snake_case(name): each for name, each in options.items()}
    chosen = {
        "model": request.model.api.id,
        "max_tokens": limit,
        "stream": True,
        "tools": _marked(_tools(request, endpoint), mark),
        "system": _marked(system, mark),
        **({} if thinking else _sampling(request, plain)),
        **{name: each for name, each in plain.items() if name not in _CONTROL},
        **thinking,
    }
    if request.output_schema is not None:
        form = {"type": "json_schema", "schema": request.output_schema}
        chosen["output_config"] = {**chosen.get("output_config", {}), "format": form}
    fields = {name: value for name, value in chosen.items() if value not in (None, "", [])}
    history = _with_marks(_history(request), b',"cache_control":' + encode_json(mark))
    return b'%b,"messages":[%b]}' % (encode_json(fields)[:-1], b",".join(history))


def _sampling(request: ModelRequest, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sampling parameters, or {} if the model does not accept them.

    The API takes `temperature` or `top_p`; newer models reject both together.
    """
    if not request.model.capabilities.temperature:
        return {}
    chosen = {"temperature": request.temperature, "top_p": request.top_p}
    chosen |= {name: plain[name] for name in _SAMPLING if plain.get(name) is not None}
    if chosen["temperature"] is not None:
        del chosen["top_p"]
    return chosen


def _tools(request: ModelRequest, endpoint: Endpoint) -> list[dict[str, Any]]:
    """Return the tool definitions; let Anthropic's own server stream arguments unbuffered."""
    own = (urlsplit(endpoint.url).hostname or "").endswith("anthropic.com")
    eager = request.options.get("toolStreaming", own)
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters,
            **({"eager_input_streaming": True} if eager else {}),
        }
        for tool in request.tools
    ]


def _marked(blocks: list[dict[str, Any]], mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": mark}] if blocks else []


def _with_marks(history: Sequence[bytes], mark: bytes) -> list[bytes]:
    """Insert the prompt cache mark into the last block of each of the two newest user messages."""
    marked = list(history)
    turns = 0
    for place in reversed(range(len(marked))):
        if marked[place].startswith(_USER):
            marked[place] = marked[place].removesuffix(_END) + mark + _END
            turns += 1
            if turns == MARKED_TURNS:
                break
    return marked


def _history(request: ModelRequest) -> list[bytes]:
    """Return the encoded messages of the request; reuse the bytes cached on each message."""
    kinds = media_inputs(request.model)
    form = f"{OWN}:{':'.join(sorted(kinds))}"
    calls = f"{form}:calls"
    messages = request.messages
    found = [each.encoded.get(form) or _encode_message(each, kinds, form) for each in messages]
    ids = b" ".join([each.encoded[calls] for each in messages]).split()
    if len(set(ids)) < len(ids):
        found = _with_own_ids(messages, kinds)
    return [each for each in found if each != _NOTHING]


def _encode_message(message: ModelMessage, kinds: frozenset[str], form: str) -> bytes:
    blocks = list(_blocks(message, kinds, {}))
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    message.encoded[f"{form}:calls"] = " ".join(ids).encode()
    kept = message.encoded[form] = _encoded(message, blocks)
    return kept


def _encoded(message: ModelMessage, blocks: list[dict[str, Any]]) -> bytes:
    if not blocks:
        return _NOTHING
    role = b'{"role":"assistant"' if message.role == "assistant" else _USER
    return b'%b,"content":%b}' % (role, encode_json(blocks))


def _with_own_ids(messages: Sequence[ModelMessage], kinds: frozenset[str]) -> list[bytes]:
    """Encode a history in which the server used an id twice; give each later call a new id.

    A result follows the message with its call, so it belongs to the newest call with its id.
    """
    seen: dict[str, int] = {}
    found = []
    for message in messages:
        for part in message.content:
            if isinstance(part, Call):
                seen[part.id] = seen.get(part.id, 0) + 1
        own = {given: f"{given}#{times}" for given, times in seen.items() if times > 1}
        found.append(_encoded(message, list(_blocks(message, kinds, own))))
    return found


def _blocks(
    message: ModelMessage, kinds: frozenset[str], ids: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield a message's blocks without blank texts and unsigned thinking: the API rejects both."""
    for part in message.content:
        match part:
            case Text(text=text) if text.strip():
                yield {"type": "text", "text": text}
            case Reasoning():
                yield from _thought(part)
            case Media():
                yield _media(part, kinds)
            case Call():
                given = valid_id(ids.get(part.id, part.id), _ID, _ID_LENGTH)
                yield {"type": "tool_use", "id": given, "name": part.name, "input": part.input}
            case Result():
                given = valid_id(ids.get(part.id, part.id), _ID, _ID_LENGTH)
                yield _result(part, given, kinds)
            case _:
                continue


def _thought(part: Reasoning) -> Iterator[dict[str, Any]]:
    """Yield the block that this API sent for a thought; yield nothing for another API's thought."""
    own = (part.metadata or {}).get(OWN)
    if not isinstance(own, dict):
        return
    if "block" in own:
        yield own["block"]
    elif own.get("signature"):
        text = part.text + own.get("tail", "")
        yield {"type": "thinking", "thinking": text, "signature": own["signature"]}


def _result(part: Result, given: str, kinds: frozenset[str]) -> dict[str, Any]:
    """Return the block of a tool result, with its images and PDFs; `given` is the call's id."""
    output = part.output if part.output.strip() else "(no output)"
    content: Any = output
    if part.media:
        text = {"type": "text", "text": output}
        content = [text, *(_media(media, kinds) for media in part.media)]
    return {
        "type": "tool_result",
        "tool_use_id": given,
        "content": content,
        **({"is_error": True} if part.is_error else {}),
    }


def _media(media: Media, kinds: frozenset[str]) -> dict[str, Any]:
    if note := note_instead(media, kinds, _MIMES):
        return {"type": "text", "text": note}
    data = media_bytes(media)
    source = (
        {"type": "base64", "media_type": media.mime, "data": data}
        if data
        else {"type": "url", "url": media.url}
    )
    if media.mime != "application/pdf":
        return {"type": "image", "source": source}
    title = {"title": media.filename} if media.filename else {}
    return {"type": "document", "source": source, **title}
