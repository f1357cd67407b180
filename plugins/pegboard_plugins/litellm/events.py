"""A reader that turns litellm's chunks into Pegboard's stream events."""

from collections.abc import Iterator
from typing import Any

from pegboard.http import AnswerBlocks, AnswerCalls
from pegboard.providers import (
    StreamEvent,
    StreamFinish,
    ToolInputStart,
    Usage,
)
from pegboard.unstable import finish_of

_CUT = ("length", "content-filter", "error")
_MOST_TOKENS = 1 << 40


class ChunkReader:
    """Reads the chunks of one answer, which litellm gives in one form for all providers."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._usage: Usage | None = None
        self._blocks = AnswerBlocks(self._metadata)
        self._thoughts: list[dict[str, Any]] = []
        self._calls = AnswerCalls()

    def read(self, chunk: Any) -> Iterator[StreamEvent]:  # noqa: ANN401 - litellm's object
        """Yield the events of the next chunk."""
        counts = getattr(chunk, "usage", None)
        if counts is not None:
            self._usage = usage_of(counts)
        for choice in chunk.choices[:1]:
            yield from self._delta(choice.delta)
            self._reason = choice.finish_reason or self._reason

    def finish(self, reason: str) -> None:
        """Set the reason why the answer ended, in place of the last chunk's reason."""
        self._reason = reason

    def end(self) -> Iterator[StreamEvent]:
        """Yield the last events of an answer whose stream has ended properly."""
        yield from self._blocks.close()
        reason, note = finish_of(self._reason or "stop")
        if reason not in _CUT:
            yield from self._calls.end()
            if self._calls:
                reason = "tool-calls"
        yield StreamFinish(reason, self._usage, note=note)

    def _delta(self, delta: Any) -> Iterator[StreamEvent]:  # noqa: ANN401 - litellm's object
        thought = getattr(delta, "reasoning_content", None)
        self._thoughts += getattr(delta, "thinking_blocks", None) or ()
        if thought:
            yield from self._blocks.write("reasoning", thought)
        if delta.content:
            yield from self._blocks.write("text", delta.content)
        for piece in delta.tool_calls or ():
            yield from self._call(piece)

    def _call(self, piece: Any) -> Iterator[StreamEvent]:  # noqa: ANN401 - litellm's object
        function = piece.function
        name, text = function.name or "", function.arguments or ""
        events = (*self._calls.add(piece.index, piece.id or "", name, text),)
        if any(isinstance(event, ToolInputStart) for event in events):
            yield from self._blocks.close()
        yield from events

    def _metadata(self, kind: str) -> dict[str, Any] | None:
        """Return the metadata of a reasoning block, which a later request sends back, or None."""
        if kind != "reasoning":
            return None
        blocks, self._thoughts = _joined(self._thoughts), []
        return {"litellm": {"thinking_blocks": blocks}} if blocks else None


def usage_of(counts: Any) -> Usage | None:  # noqa: ANN401 - litellm's object
    """Return token counts, cached and reasoning tokens apart; None if a main count is missing."""
    read, wrote = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
    if read is None or wrote is None:
        return None
    prompt = getattr(counts, "prompt_tokens_details", None)
    completion = getattr(counts, "completion_tokens_details", None)
    cached = min(_count(prompt, "cached_tokens") or 0, read)
    stored = min(_count(counts, "cache_creation_input_tokens") or 0, read - cached)
    reasoned = min(_count(completion, "reasoning_tokens") or 0, wrote)
    return Usage(
        input=read - cached - stored,
        output=wrote - reasoned,
        reasoning=reasoned,
        cache_read=cached,
        cache_write=stored,
    )


def _count(counts: Any, name: str) -> int | None:  # noqa: ANN401 - litellm's object
    value = getattr(counts, name, None) or 0
    return value if isinstance(value, int) and 0 <= value < _MOST_TOKENS else None


def _joined(pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the fragments of thinking blocks, as streamed, into whole blocks.

    A fragment with a signature ends a block.
    """
    blocks: list[dict[str, Any]] = []
    text = ""
    for piece in pieces:
        if piece.get("type") == "redacted_thinking":
            blocks.append(dict(piece))
            continue
        text += piece.get("thinking") or ""
        if piece.get("signature"):
            blocks.append({"type": "thinking", "thinking": text, "signature": piece["signature"]})
            text = ""
    return blocks
