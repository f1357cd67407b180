"""The processor, which turns the events of a step into message parts without I/O or waits.

A tool's state changes from pending to running to completed or failed, and never back. Streamed text
is stored in chunks and joined at the end, so that a delta costs the same in a long answer.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from pegboard.contract.results import Attachment, ToolResult
from pegboard.engine.writer import Writer
from pegboard.providers import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    TextDelta,
    TextStart,
    ToolInputStart,
)
from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import (
    Completed,
    CompletedSpan,
    Failed,
    FilePart,
    Part,
    Pending,
    ReasoningPart,
    Running,
    TextPart,
    TimeSpan,
    ToolPart,
    ToolState,
)
from pegboard.schema.wire import encode_checked

PROGRESS_BYTES_S = 8_000
"""Average rate at which a call's progress is stored and published: each time as a whole."""
_MS_PER_S = 1000


class _Block(msgspec.Struct):
    """A text or reasoning block that is being streamed."""

    part: TextPart | ReasoningPart
    pieces: list[str] = msgspec.field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the block so far, as it is stored."""
        return "".join(self.pieces).rstrip()

    def whole(self, text: str, *, end: int | None = None) -> TextPart | ReasoningPart:
        """Return the part of the block with `text` as its text."""
        time = TimeSpan(start=self.part.time.start if self.part.time else 0, end=end)
        return replace(self.part, text=text, time=time)


_Kind = type[TextPart | ReasoningPart]


class _Progress(msgspec.Struct):
    """The progress of a running tool call, and the time when the progress was last stored.

    `put_at` is the time of the last store, and `pause` the shortest time until the next one, both
    in milliseconds. `waits` is whether there is progress that is not stored yet.
    """

    part: ToolPart
    put_at: int
    pause: int
    waits: bool = False

    def is_due(self, now: int) -> bool:
        """Return whether enough time has passed since `put_at`, or the clock was set back."""
        return not self.put_at <= now < self.put_at + self.pause


class Processor:
    """The parts of one assistant message while it is streamed.

    `parts` are the parts as last stored, in the order of their start. `new_id` returns an id for a
    part, `now` the time in milliseconds.
    """

    def __init__(
        self,
        message: AssistantMessage,
        *,
        sink: Writer,
        new_id: Callable[[], str],
        now: Callable[[], int],
    ) -> None:
        self.parts: dict[str, Part] = {}
        self._message = message
        self._sink = sink
        self._new_id = new_id
        self._now = now
        self._blocks: dict[tuple[_Kind, str], _Block] = {}
        self._tools: dict[str, ToolPart] = {}
        self._progress: dict[str, _Progress] = {}

    def put(self, part: Part) -> None:
        """Add and store a part that was made elsewhere, such as the start of the model request."""
        self.parts[part.id] = part
        self._sink.put(part)

    def dirty(self) -> tuple[Part, ...]:
        """Return the calls with progress that is due to be stored.

        The larger the progress, the less often it is stored.
        """
        now = self._now()
        waiting = [each for each in self._progress.values() if each.waits]
        due = [each.part for each in waiting if each.is_due(now)]
        for part in due:
            self._note_stored(part)
        if len(due) < len(waiting):
            self._sink.touch()
        return tuple(due)

    # text and reasoning

    def take(self, event: StreamEvent) -> None:
        """Process an event of the model's answer; text blocks end with `text_end` instead."""
        match event:
            case TextDelta() | ReasoningDelta():
                kind: _Kind = TextPart if isinstance(event, TextDelta) else ReasoningPart
                block = self._blocks.get((kind, event.id)) or self._begin(kind, event.id)
                block.pieces.append(event.text)
                self._sink.delta(block.part, event.text)
            case TextStart():
                self._begin(TextPart, event.id, event.metadata)
            case ReasoningStart():
                self._begin(ReasoningPart, event.id, event.metadata)
            case ReasoningEnd():
                self._close((ReasoningPart, event.id), event.metadata)
            case ToolInputStart():
                self.call(event.id, event.name)
            case _:
                pass  # arguments in pieces are not needed: the call repeats them as a whole

    def text(self, block_id: str) -> TextPart | None:
        """Return an open text block as the part to store, or None if the block is not open."""
        block = self._blocks.get((TextPart, block_id))
        if block is None:
            return None
        part = block.whole(block.text)
        assert isinstance(part, TextPart)
        return part

    def open_texts(self) -> tuple[str, ...]:
        """Return the ids of the text blocks that have not ended."""
        return tuple(block_id for kind, block_id in self._blocks if kind is TextPart)

    def text_end(self, block_id: str, text: str, metadata: dict[str, Any] | None = None) -> None:
        """End a text block, and store `text` as the final text."""
        self._close((TextPart, block_id), metadata, text=text)

    # tools

    def call(self, call_id: str, name: str) -> ToolPart:
        """Return the part of the call; create it if the call is new."""
        if call_id not in self._tools:
            part = ToolPart(
                id=self._new_id(),
                session_id=self._message.session_id,
                message_id=self._message.id,
                call_id=call_id,
                tool=name,
                state=Pending(input={}, raw=""),
            )
            self._put_tool(part)
        return self._tools[call_id]

    def tool_running(
        self,
        call_id: str,
        name: str,
        args: Mapping[str, Any],
        metadata: dict[str, Any] | None = None,
    ) -> ToolPart:
        """Mark the call as running, with its corrected name and arguments, and return its part."""
        part = self.call(call_id, name)
        if isinstance(part.state, Pending):
            state = Running(input=dict(args), time=TimeSpan(start=self._now()))
            part = replace(part, tool=name, state=state, metadata=metadata)
            self._put_tool(part)
        return part

    def tool_state(self, call_id: str) -> ToolState:
        """Return the state of the tool call with this id."""
        return self._tools[call_id].state

    def tool_progress(
        self, call_id: str, title: str | None, metadata: Mapping[str, Any] | None
    ) -> None:
        """Record a tool's progress; store the first at once, and later progress periodically."""
        part = self._tools.get(call_id)
        if part is None or not isinstance(part.state, Running):
            return
        first = part.state.title is None and part.state.metadata is None
        state = replace(
            part.state,
            title=title or part.state.title,
            metadata=_merged(part.state.metadata, metadata),
        )
        part = self._tools[call_id] = replace(part, state=state)
        self.parts[part.id] = part
        if first:
            self._note_stored(part)
            self._sink.put(part)
        else:
            progress = self._progress[part.id]
            progress.part, progress.waits = part, True
            self._sink.touch()

    def tool_done(self, call_id: str, result: ToolResult) -> None:
        """Store the result of a call."""
        part = self._tools.get(call_id)
        if part is None or not isinstance(part.state, Running):
            return
        state = Completed(
            input=part.state.input,
            output=result.output,
            title=result.title,
            metadata=_merged(part.state.metadata, result.metadata) or {},
            time=CompletedSpan(start=part.state.time.start, end=self._now()),
            attachments=tuple(self._file(item) for item in result.attachments),
        )
        self._put_tool(replace(part, state=state))

    def tool_failed(
        self, call_id: str, error: str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Store that a call failed, was denied or was stopped; the model reads `error`."""
        part = self._tools.get(call_id)
        if part is None or isinstance(part.state, Completed | Failed):
            return
        ran = part.state if isinstance(part.state, Running) else None
        state = Failed(
            input=part.state.input,
            error=error,
            time=TimeSpan(start=ran.time.start if ran else self._now(), end=self._now()),
            metadata=_merged(ran.metadata if ran else None, metadata),
        )
        self._put_tool(replace(part, state=state))

    # endings

    def close(self, reason: str) -> None:
        """End all open blocks and calls: partial text is stored, and unfinished calls fail."""
        for key in list(self._blocks):
            self._close(key)
        for call_id, part in list(self._tools.items()):
            if isinstance(part.state, Pending | Running):
                self.tool_failed(call_id, reason)

    def drop(self) -> tuple[str, ...]:
        """Remove the text, reasoning and tool parts, and return the ids of the removed parts."""
        gone = tuple(
            part.id
            for part in self.parts.values()
            if isinstance(part, TextPart | ReasoningPart | ToolPart)
        )
        for part_id in gone:
            del self.parts[part_id]
        self._blocks.clear()
        self._tools.clear()
        self._progress.clear()
        return gone

    def calls(self) -> tuple[ToolPart, ...]:
        """Return the calls of the message, in the order of their start."""
        return tuple(self._tools.values())

    def _begin(self, kind: _Kind, block_id: str, metadata: dict[str, Any] | None = None) -> _Block:
        part = kind(
            id=self._new_id(),
            session_id=self._message.session_id,
            message_id=self._message.id,
            text="",
            time=TimeSpan(start=self._now()),
            metadata=metadata,
        )
        block = self._blocks[kind, block_id] = _Block(part)
        self.put(part)
        return block

    def _close(
        self,
        key: tuple[_Kind, str],
        metadata: dict[str, Any] | None = None,
        *,
        text: str | None = None,
    ) -> None:
        block = self._blocks.pop(key, None)
        if block is None:
            return
        part = block.whole(block.text if text is None else text, end=self._now())
        if metadata:
            part = replace(part, metadata=_merged(part.metadata, metadata))
        self.put(part)

    def _note_stored(self, part: ToolPart) -> None:
        """Record that a call's progress was stored; larger parts are stored less often."""
        pause = len(encode_checked(part)) * _MS_PER_S // PROGRESS_BYTES_S
        self._progress[part.id] = _Progress(part, put_at=self._now(), pause=pause)

    def _put_tool(self, part: ToolPart) -> None:
        self._tools[part.call_id] = part
        self._progress.pop(part.id, None)
        self.put(part)

    def _file(self, attachment: Attachment) -> FilePart:
        return FilePart(
            id=self._new_id(),
            session_id=self._message.session_id,
            message_id=self._message.id,
            mime=attachment.mime,
            url=attachment.url,
            filename=attachment.filename,
        )


def _merged(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    if before is None and after is None:
        return None
    return {**(before or {}), **(after or {})}
