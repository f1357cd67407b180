"""Answers of Anthropic's Messages API, as the frames of a stream."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.models.model_server import Piece

Block = dict[str, Any]
USAGE = {"input_tokens": 7, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3}


def text(*pieces: str) -> Sequence[Block]:
    """A block of text, one delta for each piece."""
    return _block(
        {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    )


def thought(said: str, signature: str = "sig==") -> Sequence[Block]:
    """A block of thinking, with its signature."""
    deltas: list[Block] = [{"type": "thinking_delta", "thinking": said}] if said else []
    signed = {"type": "signature_delta", "signature": signature}
    return _block({"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed])


def opaque(block: Block) -> Sequence[Block]:
    """A block that comes whole."""
    return _block(block, [])


def call(name: str, arguments: Mapping[str, Any], call_id: str = "toolu_1") -> Sequence[Block]:
    """A call, its arguments in two pieces."""
    written = json.dumps(arguments)
    half = len(written) // 2 + 2
    return _block(
        {"type": "tool_use", "id": call_id, "name": name, "input": {}},
        [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in ("", written[:half], written[half:])
        ],
    )


def answer(
    *blocks: Sequence[Block], reason: str | None = "end_turn", usage: Mapping[str, Any] = USAGE
) -> list[Piece]:
    """A whole answer; without a reason it breaks off."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    frames: list[Piece] = [
        {"type": "message_start", "message": {**message, "usage": {**usage, "output_tokens": 1}}},
        {"type": "ping"},
    ]
    for index, block in enumerate(blocks):
        frames += [{**frame, "index": index} for frame in block]
    if reason is None:
        return frames
    delta = {"stop_reason": reason, "stop_sequence": None}
    counts = {"output_tokens": 11, "output_tokens_details": {"thinking_tokens": 4}}
    return [
        *frames,
        {"type": "message_delta", "delta": delta, "usage": counts},
        {"type": "message_stop"},
    ]


def say(said: str) -> list[Piece]:
    """An answer of one text."""
    return answer(text(said))


def _block(opened: Block, deltas: Sequence[Block]) -> Sequence[Block]:
    return [
        {"type": "content_block_start", "content_block": opened},
        *({"type": "content_block_delta", "delta": delta} for delta in deltas),
        {"type": "content_block_stop"},
    ]
