"""The encoder of requests for `streamGenerateContent` (ai.google.dev/api/generate-content).

Each message of the history is encoded once, and its bytes are cached on the message. The model's
thoughts stay with Google. A signature represents them, and the next request sends it back in the
same part.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pegboard.http import Endpoint, Post, encode_json, media_inputs, note_instead
from pegboard.providers import Call, Content, Media, ModelMessage, ModelRequest, Result, Text
from pegboard.unstable import media_bytes
from pegboard_plugins.gemini.schemas import documented

OWN = "gemini"
"""What is under this name in the metadata of parts is ours."""
NO_SIGNATURE = "skip_thought_signature_validator"
"""Stands in calls that another model made (ai.google.dev/gemini-api/docs/thought-signatures)."""
_FIRST_SIGNING = (3, 0)
_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24_576, "max": 32_768}
"""Thinking tokens by the name of an effort, for models that take a number."""
_TOP = ("safetySettings", "toolConfig", "cachedContent", "labels")
"""Options that belong next to `generationConfig` and not into it."""
_EFFORT = ("reasoningEffort", "effort")
_NOTHING = b" "
"""The content of a message that has nothing for the model."""


def encode(request: ModelRequest, endpoint: Endpoint, key: str) -> Post:
    """Encode the request."""
    name = quote(request.model.api.id, safe="")
    url = endpoint.at(f"models/{name}:streamGenerateContent")
    url += "&alt=sse" if "?" in url else "?alt=sse"
    return Post(url, {"x-goog-api-key": key} if key else {}, _body(request))


def _body(request: ModelRequest) -> bytes:
    options, able = request.options, request.model.capabilities
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "parametersJsonSchema": documented(tool.parameters),
        }
        for tool in request.tools
    ]
    own = {*_TOP, *_EFFORT, "thinkingConfig"}
    config = {
        "temperature": request.temperature if able.temperature else None,
        "topP": request.top_p if able.temperature else None,
        "maxOutputTokens": request.max_output_tokens,
        "thinkingConfig": _thinking(request),
        # Most models refuse a form of the answer next to functions.
        **(_form(request) if not tools else {}),
        **{name: value for name, value in options.items() if name not in own},
    }
    system = [{"text": text} for text in request.system if text.strip()]
    fields = {
        "systemInstruction": {"parts": system} if system else None,
        "tools": [{"functionDeclarations": tools}] if tools else None,
        "generationConfig": {name: value for name, value in config.items() if value is not None},
        **{name: options[name] for name in _TOP if name in options},
    }
    sent = {name: value for name, value in fields.items() if value}
    history = b'"contents":[%b]}' % b",".join(_history(request))
    return (b"%b," % encode_json(sent)[:-1] if sent else b"{") + history


def _form(request: ModelRequest) -> dict[str, Any]:
    """Return the settings that demand an answer by `output_schema`, or {} without a schema."""
    if request.output_schema is None:
        return {}
    schema = documented(request.output_schema)
    return {"responseMimeType": "application/json", "responseJsonSchema": schema}


def _thinking(request: ModelRequest) -> dict[str, Any] | None:
    """Return the thinking settings, with an effort level if the model accepts it, else a budget."""
    options = request.options
    if not request.model.capabilities.reasoning:
        return None
    given = options.get("thinkingConfig")
    chosen = dict(given) if isinstance(given, dict) else {}
    effort = next((options[name] for name in _EFFORT if options.get(name)), None)
    if effort and _signs(request):
        chosen["thinkingLevel"] = effort
    elif effort in _BUDGETS:
        chosen["thinkingBudget"] = _BUDGETS[str(effort)]
    if "thinkingLevel" in chosen and "thinkingBudget" in chosen:  # the API takes one of both
        del chosen["thinkingBudget" if _signs(request) else "thinkingLevel"]
    return {"includeThoughts": True, **chosen}


def version_of(model_id: str) -> tuple[int, ...]:
    """Return a model's version, such as (2, 5) for `gemini-2.5-pro`; () if the name has none."""
    found = re.search(r"gemini-(\d+)(?:\.(\d+))?", model_id)
    return tuple(int(number) for number in found.groups(default="0")) if found else ()


def _signs(request: ModelRequest) -> bool:
    """Return whether the model needs signed calls and accepts an effort level, as Gemini 3 does."""
    by_level = request.model.reasoning_style == "level"
    return by_level or version_of(request.model.api.id) >= _FIRST_SIGNING


def _history(request: ModelRequest) -> list[bytes]:
    """Return the encoded messages of the request; reuse the bytes cached on each message."""
    kinds, signs = media_inputs(request.model), _signs(request)
    form = f"{OWN}:{':'.join((*sorted(kinds), str(signs)))}"
    found = []
    for message in request.messages:
        kept = message.encoded.get(form)
        if kept is None:
            parts = list(_parts(message, kinds, signs=signs))
            role = "model" if message.role == "assistant" else "user"
            kept = encode_json({"role": role, "parts": parts}) if parts else _NOTHING
            message.encoded[form] = kept
        found.append(kept)
    return [each for each in found if each != _NOTHING]


def _parts(
    message: ModelMessage, kinds: frozenset[str], *, signs: bool
) -> Iterator[dict[str, Any]]:
    """Yield the parts of a message, each with its signature if it has one.

    If `signs`, the model needs a signature on the first call of a step; a placeholder stands in for
    a missing one.
    """
    unsigned = signs
    for part in message.content:
        signature = _own(part).get("signature")
        signed = {"thoughtSignature": signature} if signature else {}
        match part:
            case Text(text=text) if text.strip() or signed:
                yield {"text": text, **signed}
            case Media():
                yield _media(part, kinds)
            case Call():
                stand_in = {"thoughtSignature": NO_SIGNATURE} if unsigned else {}
                unsigned = False
                call = {**_given_id(part), "name": part.name, "args": part.input}
                yield {"functionCall": call, **(signed or stand_in)}
            case Result():
                yield from _result(part, kinds, inside=signs)
            case _:
                continue


def _result(part: Result, kinds: frozenset[str], *, inside: bool) -> Iterator[dict[str, Any]]:
    """Yield a tool result, with the media that the tool returned.

    If `inside`, the model reads inline media within the result; other media follow as own parts.
    """
    media = [_media(each, kinds) for each in part.media]
    said = {"error" if part.is_error else "output": part.output}
    nested = {"parts": [each for each in media if "inlineData" in each]} if inside else {}
    response = {"name": part.name, "response": said, **(nested if nested.get("parts") else {})}
    yield {"functionResponse": response}
    yield from (each for each in media if not (inside and "inlineData" in each))


def _given_id(part: Call) -> dict[str, str]:
    given = _own(part).get("id")
    return {"id": given} if given else {}


def _own(part: Content) -> Mapping[str, Any]:
    metadata = part.metadata if isinstance(part, Text | Call) else None
    own = (metadata or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def _media(media: Media, kinds: frozenset[str]) -> dict[str, Any]:
    if note := note_instead(media, kinds):
        return {"text": note}
    if data := media_bytes(media):
        return {"inlineData": {"mimeType": media.mime, "data": data}}
    return {"fileData": {"mimeType": media.mime, "fileUri": media.url}}
