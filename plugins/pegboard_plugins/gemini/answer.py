"""A reader that turns the chunks of `streamGenerateContent` into Pegboard's stream events."""

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard.http import AnswerBlocks, ErrorFrameError, count_in, decode_json, unique_id
from pegboard.providers import (
    FinishReason,
    StreamEvent,
    StreamFinish,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from pegboard.unstable import finish_of, mapping_in
from pegboard_plugins.gemini.request import OWN

_CUT = ("length", "content-filter", "error")
"""Ends behind which no call is made."""


class ContentReader:
    """Reads the chunks of one answer; `finished` is true once the model has ended the answer."""

    def __init__(self) -> None:
        self.finished = False
        self._blocks = AnswerBlocks(self._metadata)
        self._reason: FinishReason = "unknown"
        self._note = ""
        self._counts: Mapping[str, Any] = {}
        self._signature = ""
        self._calls: list[ToolCall] = []

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """Yield the events of the next chunk, or of all chunks if the server does not stream."""
        value = decode_json(frame)
        for each in value if isinstance(value, list) else [value]:
            yield from self._chunk(mapping_in(each))

    def end(self) -> Iterator[StreamEvent]:
        """Yield the tool calls, unless a limit or an error cut the answer, and the final event."""
        yield from self._blocks.close()
        if self._reason not in _CUT:
            for call in self._calls:
                yield ToolInputEnd(call.id)
                yield call
            if self._calls:
                self._reason = "tool-calls"
        yield StreamFinish(self._reason, usage_of(self._counts), note=self._note)

    def _chunk(self, chunk: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if "error" in chunk and not self.finished:
            raise ErrorFrameError(chunk["error"])
        self._counts = mapping_in(chunk.get("usageMetadata")) or self._counts
        if mapping_in(chunk.get("promptFeedback")).get("blockReason"):
            self.finished, self._reason = True, "content-filter"
        for candidate in map(mapping_in, (chunk.get("candidates") or ())[:1]):
            for part in mapping_in(candidate.get("content")).get("parts") or ():
                yield from self._part(mapping_in(part))
            if reason := candidate.get("finishReason"):
                self.finished = True
                self._reason, self._note = finish_of(reason)

    def _part(self, part: Mapping[str, Any]) -> Iterator[StreamEvent]:
        text, call = part.get("text"), mapping_in(part.get("functionCall"))
        if call:
            yield from self._call(call, str(part.get("thoughtSignature") or ""))
        elif part.get("thought"):
            yield from self._blocks.write("reasoning", str(text or ""))
        elif text or part.get("thoughtSignature"):
            yield from self._blocks.write("text", str(text or ""))
            self._signature = str(part.get("thoughtSignature") or self._signature)

    def _call(self, call: Mapping[str, Any], signature: str) -> Iterator[StreamEvent]:
        """Yield and store a complete tool call; invent an id if the call has none."""
        yield from self._blocks.close()
        given, name = str(call.get("id") or ""), str(call.get("name") or "")
        own = {"id": given, "signature": signature}
        kept = {key: value for key, value in own.items() if value}
        arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
        taken = {each.id for each in self._calls}
        call_id = unique_id(given or f"call_{secrets.token_hex(8)}", taken)
        self._calls.append(ToolCall(call_id, name, arguments, {OWN: kept} if kept else None))
        yield ToolInputStart(call_id, name)
        yield ToolInputDelta(call_id, arguments)

    def _metadata(self, kind: str) -> dict[str, Any] | None:
        """Return metadata with the signature of the text that ends here, or None if it has none."""
        signature, self._signature = self._signature, ""
        return {OWN: {"signature": signature}} if signature and kind == "text" else None


def usage_of(counts: Mapping[str, Any]) -> Usage | None:
    """Return token counts, cached tokens counted apart, or None if a main count is missing."""
    if "promptTokenCount" not in counts:
        return None
    read = count_in(counts, "promptTokenCount") + count_in(counts, "toolUsePromptTokenCount")
    cached = min(count_in(counts, "cachedContentTokenCount"), read)
    return Usage(
        input=read - cached,
        output=count_in(counts, "candidatesTokenCount"),
        reasoning=count_in(counts, "thoughtsTokenCount"),
        cache_read=cached,
    )
