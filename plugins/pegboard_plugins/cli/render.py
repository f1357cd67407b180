"""What is shown of a turn: pure functions from the protocol's values to lines of text."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pegboard.cli import exposed, visible
from pegboard.schema.message import Failure
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.permission import PermissionRequest
from pegboard.schema.question import Question
from pegboard.schema.session import Retry, Tokens

Style = Literal[
    "plain", "tool", "dim", "error", "warning", "added", "removed", "hunk", "done", "active"
]

TAIL_LINES = 10
"""Lines of a command's output that are shown: the end says how it went."""
DIFF_LINES = 60
"""Lines of a diff that are shown; `git diff` has all."""
ERROR_LINES = 5
LABEL_WIDTH = 100
FAILURE_WIDTH = 500
_SUBJECTS = ("command", "pattern", "filePath")
"""Arguments that say what a call is about; the first of them that is a text does."""
_MARKS: dict[str, tuple[str, Style]] = {
    "completed": ("[x]", "done"),
    "in_progress": ("[>]", "active"),
    "cancelled": ("[-]", "dim"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line for the screen: `head` stands out before `text`."""

    text: str
    head: str = ""
    style: Style = "plain"
    indent: int = 0

    def plain(self) -> str:
        """The line without any colour."""
        return (
            "  " * self.indent + (f"{self.head} {self.text}" if self.head else self.text)
        ).rstrip(" ")


def one_line(text: str, width: int = LABEL_WIDTH) -> str:
    """The first line, cut at `width` characters; an ellipsis says that there is more."""
    first, _, rest = text.strip().partition("\n")
    if len(first) > width:
        return visible(first[: width - 1]) + "…"
    return visible(first) + (" …" if rest else "")


def tool_head(part: ToolPart, directory: Path, *, indent: int = 0) -> Line:
    """The line that a call starts with: the tool and what it is about."""
    return Line(
        head=visible(part.tool), text=_subject(part, directory), style="tool", indent=indent
    )


def tool_detail(part: ToolPart, *, indent: int = 0) -> tuple[Line, ...]:
    """What a call came to, when that is worth more than its head."""
    match part.state:
        case Failed(error=error):
            return tail(error, limit=ERROR_LINES, style="error", indent=indent, from_end=False)
        case Completed(metadata=metadata, output=output):
            return _result(metadata, output, indent)
        case _:
            return ()


def tail(
    text: str, *, limit: int, style: Style = "dim", indent: int = 0, from_end: bool = True
) -> tuple[Line, ...]:
    """The last lines of a text, or the first, and how many are left out."""
    lines = visible(text).strip("\n").split("\n") if text.strip() else []
    left_out = len(lines) - limit
    shown = (lines[-limit:] if from_end else lines[:limit]) if left_out > 0 else lines
    body = [Line(text=line.rstrip(), style=style, indent=indent) for line in shown]
    if left_out > 0:
        note = Line(text=f"… {counted(left_out, 'more line')}", style="dim", indent=indent)
        body.insert(0 if from_end else len(body), note)
    return tuple(body)


def diff_lines(diff: str, *, limit: int = DIFF_LINES, indent: int = 0) -> tuple[Line, ...]:
    """A unified diff, each line in the style of its kind."""
    lines = tail(diff, limit=limit, style="plain", indent=indent, from_end=False)
    return tuple(
        Line(text=line.text, style=_diff_style(line), indent=line.indent) for line in lines
    )


def todo_lines(todos: Iterable[Mapping[str, Any]], *, indent: int = 0) -> tuple[Line, ...]:
    """A list of todos with their marks."""
    return tuple(_todo(todo, indent) for todo in todos)


def failure_text(failure: Failure) -> str:
    """What a turn ended with, on one line; the session has all of a long text."""
    message = failure.data.message or type(failure).__name__
    text = " ".join(visible(message).split())
    return text if len(text) <= FAILURE_WIDTH else f"{text[: FAILURE_WIDTH - 1]}…"


def retry_line(status: Retry, *, now_ms: int) -> Line:
    """When the model is asked again, and why."""
    wait_s = max(0, round((status.next - now_ms) / 1000))
    text = f"attempt {status.attempt + 1} in {wait_s} s: {one_line(status.message)}"
    return Line(head="retry", text=text, style="warning")


def usage_line(cost: float | None, tokens: Tokens, *, steps: int, seconds: float) -> Line:
    """What a turn cost; cached tokens are counted as read."""
    read = tokens.input + tokens.cache.read + tokens.cache.write
    written = tokens.output + tokens.reasoning
    facts = ["cost unknown"] if cost is None else [f"${cost:.4f}"] if cost else []
    facts += [f"{read:,} tokens in, {written:,} out", counted(steps, "step"), f"{seconds:.1f} s"]
    return Line(text=" · ".join(facts), style="dim")


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`, `3 matches`."""
    plural = "es" if thing.endswith("ch") else "s"
    return f"{number:,} {thing}{'' if number == 1 else plural}"


def request_lines(request: PermissionRequest) -> tuple[Line, ...]:
    """A permission request in full: nothing that is approved may be hidden or cut."""
    head = Line(head="permission", text=visible(request.permission), style="warning")
    patterns = tuple(line for pattern in request.patterns for line in _in_full(pattern))
    command = request.metadata.get("command")
    whole: tuple[Line, ...] = ()
    if isinstance(command, str) and not any(text.endswith(command) for text in request.patterns):
        whole = (Line(text="of the command", style="dim", indent=1), *_in_full(command))
    diff = request.metadata.get("diff")
    changes = diff_lines(diff, limit=len(diff), indent=1) if isinstance(diff, str) else ()
    lasts = (Line(text="it goes on in the background", style="warning", indent=1),)
    background = lasts if request.metadata.get("background") is True else ()
    reason = request.metadata.get("reason")
    why = (Line(text=exposed(reason), style="dim", indent=1),) if isinstance(reason, str) else ()
    return head, *patterns, *whole, *place_lines(request), *background, *changes, *why


def place_lines(request: PermissionRequest) -> tuple[Line, ...]:
    """The part of a shell line that is unclear, with its place underlined."""
    place = request.metadata.get("place")
    marked = place.get("marked") if isinstance(place, dict) else None
    lines = exposed(marked).split("\n") if isinstance(marked, str) else ()
    return tuple(Line(text=line, style="warning", indent=1) for line in lines)


def _in_full(text: str) -> tuple[Line, ...]:
    """All of a text, and how long it is where that is not seen at once."""
    lines = exposed(text).split("\n")
    shown = tuple(Line(text=line, indent=1) for line in lines)
    if len(lines) == 1 and len(text) <= LABEL_WIDTH:
        return shown
    size = f"({counted(len(text), 'character')} in {counted(len(lines), 'line')})"
    return *shown, Line(text=size, style="dim", indent=1)


def always_line(request: PermissionRequest) -> Line:
    """What an answer for good would allow from now on, and to whom."""
    if request.metadata.get("once"):
        return Line(text="this is asked every time", style="dim", indent=1)
    patterns = ", ".join(exposed(pattern) for pattern in request.always)
    agent = request.metadata.get("agent")
    alone = f"; s@, a@, u@: to agent {visible(str(agent))} alone" if agent else ""
    text = f"always allows: {patterns or 'the same again'}{alone}"
    return Line(text=text, style="dim", indent=1)


def question_lines(question: Question) -> tuple[Line, ...]:
    """A question with its options, which are numbered from 1."""
    options = tuple(
        Line(head=f"{number}. {visible(option.label)}", text=visible(option.description), indent=1)
        for number, option in enumerate(question.options, start=1)
    )
    return Line(head="question", text=visible(question.question), style="warning"), *options


def _subject(part: ToolPart, directory: Path) -> str:
    arguments = part.state.input
    if "subagent_type" in arguments:
        return one_line(f"{arguments['subagent_type']}: {arguments.get('description', '')}")
    if "todos" in arguments:
        return ""  # they are shown with the answer
    for value in map(arguments.get, _SUBJECTS):
        if isinstance(value, str):
            return one_line(_inside(value, directory))
    return one_line(json.dumps(arguments, ensure_ascii=False)) if arguments else ""


def _inside(value: str, directory: Path) -> str:
    prefix = f"{directory}/"
    return value.removeprefix(prefix)


def _result(metadata: Mapping[str, Any], output: str, indent: int) -> tuple[Line, ...]:
    """What the protocol's clients show of an answer, by what its metadata have."""
    match metadata:
        case {"exit": _} | {"output": str()}:
            text = metadata.get("output")
            shown = tail(text if isinstance(text, str) else output, limit=TAIL_LINES, indent=indent)
            return (*shown, *_exit_line(metadata, indent))
        case {"diff": str(diff)}:
            return diff_lines(diff, indent=indent)
        case {"todos": [*todos]}:
            return todo_lines((todo for todo in todos if isinstance(todo, dict)), indent=indent)
        case {"count": int(count)}:
            return (Line(text=counted(count, "file"), style="dim", indent=indent),)
        case {"matches": int(count)}:
            return (Line(text=counted(count, "match"), style="dim", indent=indent),)
    return ()


def _exit_line(metadata: Mapping[str, Any], indent: int) -> Sequence[Line]:
    code = metadata.get("exit")
    return [Line(text=f"exit {code}", style="error", indent=indent)] if code else []


def _todo(todo: Mapping[str, Any], indent: int) -> Line:
    mark, style = _MARKS.get(str(todo.get("status")), ("[ ]", "plain"))
    return Line(head=mark, text=one_line(str(todo.get("content", ""))), style=style, indent=indent)


def _diff_style(line: Line) -> Style:
    if line.style == "dim" or line.text.startswith(("+++", "---", "Index", "===", "diff ")):
        return "dim"
    match line.text[:1]:
        case "+":
            return "added"
        case "-":
            return "removed"
        case "@":
            return "hunk"
        case _:
            return "plain"
