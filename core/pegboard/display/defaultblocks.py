"""The block of a tool call: from a plugin, from the tool itself, or by default."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pegboard import Host
from pegboard.contract.results import DISPLAY, Block, Span, SpanLine, SpanStyle
from pegboard.contract.toolhooks import render_tool
from pegboard.schema.part import Completed, Failed, ToolPart

_KEPT = 256
"""The number of calls in a long session whose blocks are cached."""
DIFF_LINES = 40
TAIL_LINES = 10
"""Lines of a command's output that are shown: the end says how it went."""
ERROR_LINES = 5
TITLE_LETTERS = 100


def block_of_text(text: str, *, title: str = "", style: SpanStyle = "dim", fold: int) -> Block:
    """Return a block of text lines that all have the same style."""
    return Block(title=title, lines=lines_of(text, style), fold=fold)


def lines_of(text: str, style: SpanStyle = "plain") -> tuple[SpanLine, ...]:
    """Split a text into lines, without empty lines at start and end."""
    kept = text.strip("\n")
    return tuple((Span(line, style),) for line in kept.split("\n")) if kept.strip() else ()


def given_block(part: ToolPart) -> Block | None:
    """Return the block that the tool returned with its result, or None without a valid block."""
    match part.state:
        case Completed(metadata=metadata) | Failed(metadata=metadata) if metadata:
            try:
                return msgspec.convert(metadata.get(DISPLAY), Block)
            except msgspec.ValidationError:
                return None
        case _:
            return None


def default_block(part: ToolPart) -> Block:
    """Return the default block of a tool call: its subject, and details from its metadata."""
    title = subject_of(part.state.input)
    match part.state:
        case Failed() as failed:
            return _of_failure(failed, title)
        case Completed(metadata=metadata, output=output, title=given):
            return _by_metadata(metadata, output, title, given)
        case _:
            return Block(title=title)


def _of_failure(failed: Failed, title: str) -> Block:
    from pegboard.display.userwords import user_words  # few calls fail

    error = user_words(failed.error)
    match failed.metadata:
        case {"output": str(output)} if output.strip():
            lines = (*lines_of(output, "dim"), (Span(error.rpartition("\n")[2], "error"),))
            return Block(title=title, lines=lines, fold=TAIL_LINES + 1, keep="both")
        case _:
            return block_of_text(error, title=title, style="error", fold=ERROR_LINES)


_SUBJECTS = ("command", "pattern", "filePath", "url", "query", "path")
"""Arguments that say what a call is about; the first of them that is a text does."""


def subject_of(arguments: Mapping[str, Any]) -> str:
    """Describe in one line what a tool call acts on, by its arguments."""
    if "subagent_type" in arguments:
        return one_line(f"{arguments['subagent_type']}: {arguments.get('description', '')}")
    if "todos" in arguments:
        return ""  # they are shown with the answer
    if isinstance(asked := arguments.get("questions"), list):
        texts = (each.get("question") for each in asked if isinstance(each, dict))
        return one_line(" ".join(text for text in texts if isinstance(text, str)))
    if {"tool", "error"} <= arguments.keys():
        return one_line(f"{arguments['tool']}: {arguments['error']}")
    for value in map(arguments.get, _SUBJECTS):
        if isinstance(value, str):
            return one_line(value)
    return one_line(json.dumps(arguments, ensure_ascii=False)) if arguments else ""


def one_line(text: str, width: int = TITLE_LETTERS) -> str:
    """Return the first line, cut to `width` characters; an ellipsis marks omitted text."""
    first, _, rest = text.strip().partition("\n")
    if len(first) > width:
        return first[: width - 1] + "…"
    return first + (" …" if rest else "")


def counted(number: int, thing: str) -> str:
    """Return a number with a noun, such as `1 file`, `2 files` or `3 matches`."""
    plural = "es" if thing.endswith("ch") else "s"
    return f"{number:,} {thing}{'' if number == 1 else plural}"


def todo_lines(todos: Iterable[Mapping[str, Any]]) -> tuple[SpanLine, ...]:
    """Return a line for each to-do item, with a mark for its status."""
    return tuple(_todo(todo) for todo in todos)


_MARKS: dict[str, Span] = {
    "completed": Span("[x]", "done"),
    "in_progress": Span("[>]", "active"),
    "cancelled": Span("[-]", "dim"),
}


def _todo(todo: Mapping[str, Any]) -> SpanLine:
    mark = _MARKS.get(str(todo.get("status")), Span("[ ]"))
    return mark, Span(" " + one_line(str(todo.get("content", ""))), mark.style)


def _by_metadata(metadata: Mapping[str, Any], output: str, title: str, given: str) -> Block:
    """Return a block for a result: from the metadata of built-in tools, or else from the output.

    These are a command's output, a diff, a to-do list, or a count of files or matches.
    """
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
    return block_of_text(output, title=_titled(title, given), fold=0)


def _titled(subject: str, given: str) -> str:
    """Join the subject and the tool's own title `given`, unless it starts with the subject."""
    given = one_line(given)
    if not given or subject.startswith("{"):
        return given or subject
    return given if given.startswith(subject) else f"{subject} · {given}"


def _noted(title: str, note: str, output: str) -> Block:
    """Return a block with the output folded away and with `note`, such as a count, in its title."""
    return block_of_text(output, title=f"{title} · {note}" if title else note, fold=0)


def _counts(metadata: Mapping[str, Any]) -> str:
    match metadata.get("filediff"):
        case {"additions": int(more), "deletions": int(less)} if more or less:
            return f" +{more} -{less}"
        case _:
            return ""


def _of_command(metadata: Mapping[str, Any], output: str, title: str) -> Block:
    said = metadata.get("output")
    shown = lines_of(said if isinstance(said, str) else output, "dim")
    code = metadata.get("exit")
    end = ((Span(f"exit {code}", "error"),),) if code else ()
    return Block(title=title, lines=(*shown, *end), fold=TAIL_LINES + len(end), keep="both")


class CallBlocks:
    """The blocks of tool calls; the block of an ended call is cached for each width."""

    def __init__(self, app: Host) -> None:
        self._app = app
        self._kept: OrderedDict[tuple[str, int], Block] = OrderedDict()

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the block that shows a call; a plugin may draw it `width` columns wide."""
        key = (part.id, width)
        if key in self._kept:
            return self._kept[key]
        block = await self._made(part, width)
        if isinstance(part.state, Completed | Failed):
            self._kept[key] = block
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return block

    async def _made(self, part: ToolPart, width: int) -> Block:
        drawn = None
        if self._app.hooks.has(render_tool):
            tool = self._app.tools.get(part.tool)
            drawn = await self._app.hooks.first(render_tool, part=part, width=width, tool=tool)
        return drawn or given_block(part) or default_block(part)
