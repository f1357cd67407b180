"""What people see of the calls of the built-in tools, where their metadata do not say it all."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pegboard_terminal
from pegboard import hookimpl
from pegboard.kit import Block, Span
from pegboard.schema.part import Completed, ToolPart

ANSWER_LINES = 12


@hookimpl
def render_tool(part: ToolPart) -> Block | None:
    """The block of a call that has come to something, if its tool is one of these."""
    draw = _DRAWN.get(part.tool)
    if draw is None or not isinstance(part.state, Completed):
        return None
    return draw(part.state, pegboard_terminal.subject_of(part.state.input))


def _read(state: Completed, title: str) -> Block:
    """The file with its lines; its content is shown to who asks."""
    return pegboard_terminal.block_of_text(
        _body(state.output), title=f"{title}{_range(state.input)}", fold=0
    )


def _range(said: Mapping[str, Any]) -> str:
    match said:
        case {"offset": int(first), "limit": int(many)}:
            return f":{first}-{first + many - 1}"
        case {"offset": int(first)}:
            return f":{first}-"
        case _:
            return ""


def _body(output: str) -> str:
    """What stands between the tags that a model reads around a file."""
    inside = [line for line in output.split("\n") if not (line[:1] == "<" and line[-1:] == ">")]
    return "\n".join(inside)


def _task(state: Completed, title: str) -> Block:
    """The subagent's answer, which is Markdown, without the line that models read."""
    answer = state.output.partition("<task_metadata>")[0].strip()
    return Block(title=title, markdown=answer, fold=ANSWER_LINES)


def _question(state: Completed, title: str) -> Block:
    """Each question with what was answered."""
    asked: Sequence[Any] = state.input.get("questions", ())
    given: Sequence[Any] = state.metadata.get("answers", ())
    rows = [
        (
            Span(pegboard_terminal.one_line(str(question.get("question", "")))),
            Span(f"  {', '.join(labels)}", "done"),
        )
        for question, labels in zip(asked, given, strict=False)
        if isinstance(question, dict) and isinstance(labels, list)
    ]
    return Block(title=state.title or title, lines=tuple(rows), fold=len(rows))


def _found(state: Completed, title: str) -> Block:
    """How much was found in the web, and the first of it."""
    many = state.metadata.get("results")
    note = f" · {pegboard_terminal.counted(many, 'result')}" if isinstance(many, int) else ""
    return Block(title=title + note, lines=pegboard_terminal.lines_of(state.output, "dim"), fold=0)


def _page(state: Completed, title: str) -> Block:
    return Block(title=title, markdown=state.output, fold=0)


def _patched(state: Completed, title: str) -> Block:
    """The files of a patch, and what was done to them."""
    diff = state.metadata.get("diff")
    found = diff if isinstance(diff, str) else ""
    return Block(title=state.title or title, diff=found, fold=4 * ANSWER_LINES)


def _skill(state: Completed, title: str) -> Block:
    return pegboard_terminal.block_of_text(
        state.output, title=str(state.metadata.get("name", title)), fold=0
    )


_DRAWN: Mapping[str, Callable[[Completed, str], Block]] = {
    "apply_patch": _patched,
    "codesearch": _found,
    "question": _question,
    "read": _read,
    "skill": _skill,
    "task": _task,
    "webfetch": _page,
    "websearch": _found,
}
"""The tools whose calls are drawn here; those that edit or run something tell it themselves."""
