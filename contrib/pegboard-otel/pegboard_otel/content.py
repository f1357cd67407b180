"""The contents of messages and calls, recorded only if the user's environment enables this."""

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
    """Return where to record contents; an unknown setting means nowhere."""
    return _KNOWN.get(os.environ.get(VARIABLE, "").strip().upper(), "NO_CONTENT")


def limited(text: str) -> str:
    """Return the text without secrets, cut to the size limit of attributes."""
    raw = redact(text).encode(errors="replace")
    return raw[:LIMIT_BYTES].decode(errors="ignore")


def news(messages: Sequence[ModelMessage]) -> str:
    """Return the messages since the model's last answer, as JSON of the GenAI conventions."""
    own = [at for at, each in enumerate(messages) if each.role == "assistant"]
    found = messages[own[-1] + 1 :] if own else messages
    return _json([{"role": each.role, "parts": _parts(each)} for each in found])


def answer(text: str) -> str:
    """Return a text of the model as JSON of the GenAI conventions."""
    parts = [{"type": "text", "content": limited(text)}]
    return _json([{"role": "assistant", "parts": parts}])


def value(found: object) -> str:
    """Return a string as it is, or another value as JSON, without secrets and cut to the limit."""
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
