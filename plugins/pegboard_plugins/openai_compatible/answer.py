"""The chunks of a chat completion, converted to Pegboard's stream of events."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pegboard.http import AnswerBlocks, AnswerCalls, ErrorFrameError
from pegboard.providers import (
    FinishReason,
    Heartbeat,
    StreamEvent,
    StreamFinish,
    ToolDefinition,
    ToolInputStart,
    Usage,
)
from pegboard.unstable import finish_of, forgiven, mapping_in
from pegboard_plugins.openai_compatible.thinking import (
    PARTS,
    TAGS,
    Kind,
    TagSplitter,
    add_details,
    reasoning_metadata,
)
from pegboard_plugins.openai_compatible.writtencalls import WrittenCalls

_INDEX_DIGITS = 9
_CUT = ("length", "content-filter", "error")
"""Ends that leave a tool call in the middle, even where its text happens to parse."""


class FunctionPiece(msgspec.Struct, frozen=True):
    """A part of a tool call; `arguments` is a string, but some servers send an object."""

    name: Any = None
    arguments: Any = None


class CallPiece(msgspec.Struct, frozen=True):
    """A fragment of a tool call; servers may omit any field, or send numbers as strings."""

    index: Any = None
    id: Any = None
    function: FunctionPiece | None = None


class Delta(msgspec.Struct, frozen=True):
    """The content that a chunk adds; servers use three names for reasoning."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: Any = None
    tool_calls: list[CallPiece | None] | None = None


class AnswerChoice(msgspec.Struct, frozen=True):
    """The answer in a chunk: `delta` in a stream, `message` in a whole answer."""

    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: Any = None
    error: Any = None


class AnswerChunk(msgspec.Struct, frozen=True):
    """One event of the HTTP response stream, or a whole answer."""

    choices: list[AnswerChoice | None] | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(AnswerChunk).decode


def chunk_from(payload: bytes) -> AnswerChunk:
    """Parse the chunk in an event's data; invalid Unicode becomes replacement characters.

    A `null`, number, string or list becomes an empty chunk.

    :raises ValueError: when the data are not the JSON of a chunk.
    """
    try:
        return _decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = forgiven(payload).encode()
        return _decode(value) if value[:1] == b"{" else AnswerChunk()
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


