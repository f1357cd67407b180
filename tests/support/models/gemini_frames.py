"""Answers of Gemini's `streamGenerateContent`, as the frames of a stream."""

from collections.abc import Mapping
from typing import Any

from support.models.model_server import Piece

Part = dict[str, Any]
USAGE = {
    "promptTokenCount": 30,
    "cachedContentTokenCount": 20,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 4,
}
SIGNATURE = "c2ln"


def text(said: str, signature: str = "") -> Part:
    """A piece of text."""
    return {"text": said, **({"thoughtSignature": signature} if signature else {})}


def thought(said: str) -> Part:
    """A piece of what the model thinks."""
    return {"text": said, "thought": True}


def call(
    name: str, arguments: Mapping[str, Any], signature: str = SIGNATURE, call_id: str = ""
) -> Part:
    """A call, which comes whole."""
    made = {"name": name, "args": dict(arguments), **({"id": call_id} if call_id else {})}
    return {"functionCall": made, **({"thoughtSignature": signature} if signature else {})}


def answer(*parts: Part, reason: str | None = "STOP") -> list[Piece]:
    """A whole answer, a chunk for each part; without a reason it breaks off."""
    chunks: list[Piece] = [_chunk([part]) for part in parts]
    if reason is None:
        return chunks
    last = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": reason}
    return [*chunks, {"candidates": [last], "usageMetadata": USAGE}]


def say(said: str) -> list[Piece]:
    """An answer of one text."""
    return answer(text(said))


def _chunk(parts: list[Part]) -> Piece:
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}
