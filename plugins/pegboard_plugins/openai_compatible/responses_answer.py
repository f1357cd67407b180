"""The events of OpenAI's Responses API, converted to Pegboard's stream of events."""

from collections.abc import Iterator, Mapping
from typing import Any

from pegboard.http import AnswerBlock, ErrorFrameError, count_in, decode_json, unique_id
from pegboard.providers import FinishReason, StreamEvent, StreamFinish, ToolCall, Usage
from pegboard.unstable import AnswerKind, finish_of, mapping_in
from pegboard_plugins.openai_compatible.responses import OWN

_REFUSAL = "refusal.delta"
_DELTAS = (
    "output_text.delta",
    "function_call_arguments.delta",
    "reasoning_summary_text.delta",
    "reasoning_text.delta",
    _REFUSAL,
)

_KINDS: Mapping[str, AnswerKind] = {"message": "text", "function_call": "call"}
"""How items are shown; all others are thoughts."""


class ResponseReader:
    """A converter from one response to stream events; `finished` tells whether its end arrived.

    `items` are the complete items, each with its text. `response` is the server's description of
    the whole response.
    """

    def __init__(self) -> None:
        self.finished = False
        self.items: list[tuple[Mapping[str, Any], AnswerBlock]] = []
        self.response: Mapping[str, Any] = {}
        self._reason: FinishReason = "unknown"
        self._note = ""
        self._refused = False
        self._usage: Usage | None = None
        self._open: dict[Any, tuple[str, AnswerBlock]] = {}
        self._calls: list[tuple[AnswerBlock, dict[str, Any]]] = []
        self._items = 0
        self._ids: set[str] = set()

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """Yield the events of the next frame; unknown types are skipped."""
        event = mapping_in(decode_json(frame))
        index, kind = event.get("output_index"), str(event.get("type"))
        match kind.removeprefix("response."):
            case "output_item.added":
                yield from self._start(index, mapping_in(event.get("item")))
            case name if name in _DELTAS:
                self._refused = self._refused or name == _REFUSAL
                yield from self._add(index, event.get("delta"))
            case "reasoning_summary_part.added" if event.get("summary_index"):
                yield from self._add(index, "\n\n")
            case "output_item.done":
                yield from self._stop(index, mapping_in(event.get("item")))
            case "completed" | "incomplete" | "failed":
                yield from self._finish(mapping_in(event.get("response")))
            case "error":
                if not self.finished:
                    raise ErrorFrameError(event.get("error") or dict(event))
            case _:
                if event.get("object") == "response":
                    yield from self._whole(event)

    def end(self) -> Iterator[StreamEvent]:
        """Yield the tool calls that are certainly complete, and the end of the answer."""
        if self._reason == "stop":
            for block, done in self._calls:
                arguments = str(done.get("arguments") or block.text or "{}")
                name = str(done.get("name") or block.name)
                metadata = {OWN: {"id": done["id"]}} if done.get("id") else None
                yield block.end()
                yield ToolCall(block.id, name, arguments, metadata)
            if self._calls:
                self._reason = "tool-calls"
            elif self._refused:
                self._reason = "content-filter"
        yield StreamFinish(self._reason, self._usage, note=self._note)

    def _start(self, index: object, opened: Mapping[str, Any]) -> Iterator[StreamEvent]:
        self._items += 1
        kind = str(opened.get("type"))
        block = AnswerBlock(kind=_KINDS.get(kind, "reasoning"), id=f"{kind}-{self._items}")
        if block.kind == "call":
            block.id = unique_id(str(opened.get("call_id") or ""), self._ids)
            self._ids.add(block.id)
            block.name = str(opened.get("name") or "")
        self._open[index] = kind, block
        yield block.start()

    def _add(self, index: object, text: object) -> Iterator[StreamEvent]:
        if index in self._open:
            yield from self._open[index][1].add(text)

    def _stop(self, index: object, done: Mapping[str, Any]) -> Iterator[StreamEvent]:
        kind, block = self._open.pop(index, ("", None))
        if block is None:
            return
        self.items.append((done, block))
        match kind:
            case "message":
                if not block.pieces:
                    yield from self._text_of(block, done)
                yield block.end(_metadata(done, "id", "phase"))
            case "function_call":  # the input of a call ends with the answer
                self._calls.append((block, dict(done)))
            case "reasoning":
                yield block.end(_metadata(done, "id", "encrypted_content"))
            case _:
                yield block.end({OWN: {"item": dict(done)}} if done else None)

    def _text_of(self, block: AnswerBlock, done: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield the text of a message that arrived without deltas."""
        for part in map(mapping_in, done.get("content") or ()):
            self._refused = self._refused or bool(part.get("refusal"))
            text = part.get("text") or part.get("refusal")
            yield from block.add(text)

    def _finish(self, response: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if response.get("status") == "failed" or response.get("error"):
            raise ErrorFrameError(response.get("error") or "the response has failed")
        for index in list(self._open):
            yield from self._stop(index, {})
        self.finished = True
        self.response = response
        self._usage = usage_of(mapping_in(response.get("usage")))
        cut = mapping_in(response.get("incomplete_details")).get("reason")
        status = response.get("status") or "completed"
        self._reason, self._note = finish_of(cut or status)

    def _whole(self, response: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield the events of a response that was not streamed."""
        for index, item in enumerate(map(mapping_in, response.get("output") or ())):
            yield from self._start(index, item)
            for part in map(mapping_in, item.get("summary") or ()):
                yield from self._add(index, part.get("text"))
            yield from self._stop(index, item)
        yield from self._finish(response)


def usage_of(counts: Mapping[str, Any]) -> Usage | None:
    """Return token counts, cached and reasoning tokens apart; None if there are no counts."""
    if "input_tokens" not in counts:
        return None
    read, wrote = count_in(counts, "input_tokens"), count_in(counts, "output_tokens")
    details = mapping_in(counts.get("input_tokens_details"))
    cached = min(count_in(details, "cached_tokens"), read)
    stored = min(count_in(details, "cache_write_tokens"), read - cached)
    thought = count_in(mapping_in(counts.get("output_tokens_details")), "reasoning_tokens")
    thought = min(thought, wrote)
    return Usage(
        input=read - cached - stored,
        output=wrote - thought,
        reasoning=thought,
        cache_read=cached,
        cache_write=stored,
    )


def _metadata(done: Mapping[str, Any], *names: str) -> dict[str, Any] | None:
    kept = {name: done[name] for name in names if done.get(name)}
    return {OWN: kept} if kept else None
