"""The contents of messages and calls: in telemetry only where the user's environment says so."""

import os
from collections.abc import Sequence
from typing import Literal

import msgspec

from pegboard.plugins import redact
from pegboard.providers import Call, ModelMessage, Reasoning, Result, Text

VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LIMIT_BYTES = 8 << 10
"""The length to which each text is cut."""
Capture = Literal["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"]
_KNOWN: dict[str, Capture] = {
    "SPAN_ONLY": "SPAN_ONLY",
    "EVENT_ONLY": "EVENT_ONLY",
    "SPAN_AND_EVENT": "SPAN_AND_EVENT",
}


def capture() -> Capture:
    """Return where contents go; an unknown word is none."""
    return _KNOWN.get(os.environ.get(VARIABLE, "").strip().upper(), "NO_CONTENT")


def limited(text: str) -> str:
    """Return the text without secrets, cut to the limit."""
    raw = redact(text).encode(errors="replace")
    return raw[:LIMIT_BYTES].decode(errors="ignore")


def news(messages: Sequence[ModelMessage]) -> str:
    """Return what a request adds to the one before, in the conventions' JSON."""
    own = [at for at, each in enumerate(messages) if each.role == "assistant"]
    found = messages[own[-1] + 1 :] if own else messages
    return _json([{"role": each.role, "parts": _parts(each)} for each in found])


def answer(text: str) -> str:
    """Return a text of the model in the conventions' JSON."""
    parts = [{"type": "text", "content": limited(text)}]
    return _json([{"role": "assistant", "parts": parts}])


def value(found: object) -> str:
    """Return arguments or a result as JSON, or a text as it is."""
    return limited(found if isinstance(found, str) else _json(found))


def _parts(message: ModelMessage) -> list[dict[str, object]]:
    parts: list[dict[str, object]] = []
    for each in message.content:
        match each:
            case Text(text=text):
                parts.append({"type": "text", "content": limited(text)})
            case Reasoning(text=text):
                parts.append({"type": "reasoning", "content": limited(text)})
            case Call():
                said = value(each.input)
                parts.append(
                    {"type": "tool_call", "id": each.id, "name": each.name, "arguments": said}
                )
            case Result():
                said = limited(each.output)
                parts.append({"type": "tool_call_response", "id": each.id, "result": said})
            case _:
                parts.append({"type": "blob", "mime_type": each.mime})
    return parts


def _json(found: object) -> str:
    return msgspec.json.encode(found).decode()