class ChatReader:
    """A converter from the chunks of one answer to stream events.

    `finished` tells whether the model has reported the end of the answer. `end` yields the last
    events.
    """

    def __init__(self, tools: Sequence[ToolDefinition] = ()) -> None:
        self.finished = False
        self._written = WrittenCalls({tool.name for tool in tools})
        self._reason: FinishReason = "unknown"
        self._note = ""
        self._usage: dict[str, Any] | None = None
        self._refused = False
        self._blocks = AnswerBlocks(self._metadata)
        self._field = ""
        self._details: list[dict[str, Any]] = []
        self._tags = TagSplitter()
        self._calls = AnswerCalls()

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """Yield the events of the next chunk; after the end of the answer, only its usage counts.

        :raises ValueError: when the frame is not the JSON of a chunk.
        :raises ErrorFrameError: when the frame is an error before the end of the answer.
        """
        chunk = chunk_from(frame)
        first = chunk.choices[0] if chunk.choices else None
        error = chunk.error or (first and first.error)
        if error and not (self.finished and self._reason != "error"):
            raise ErrorFrameError(error)
        if chunk.usage and isinstance(chunk.usage, dict):
            self._usage = chunk.usage
        if self.finished or not chunk.choices or chunk.choices[0] is None:
            return
        choice = chunk.choices[0]
        delta = choice.delta or choice.message
        if delta is not None:
            yield from self._delta(delta)
        if choice.finish_reason:
            yield from self.finish(choice.finish_reason)

    def finish(self, reason: object) -> Iterator[StreamEvent]:
        """Yield the ends of open text and thoughts, and tool calls unless the answer is cut off."""
        self.finished = True
        self._reason, self._note = finish_of(reason)
        for kind, text in self._tags.rest():
            yield from self._write(kind, text)
        yield from self._read_written()
        yield from self._blocks.close()
        if self._details:
            yield from self._blocks.write("reasoning", "")
            yield from self._blocks.close()
        if self._reason in _CUT:
            return
        yield from self._calls.end()
        if self._calls:
            self._reason = "tool-calls"
        elif self._refused:
            self._reason = "content-filter"

    def end(self) -> Iterator[StreamEvent]:
        """Yield the last events of the answer."""
        if not self.finished:
            yield from self.finish(None)
        yield StreamFinish(self._reason, usage_of(self._usage), note=self._note)

    def _delta(self, delta: Delta) -> Iterator[StreamEvent]:
        thought = delta.reasoning_content or delta.reasoning
        in_details = add_details(self._details, delta.reasoning_details)
        if thought or in_details:
            self._field = "reasoning_content" if delta.reasoning_content else "reasoning"
            yield from self._blocks.write("reasoning", _plain(thought) or in_details)
        for part in delta.content if isinstance(delta.content, list) else [delta.content]:
            if isinstance(part, dict) and part.get("type") == "thinking":
                self._field = PARTS
                yield from self._blocks.write("reasoning", _plain(part))
            elif spoken := _plain(part):
                for kind, text in self._tags.split(spoken):
                    yield from self._write(kind, text)
        if delta.refusal:
            self._refused = True
            yield from self._blocks.write("text", _plain(delta.refusal))
        if delta.tool_calls:
            for piece in delta.tool_calls:
                if piece is not None:
                    yield from self._call(piece)

    def _write(self, kind: Kind, text: str) -> Iterator[StreamEvent]:
        if kind == "thought":
            self._field = TAGS
            yield from self._blocks.write("reasoning", text)
        elif shown := self._written.feed(text):
            yield from self._blocks.write("text", shown)
        else:
            yield Heartbeat()

    def _read_written(self) -> Iterator[StreamEvent]:
        """Yield tool calls if the answer's text consists only of calls, else the text held back."""
        has_ended = self._reason not in _CUT and not self._calls
        calls, text = self._written.rest(has_ended=has_ended)
        if text:
            yield from self._blocks.write("text", text)
        for place, call in enumerate(calls):
            yield from self._blocks.close()
            yield from self._calls.add(place, "", call.name, call.arguments)
        self._note = self._note or self._written.note

    def _metadata(self, kind: str) -> dict[str, Any] | None:
        """Return the metadata of a thought that a later request has to send back."""
        if kind != "reasoning":
            return None
        details, self._details = self._details, []
        return reasoning_metadata(self._field, details)

    def _call(self, piece: CallPiece) -> Iterator[StreamEvent]:
        function = piece.function or FunctionPiece()
        index, given, name = _index(piece.index), _id(piece.id), _plain(function.name)
        events = (*self._calls.add(index, given, name, _arguments(function.arguments)),)
        if any(isinstance(event, ToolInputStart) for event in events):
            yield from self._blocks.close()
        yield from events


def usage_of(counts: Mapping[str, Any] | None) -> Usage | None:
    """Return token counts, cached and reasoning tokens apart; None if they are unreliable."""
    if not counts:
        return None
    read, wrote = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
    if read is None or wrote is None:
        return None
    prompt = mapping_in(counts.get("prompt_tokens_details"))
    completion = mapping_in(counts.get("completion_tokens_details"))
    cached = _count(prompt, "cached_tokens") or _count(counts, "prompt_cache_hit_tokens") or 0
    reasoned = _count(completion, "reasoning_tokens") or 0
    if counts.get("total_tokens") == read + wrote + reasoned:
        wrote += reasoned  # xAI leaves them out of `completion_tokens`
    reasoned = min(reasoned, wrote)
    cached = min(cached, read)
    stored = min(_count(prompt, "cache_write_tokens") or 0, read - cached)
    return Usage(
        input=read - cached - stored,
        output=wrote - reasoned,
        reasoning=reasoned,
        cache_read=cached,
        cache_write=stored,
    )


def _count(counts: Mapping[str, Any], name: str) -> int | None:
    value = counts.get(name)
    sane = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    return value if sane else None


def _index(value: object) -> int | None:
    """Parse the index of a call, which some servers write as a string or a float."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= _INDEX_DIGITS:
        return int(value)
    return int(value) if isinstance(value, int | float) else None


def _id(value: object) -> str:
    """Return the id of a call, which some servers send as a number; "" if there is none."""
    return str(value) if isinstance(value, str | int | float) else ""


def _plain(content: object) -> str:
    """Return the text of a content that may be a list of parts, as Mistral sends it."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_plain(part) for part in content)
    if isinstance(content, dict):
        return _plain(content.get("text") or content.get("thinking") or "")
    return ""


def _arguments(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
