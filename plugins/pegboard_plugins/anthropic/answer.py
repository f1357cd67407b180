"""A reader that turns the stream of the Messages API into Pegboard's stream events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from pegboard.http import (
    AnswerBlock,
    AnswerReader,
    ErrorFrameError,
    count_in,
    decode_json,
    encode_json,
    unique_id,
)
from pegboard.providers import (
    FinishReason,
    ModelMessage,
    ModelRequest,
    Reasoning,
    StreamEvent,
    StreamFinish,
    ToolCall,
    Usage,
)
from pegboard.unstable import AnswerKind, finish_of, mapping_in

OWN = "anthropic"
MOST_PAUSES = 10
"""An answer that is paused more often is taken as it is."""
_CUT = ("length", "content-filter", "error")
"""Ends that leave a tool call in the middle, even where its text happens to parse."""


_SHOWN: Mapping[str, AnswerKind] = {"text": "text", "thinking": "reasoning", "tool_use": "call"}
"""Kinds whose pieces are shown; others begin and end as thoughts without text."""
_BLOCK_OF: Mapping[str, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
"""The kind of block that a piece belongs to."""


@dataclass(slots=True)
class _Item:
    """A content block that the model is writing; `opened` is the block from its start event."""

    block: AnswerBlock
    opened: dict[str, Any]
    signature: str = ""

    @property
    def kind(self) -> str:
        return str(self.opened.get("type"))


class MessageReader:
    """Reads the frames of one answer; `finished` is true once the model has ended it.

    The API can pause an answer. `said` then holds the blocks for the request that continues it.
    """

    def __init__(self) -> None:
        self.finished = False
        self.pauses = 0
        self._reason: FinishReason = "unknown"
        self._note = ""
        self._paused = False
        self._stopped: list[_Item] = []
        self._counts: dict[str, Any] = {}
        self._spent = Usage()
        self._open: dict[Any, _Item] = {}
        self._calls: list[AnswerBlock] = []
        self._blocks = 0

    @property
    def said(self) -> tuple[dict[str, Any], ...]:
        """The blocks of a paused answer, as received; empty if the answer is not paused.

        Also empty, so that the answer ends, if a block cannot be sent back or after ten pauses.
        """
        if not self._paused or self.pauses > MOST_PAUSES:
            return ()
        try:
            return tuple(map(_verbatim, self._stopped))
        except ValueError:
            return ()

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """Yield the stream events of the next frame; skip events of unknown types."""
        event = mapping_in(decode_json(frame))
        match event.get("type"):
            case "message_start":
                self._begin(mapping_in(event.get("message")))
            case "message":
                yield from self._whole(event)
            case "content_block_start":
                block = dict(mapping_in(event.get("content_block")))
                yield from self._start(event.get("index"), block)
            case "content_block_delta":
                yield from self._delta(event.get("index"), mapping_in(event.get("delta")))
            case "content_block_stop":
                yield from self._stop(event.get("index"))
            case "message_delta":
                self._counts.update(_counts(event.get("usage")))
                yield from self._finish(mapping_in(event.get("delta")).get("stop_reason"))
            case "message_stop" if not self.finished:  # some servers give no reason
                yield from self._finish("end")
            case "error":
                if not self.finished:
                    raise ErrorFrameError(event.get("error"))
            case _:
                return

    def end(self) -> Iterator[StreamEvent]:
        """Yield the tool calls, unless a limit or an error cut the answer, and the final event."""
        yield from self._stop_all()
        if self._reason not in _CUT:
            for call in self._calls:
                yield call.end()
                yield ToolCall(call.id, call.name, call.text or "{}")
            if self._calls:
                self._reason = "tool-calls"
        yield StreamFinish(self._reason, self._usage(), note=self._note)

    def _begin(self, message: Mapping[str, Any]) -> None:
        self._spent = self._usage() or Usage()
        self.finished = self._paused = False
        self._counts = _counts(message.get("usage"))
        self._stopped = []

    def _whole(self, message: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield the stream events of a complete answer that the server sent as one message."""
        self._begin(message)
        for place, block in enumerate(message.get("content") or ()):
            yield from self._start(place, dict(mapping_in(block)))
            yield from self._stop(place)
        yield from self._finish(message.get("stop_reason"))

    def _start(self, index: object, opened: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._stop(index)
        self._blocks += 1
        kind = str(opened.get("type"))
        block = AnswerBlock(kind=_SHOWN.get(kind, "reasoning"), id=f"{kind}-{self._blocks}")
        if kind == "tool_use":
            given, taken = str(opened.get("id") or ""), {call.id for call in self._calls}
            block.id, block.name = unique_id(given, taken), str(opened.get("name", ""))
            self._calls.append(block)
        self._open[_key(index)] = item = _Item(block, opened, str(opened.get("signature") or ""))
        yield block.start()
        if kind != "tool_use":
            yield from self._add(item, opened.get("text" if kind == "text" else "thinking"))

    def _delta(self, index: object, delta: Mapping[str, Any]) -> Iterator[StreamEvent]:
        added = str(delta.get("type"))
        kind = _BLOCK_OF.get(added, "")
        item = self._open.get(_key(index))
        if item is None:  # some servers leave out the index, or the start of a block
            item = next((each for each in self._open.values() if each.kind == kind), None)
        if item is None and kind in ("text", "thinking"):
            yield from self._start(index, {"type": kind})
            item = self._open[_key(index)]
        if item is None:
            return
        match added:
            case "text_delta":
                yield from self._add(item, delta.get("text"))
            case "thinking_delta":
                yield from self._add(item, delta.get("thinking"))
            case "input_json_delta":
                yield from self._add(item, delta.get("partial_json"))
            case "signature_delta":
                item.signature += str(delta.get("signature") or "")
            case _:
                return

    def _add(self, item: _Item, text: object) -> Iterator[StreamEvent]:
        events = tuple(item.block.add(text))
        if item.kind in _SHOWN:
            yield from events

    def _stop(self, index: object) -> Iterator[StreamEvent]:
        item = self._open.pop(_key(index), None)
        if item is None:
            return
        self._stopped.append(item)
        if item.kind != "tool_use":  # the input of a call ends with the answer
            yield item.block.end(_metadata(item))
        elif not item.block.pieces and (given := item.opened.get("input")):
            text = given if isinstance(given, str) else encode_json(given).decode()
            yield from self._add(item, text)

    def _stop_all(self) -> Iterator[StreamEvent]:
        for index in list(self._open):
            yield from self._stop(index)

    def _finish(self, reason: object) -> Iterator[StreamEvent]:
        if not reason:
            return
        self.finished = True
        self._reason, self._note = finish_of(reason)
        self._paused = reason == "pause_turn"
        self.pauses += self._paused
        yield from self._stop_all()

    def _usage(self) -> Usage | None:
        """Return the tokens of all requests for this answer, or None if a count is missing."""
        counts, spent = self._counts, self._spent
        if "output_tokens" not in counts:
            return None
        wrote = count_in(counts, "output_tokens")
        details = mapping_in(counts.get("output_tokens_details"))
        thought = min(count_in(details, "thinking_tokens"), wrote)
        return Usage(
            input=spent.input + count_in(counts, "input_tokens"),
            output=spent.output + wrote - thought,
            reasoning=spent.reasoning + thought,
            cache_read=spent.cache_read + count_in(counts, "cache_read_input_tokens"),
            cache_write=spent.cache_write + count_in(counts, "cache_creation_input_tokens"),
        )


def go_on(request: ModelRequest, reader: AnswerReader) -> ModelRequest | None:
    """Return the request that continues a paused answer, or None if the answer was not paused."""
    if not isinstance(reader, MessageReader) or not reader.said:
        return None
    blocks = tuple(Reasoning(text="", metadata={OWN: {"block": each}}) for each in reader.said)
    said = ModelMessage(role="assistant", content=blocks)
    return replace(request, messages=(*request.messages, said))


def _key(index: object) -> int | str:
    """Return a block's index as a dict key; blocks without a valid index share the key ""."""
    return index if isinstance(index, int | str) else ""


def _counts(usage: object) -> dict[str, Any]:
    return {name: value for name, value in mapping_in(usage).items() if value is not None}


def _metadata(item: _Item) -> dict[str, Any] | None:
    """Return metadata to rebuild the block in a later request; None for text and cut-off blocks.

    Storage trims trailing white space of a thinking block, so `tail` holds that white space.
    """
    if item.kind == "text":
        return None
    if item.kind != "thinking":
        try:
            return {OWN: {"block": _verbatim(item)}}
        except ValueError:  # the output limit cut its input
            return None
    text = item.block.text
    tail = text[len(text.rstrip()) :]
    return {OWN: {"signature": item.signature, **({"tail": tail} if tail else {})}}


def _verbatim(item: _Item) -> dict[str, Any]:
    """Return the block as a later request must send it to the API.

    :raises ValueError: when the block's input is not valid JSON.
    """
    match item.kind:
        case "text":
            return {"type": "text", "text": item.block.text}
        case "thinking":
            return {"type": "thinking", "thinking": item.block.text, "signature": item.signature}
        case "tool_use" | "server_tool_use" if item.block.pieces:
            return {**item.opened, "input": mapping_in(decode_json(item.block.text.encode()))}
        case _:
            return item.opened
