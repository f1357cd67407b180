"""Answers of OpenAI's Responses API, as the frames of a stream."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.models.model_server import Piece

Item = dict[str, Any]
USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 3},
    "output_tokens": 11,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 41,
}


def text(*pieces: str, item_id: str = "msg_1", kind: str = "output_text") -> Sequence[Item]:
    """A message, one delta for each piece; `refusal` is another kind."""
    item = {"type": "message", "id": item_id, "role": "assistant", "status": "in_progress"}
    deltas = [{"type": f"response.{kind}.delta", "delta": piece} for piece in pieces]
    done = {**item, "content": [{"type": kind, "text": "".join(pieces)}], "status": "completed"}
    return _item({**item, "content": []}, deltas, done)


def thought(*parts: str, encrypted: str = "gAAA") -> Sequence[Item]:
    """Reasoning, with a summary of these parts."""
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    deltas: list[Item] = []
    for index, part in enumerate(parts):
        kind = "response.reasoning_summary"
        deltas += [
            {"type": f"{kind}_part.added", "summary_index": index},
            {"type": f"{kind}_text.delta", "summary_index": index, "delta": part},
        ]
    return _item(item, deltas, {**item, "encrypted_content": encrypted})


def call(name: str, arguments: Mapping[str, Any], call_id: str = "call_1") -> Sequence[Item]:
    """A call, its arguments in two pieces."""
    written = json.dumps(arguments)
    item = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name}
    deltas = [
        {"type": "response.function_call_arguments.delta", "delta": piece}
        for piece in (written[:4], written[4:])
    ]
    return _item({**item, "arguments": ""}, deltas, {**item, "arguments": written})


def answer(
    *items: Sequence[Item], status: str | None = "completed", reason: str = "", **facts: Any
) -> list[Piece]:
    """A whole answer; without a status it breaks off."""
    frames: list[Piece] = [{"type": "response.created", "response": {"status": "in_progress"}}]
    for index, item in enumerate(items):
        frames += [{**frame, "output_index": index} for frame in item]
    if status is None:
        return frames
    details = {"reason": reason} if reason else None
    response = {"status": status, "incomplete_details": details, "usage": USAGE, **facts}
    return [*frames, {"type": f"response.{status}", "response": response}]


def say(said: str) -> list[Piece]:
    """An answer of one text."""
    return answer(text(said))


def _item(opened: Item, deltas: Sequence[Item], done: Item) -> Sequence[Item]:
    return [
        {"type": "response.output_item.added", "item": opened},
        *deltas,
        {"type": "response.output_item.done", "item": done},
    ]
