"""The printable parts of a conversation, such as an answer, and their rendering as rows."""

from typing import Literal

import msgspec

from pegboard.display import Block, Span, plain_line
from pegboard.schema.part import Failed, Pending, Running, ToolPart
from pegboard.unstable import block_lines, lines_of, outcome_of, shown_line, with_note
from pegboard_plugins.shared.terminal import Pen, coloured_diff, wrapped

SpanLine = tuple[Span, ...]
MARK = (Span("  │ ", "dim"),)
ASKED_LINES = 12
"""The maximum number of displayed lines of a prompt, from its beginning and its end."""
THOUGHT_LETTERS = 200
MS_PER_S = 1000
STOPPED = "Stopped."
"""The last line of a call that was stopped, in the words for the user."""
NoteStyle = Literal["dim", "warning", "error", "done", "plain"]


class Asked(msgspec.Struct, frozen=True):
    """A prompt of the user."""

    text: str


class Answered(msgspec.Struct, frozen=True):
    """A Markdown block of the model's answer."""

    text: str


class Thought(msgspec.Struct, frozen=True):
    """The model's reasoning, and its duration in seconds."""

    text: str
    seconds: float


class Called(msgspec.Struct, frozen=True):
    """A finished tool call, and the seconds that it waited for the user.

    `waited_s` is None if the chat did not observe the waits.
    """

    part: ToolPart
    waited_s: float | None = 0.0


class Noted(msgspec.Struct, frozen=True):
    """A message from the chat program, such as a warning, and not from the model."""

    text: str
    style: NoteStyle = "dim"


class Drawn(msgspec.Struct, frozen=True):
    """Styled lines below a heading, such as a page of the chat."""

    head: str
    block: Block


Finished = Asked | Answered | Thought | Called | Noted | Drawn


class Steer(msgspec.Struct):
    """A prompt that was sent during a turn and that the model has not read yet."""

    pieces: list[Asked | Noted] = msgspec.field(default_factory=list)
    leaving: bool = False

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return "\n".join(piece.text for piece in self.pieces if isinstance(piece, Asked))

    @property
    def is_text(self) -> bool:
        """Whether the prompt has only text."""
        return all(isinstance(piece, Asked) for piece in self.pieces)


def rows_of(piece: Finished, pen: Pen, width: int, block: Block | None = None) -> list[str]:
    """Render a part as rows of at most `width` columns; `block` has the lines of a tool call."""
    match piece:
        case Asked(text=text):
            return ["", *_asked(text, pen, width)]
        case Answered(text=text):
            return ["", *pen.markdown(text, width)]
        case Thought(text=text, seconds=seconds):
            note = f"· thought for {seconds:.0f} s: {_first(text)}"
            return ["", *_hanging((Span(note, "dim"),), pen, width)]
        case Noted(text=text, style=style):
            mark = {"warning": "! ", "error": "✗ "}.get(style, "· ")
            lines = [(Span(mark + line, style),) for line in text.split("\n")]
            return [row for line in lines for row in _hanging(line, pen, width)]
        case Drawn(head=head, block=drawn):
            return ["", *pen.lines([(Span(head, "bold"),)], width), *_body(drawn, pen, width)]
        case Called(part=part, waited_s=waited_s):
            drawn = block or Block()
            if drawn.lines and plain_line(drawn.lines[-1]) == STOPPED:  # as the head says
                drawn = msgspec.structs.replace(drawn, lines=drawn.lines[:-1])
            line = call_head(part, drawn.title, waited_s=waited_s)
            return ["", *_hanging(line, pen, width), *_body(drawn, pen, width)]


def _hanging(line: SpanLine, pen: Pen, width: int) -> list[str]:
    """Render a line as rows; all rows after the first are indented."""
    first, *others = wrapped(shown_line(line), width - len("  "), at_words=True)
    return [pen.text(first), *(f"  {pen.text(row)}" for row in others)]


def was_stopped(part: ToolPart) -> bool:
    """Return whether the user stopped the call; the call's heading then says "stopped"."""
    return isinstance(part.state, Failed) and outcome_of(part.state.error) == "stopped"


def call_head(
    part: ToolPart, title: str, *, now_ms: int | None = None, waited_s: float | None = 0.0
) -> SpanLine:
    """Return a call's heading: tool, title, outcome, and duration without the user's waits."""
    mark = Span("✗ ", "error") if isinstance(part.state, Failed) else Span("● ", "tool")
    seconds = _seconds(part, now_ms)
    worked = None if None in (seconds, waited_s) else max(0.0, (seconds or 0) - (waited_s or 0))
    end = outcome_of(part.state.error) if isinstance(part.state, Failed) else ""
    after = f"{end} after " if end else ""
    text = end if end == "refused" else f"{after}{worked:.1f} s" if worked is not None else ""
    took = (Span(f"  {text}", "dim"),) if text else ()
    name, about = Span(part.tool, "bold"), Span(f" {title}" if title else "")
    return shown_line((mark, name, about, *took))


def _seconds(part: ToolPart, now_ms: int | None) -> float | None:
    match part.state:
        case Pending():
            return None
        case Running(time=span):
            return None if now_ms is None else max(0, now_ms - span.start) / MS_PER_S
        case state:
            end = state.time.end
            return None if end is None else (end - state.time.start) / MS_PER_S


def _asked(text: str, pen: Pen, width: int) -> list[str]:
    block = Block(lines=lines_of(text, "bold"), fold=ASKED_LINES, keep="both")
    lines = with_note(block_lines(block))
    first, *others = pen.lines(lines or ((),), width - 2, at_words=True)
    return [pen.text((Span("❯", "active"),)) + " " + first, *(f"  {row}" for row in others)]


def _body(block: Block, pen: Pen, width: int) -> list[str]:
    if block.fold == 0:
        return []
    if block.markdown and not (block.lines or block.diff or block.table):
        rows = pen.markdown(block.markdown, width - 4)
        hidden = len(rows) - block.fold
        mark = pen.text((Span("  │", "dim"),)) + " "
        shown = [mark + row for row in rows[: block.fold]]
        note = [mark + f"… {hidden} more lines (Ctrl+O)"] if hidden > 0 else []
        return [*shown, *note]
    lines = with_note(block_lines(block), "Ctrl+O")
    coloured = coloured_diff(lines, block.diff) if pen.is_tinted else lines
    return pen.lines(coloured, width, mark=MARK, at_words=not block.diff)


def _first(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= THOUGHT_LETTERS else f"{words[: THOUGHT_LETTERS - 1].rstrip()}…"


def subject_of(part: ToolPart) -> str:
    """Return the subject of a call: the first string among its arguments."""
    texts = (value for value in part.state.input.values() if isinstance(value, str))
    return next(texts, "")
