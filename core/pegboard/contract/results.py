"""What goes into a call of a tool and what comes out of it, the blocks that people see included."""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from pegboard.schema.part import Completed, Failed, ToolPart

DISPLAY = "display"
"""The key of a call's metadata under which the block that its tool gave is stored."""
HEAD_LINES = 12

SpanStyle = Literal[
    "plain",
    "dim",
    "bold",
    "tool",
    "path",
    "number",
    "added",
    "removed",
    "added_word",
    "removed_word",
    "hunk",
    "done",
    "active",
    "accent",
    "warning",
    "error",
]
"""The role of a piece of text; what a role looks like is the theme's of who draws it."""


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of one line in one style; it has no line break."""

    text: str
    style: SpanStyle = "plain"


SpanLine = tuple[Span, ...]


class Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is seen of a call: a title behind the tool's name, then what is set of the rest.

    `lines`, a unified `diff`, the rows of a `table` (the first is its head) and `markdown` are
    drawn in this order. Of all that at most `fold` lines are shown at first: the beginning or,
    where `keep` says so, the end (`tail`), or some of each (`both`); 0 shows the title
    alone until somebody asks for more.
    """

    title: str = ""
    lines: tuple[SpanLine, ...] = ()
    diff: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    markdown: str = ""
    fold: int = HEAD_LINES
    keep: Literal["head", "tail", "both"] = "head"


DIFF_LINES = 40
TAIL_LINES = 10
"""Lines of a command's output that are shown: the end says how it went."""
ERROR_LINES = 5
TITLE_LETTERS = 100


def block_of_text(text: str, *, title: str = "", style: SpanStyle = "dim", fold: int) -> Block:
    """A block of plain lines, all in one style."""
    return Block(title=title, lines=lines_of(text, style), fold=fold)


def lines_of(text: str, style: SpanStyle = "plain") -> tuple[SpanLine, ...]:
    """The lines of a text, without empty ones at either end."""
    kept = text.strip("\n")
    return tuple((Span(line, style),) for line in kept.split("\n")) if kept.strip() else ()


def given_block(part: ToolPart) -> Block | None:
    """The block that the tool gave with its answer, None where it gave none that can be read."""
    match part.state:
        case Completed(metadata=metadata) | Failed(metadata=metadata) if metadata:
            try:
                return msgspec.convert(metadata.get(DISPLAY), Block)
            except msgspec.ValidationError:
                return None
        case _:
            return None


def default_block(part: ToolPart) -> Block:
    """The block of a call that nobody draws otherwise: its subject, and what its metadata tell."""
    title = subject_of(part.state.input)
    match part.state:
        case Failed(error=error):
            return block_of_text(error, title=title, style="error", fold=ERROR_LINES)
        case Completed(metadata=metadata, output=output):
            return _by_metadata(metadata, output, title)
        case _:
            return Block(title=title)


_SUBJECTS = ("command", "pattern", "filePath", "url", "query", "path")
"""Arguments that say what a call is about; the first of them that is a text does."""


def subject_of(arguments: Mapping[str, Any]) -> str:
    """What a call is about, on one line."""
    if "subagent_type" in arguments:
        return one_line(f"{arguments['subagent_type']}: {arguments.get('description', '')}")
    if "todos" in arguments:
        return ""  # they are shown with the answer
    for value in map(arguments.get, _SUBJECTS):
        if isinstance(value, str):
            return one_line(value)
    return one_line(json.dumps(arguments, ensure_ascii=False)) if arguments else ""


def one_line(text: str, width: int = TITLE_LETTERS) -> str:
    """The first line, cut at `width` letters; an ellipsis says that there is more."""
    first, _, rest = text.strip().partition("\n")
    if len(first) > width:
        return first[: width - 1] + "…"
    return first + (" …" if rest else "")


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`, `3 matches`."""
    plural = "es" if thing.endswith("ch") else "s"
    return f"{number:,} {thing}{'' if number == 1 else plural}"


def todo_lines(todos: Iterable[Mapping[str, Any]]) -> tuple[SpanLine, ...]:
    """A list of todos with their marks."""
    return tuple(_todo(todo) for todo in todos)


_MARKS: dict[str, Span] = {
    "completed": Span("[x]", "done"),
    "in_progress": Span("[>]", "active"),
    "cancelled": Span("[-]", "dim"),
}


def _todo(todo: Mapping[str, Any]) -> SpanLine:
    mark = _MARKS.get(str(todo.get("status")), Span("[ ]"))
    return mark, Span(" " + one_line(str(todo.get("content", ""))), mark.style)


def _by_metadata(metadata: Mapping[str, Any], output: str, title: str) -> Block:
    """What the protocol's clients show of an answer, by what its metadata have."""
    match metadata:
        case {"exit": _} | {"output": str()}:
            return _of_command(metadata, output, title)
        case {"diff": str(diff)}:
            return Block(title=f"{title}{_counts(metadata)}", diff=diff, fold=DIFF_LINES)
        case {"todos": [*todos]}:
            rows: Sequence[Any] = todos
            listed = todo_lines(todo for todo in rows if isinstance(todo, dict))
            return Block(title=title, lines=listed, fold=len(listed))
        case {"count": int(count)}:
            return _noted(title, counted(count, "file"), output)
        case {"matches": int(count)}:
            return _noted(title, counted(count, "match"), output)
    return block_of_text(output, title=title, fold=0)


def _noted(title: str, note: str, output: str) -> Block:
    """The title with how much was found; what was found is shown to who asks."""
    return block_of_text(output, title=f"{title} · {note}" if title else note, fold=0)


def _counts(metadata: Mapping[str, Any]) -> str:
    match metadata.get("filediff"):
        case {"additions": int(more), "deletions": int(less)}:
            return f" +{more} -{less}"
        case _:
            return ""


def _of_command(metadata: Mapping[str, Any], output: str, title: str) -> Block:
    said = metadata.get("output")
    shown = lines_of(said if isinstance(said, str) else output, "dim")
    code = metadata.get("exit")
    end = ((Span(f"exit {code}", "error"),),) if code else ()
    return Block(title=title, lines=(*shown, *end), fold=TAIL_LINES + len(end), keep="both")


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file that goes with a tool's answer; `url` is a `data:` URL."""

    mime: str
    url: str
    filename: str | None = None

    @classmethod
    def of_bytes(cls, content: bytes, mime: str, *, filename: str | None = None) -> "Attachment":
        """The attachment with this content."""
        url = f"data:{mime};base64,{b64encode(content).decode()}"
        return cls(mime=mime, url=url, filename=filename)


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer: `output` for the model, `title` and `metadata` for who watches.

    `display` is what people see of the call in place of its output; no model gets it.
    """

    output: str
    title: str = ""
    metadata: Mapping[str, Any] = {}
    attachments: tuple[Attachment, ...] = ()
    display: Block | None = None


class PendingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call before it runs, as the `tool_execute_before` and `after` hooks see it."""

    id: str
    tool: str
    input: Mapping[str, Any]
    message_id: str
