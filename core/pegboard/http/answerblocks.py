"""The text, reasoning and tool-call arguments of a model's answer, each as a series of events."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from pegboard.providers import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)

AnswerKind = Literal["text", "reasoning", "call"]


@dataclass(slots=True, kw_only=True)
class AnswerBlock:
    """A block of an answer that is being streamed; for a call, `name` is the tool's name."""

    kind: AnswerKind
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the block so far."""
        return "".join(self.pieces)

    def start(self) -> StreamEvent:
        """Return the first event of the block."""
        match self.kind:
            case "text":
                return TextStart(self.id)
            case "reasoning":
                return ReasoningStart(self.id)
            case "call":
                return ToolInputStart(self.id, self.name)
            case _:
                assert_never(self.kind)

    def add(self, text: object) -> Iterator[StreamEvent]:
        """Yield the event of more text, or nothing for an empty or invalid value."""
        if not text or not isinstance(text, str):
            return
        self.pieces.append(text)
        match self.kind:
            case "text":
                yield TextDelta(self.id, text)
            case "reasoning":
                yield ReasoningDelta(self.id, text)
            case "call":
                yield ToolInputDelta(self.id, text)
            case _:
                assert_never(self.kind)

    def end(self, metadata: dict[str, Any] | None = None) -> StreamEvent:
        """Return the last event of the block; `metadata` is data to send back to the provider.

        For a call this is the `ToolInputEnd`; the caller adds the `ToolCall`.
        """
        match self.kind:
            case "text":
                return TextEnd(self.id, metadata)
            case "reasoning":
                return ReasoningEnd(self.id, metadata)
            case "call":
                return ToolInputEnd(self.id)
            case _:
                assert_never(self.kind)


def _nothing(kind: AnswerKind) -> dict[str, Any] | None:  # noqa: ARG001 - of a wire that keeps none
    return None


class AnswerBlocks:
    """The text and reasoning blocks of an answer whose chunks do not mark where blocks end.

    Only one block is open at a time: text after reasoning ends the reasoning. When a block ends,
    `kept` is called with its kind (text or reasoning). It returns metadata that the provider needs
    back, or None.
    """

    def __init__(self, kept: Callable[[AnswerKind], dict[str, Any] | None] = _nothing) -> None:
        self._kept = kept
        self._open: AnswerBlock | None = None
        self._begun = 0

    def write(self, kind: Literal["text", "reasoning"], text: str) -> Iterator[StreamEvent]:
        """Yield the events for more text; first end an open block of a kind other than `kind`."""
        if self._open is None or self._open.kind != kind:
            yield from self.close()
            self._begun += 1
            self._open = AnswerBlock(kind=kind, id=f"{kind}-{self._begun}")
            yield self._open.start()
        yield from self._open.add(text)

    def close(self) -> Iterator[StreamEvent]:
        """Yield the last event of the block that is open, if any."""
        if self._open is not None:
            opened, self._open = self._open, None
            yield opened.end(self._kept(opened.kind))
