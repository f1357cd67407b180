"""The lines of the footer: running work, queued prompts, dialogs, and completions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import time

import msgspec
from prompt_toolkit.formatted_text import StyleAndTextTuples
from rich.cells import cell_len

from pegboard.display import Span, SpanStyle
from pegboard.schema.part import Completed, Failed, Running, ToolPart
from pegboard.unstable import counted, one_line, shown_line, user_words
from pegboard_plugins.chat.course import Child, Course
from pegboard_plugins.chat.finished import call_head, subject_of
from pegboard_plugins.chat.liveline import live_line
from pegboard_plugins.chat.modes import Mode, SpanLine
from pegboard_plugins.chat.turnprogress import retry_text
from pegboard_plugins.shared.terminal import row_sign, wrapped

THOUGHT_LINES, TAIL_LETTERS = 5, 2000
CALLS, CHILDREN, TODOS, QUEUED, OFFERED = 4, 4, 5, 3, 10
NARROW_ROOM = 6
"""The number of lines up to which the footer has no blank line above it."""
REASON_LETTERS = 400
BLANK_ROWS = 4
"""The number of blank rows of a line that count as its end."""
LEAST_LETTERS, SUBJECT_LETTERS = 10, 80
"""The minimum and maximum length of a call's subject."""
LIVE_LINES = 8
"""The maximum number of displayed lines of a running command's output."""
MS_PER_S = 1000
GIVES_WAY = ("todo", "widgets")
"""The groups of lines that leave half of the room to the text that the model is writing."""


class Footing(msgspec.Struct, kw_only=True):
    """The content of the footer: running work, queued prompts, the open dialog, and notices."""

    course: Course | None
    mode: Mode | None
    hint: str
    queue: Sequence[str]
    edit_key: str
    offered: Sequence[Span]
    chosen: int
    widgets: Sequence[SpanLine]
    notice: str
    is_connected: bool


def footer_lines(footing: Footing, width: int, room: int) -> list[SpanLine]:
    """Return at most `room` lines of at most `width` columns, preferring the important ones.

    A blank line comes first if there is room for it.
    """
    gap = room > NARROW_ROOM
    room -= gap
    tail = _tail(footing.course, width, room)
    groups = (
        ("mode", _mode(footing, width, room)),
        ("notice", _notice(footing.notice)),
        ("offered", _offered(footing, room)),
        ("live", _live_line(footing, width)),
        ("queue", _queue(footing, width)),
        ("calls", _calls(footing.course, width)),
        ("children", _children(footing.course)),
        ("todo", _todo(footing.course)),
        ("widgets", footing.widgets),
        ("tail", tail),
    )
    kept: dict[str, Sequence[SpanLine]] = {}
    for name, lines in groups:
        free = room - min(len(tail), room // 2) if name in GIVES_WAY else room
        shown = lines[-room:] if name == "tail" else lines[:free]
        kept[name] = shown if free > 0 else ()
        room -= len(kept[name])
    order = (
        "tail",
        "calls",
        "children",
        "todo",
        "widgets",
        "live",
        "queue",
        "notice",
        "mode",
        "offered",
    )
    lines = [cut(line, width) for name in order for line in kept[name]]
    return [(), *lines] if gap and lines and _plain(lines[0]).strip() else lines


def _mode(footing: Footing, width: int, room: int) -> Sequence[SpanLine]:
    if footing.mode is None:
        return ()
    text = footing.hint
    if cell_len(text) > width:
        text = text.rpartition(" · ")[2]  # the key that answers
    hint = [(Span(text, "active"),)] if text else []
    return [*footing.mode.lines(width, max(1, room - len(hint))), *hint]


def _plain(line: SpanLine) -> str:
    return "".join(span.text for span in line)


def cut(line: SpanLine, width: int) -> SpanLine:
    """Cut the line to `width` columns, with an ellipsis and without control characters.

    Trailing blanks do not count.
    """
    shown = shown_line(line)
    rows = wrapped(shown, width)
    first = next(rows, ())
    if not any(_plain(row).strip() for row in islice(rows, BLANK_ROWS)):
        return first
    return (*next(wrapped(shown, max(1, width - 1))), Span("…", "dim"))


def fragments(lines: Iterable[SpanLine]) -> StyleAndTextTuples:
    """Return the lines as prompt_toolkit's formatted text."""
    found: StyleAndTextTuples = []
    for line in lines:
        place, sign = row_sign(line)
        ground = f" class:{sign}_row" if sign else ""
        for number, span in enumerate(line, start=-place):
            style = f"class:{span.style}"
            if ground and number >= 0:  # the row's own letters have the ground's colour
                is_plain = number > 1 and span.style == sign
                style = style + ground if is_plain else f"{ground.strip()} {style}"
            found.append((style, span.text))
        found.append(("", "\n"))
    return found[:-1]


def style_rules(palette: dict[str, str]) -> dict[str, str]:
    """Return a palette as prompt_toolkit's style rules."""
    return {role: " ".join(_words(style.split())) for role, style in palette.items()}


def _words(style: Iterable[str]) -> Iterator[str]:
    ground = ""
    for word in style:
        if word == "on":
            ground = "bg:"
        elif word in ("dim", "bold", "italic", "underline", "reverse"):
            yield word
        else:
            colour = word if word.startswith("#") else "ansi" + word.replace("_", "")
            yield ground + colour


def _notice(text: str) -> Sequence[SpanLine]:
    return [shown_line((Span(text, "warning"),))] if text else ()


def _offered(footing: Footing, room: int) -> Sequence[SpanLine]:
    """Return the selected completion with its neighbours, and "3 of 20" if some are hidden."""
    offered, chosen = footing.offered, footing.chosen
    rows_left = room - bool(footing.notice)
    seen = min(len(offered), OFFERED)
    if len(offered) > min(seen, rows_left):  # one row is for the number
        seen = max(1, min(seen, rows_left - 1))
    first = max(0, min(chosen - seen // 2, len(offered) - seen))
    rows = []
    for number in range(first, min(first + seen, len(offered))):
        mark = Span("❯ " if number == chosen else "  ", "active")
        rows.append(shown_line((mark, offered[number])))
    if len(offered) > seen:
        rows.append((Span(f"  {chosen + 1} of {len(offered)}", "dim"),))
    return rows


def _live_line(footing: Footing, width: int) -> Sequence[SpanLine]:
    if footing.course is None:
        return ()
    line = live_line(footing.course, width, is_connected=footing.is_connected)
    return [line] if line else ()


def _queue(footing: Footing, width: int) -> Sequence[SpanLine]:
    """Return the rows of the queued prompts; the last row names the key that edits a prompt."""
    steers = footing.course.steers.values() if footing.course else ()
    said = [("↳ next step: ", each.text) for each in steers] + [
        ("↳ after this turn: ", t) for t in footing.queue
    ]
    rows = [shown_line((Span(kind, "active"), Span(one_line(text)))) for kind, text in said]
    more = len(rows) - QUEUED
    rows = [*rows[:QUEUED], (Span(f"  … {more} more", "dim"),)] if more > 0 else rows
    if rows and footing.edit_key:
        edits = f" · {footing.edit_key} edits"
        rows[-1] = (*cut(rows[-1], max(1, width - len(edits))), Span(edits, "dim"))
    return rows


def _calls(course: Course | None, width: int) -> Sequence[SpanLine]:
    if course is None:
        return ()
    now_ms = int(time() * MS_PER_S)
    rows: list[SpanLine] = []
    working = {child.session.id for child in _working(course)}
    every = [each for each in course.calls.values() if _child_of(each) not in working]
    for part in every[-CALLS:]:
        rows.append(_call(part, now_ms, course.waited_s(part), width))
        if len(every) == 1:
            rows += _live(part)
    return rows


def _call(part: ToolPart, now_ms: int, waited_s: float | None, width: int) -> SpanLine:
    bare = _plain(call_head(part, " ", now_ms=now_ms, waited_s=waited_s))
    room = max(LEAST_LETTERS, width - cell_len(bare))
    subject = _plain(cut((Span(one_line(subject_of(part), SUBJECT_LETTERS)),), room))
    line = tuple(call_head(part, subject, now_ms=now_ms, waited_s=waited_s))
    match part.state:
        case Completed():
            return (Span("✓ ", "done"), *line[1:])
        case Failed(error=error):
            return (
                *line,
                *shown_line((Span(f"  {one_line(user_words(error), REASON_LETTERS)}", "error"),)),
            )
        case _:
            return line


def _live(part: ToolPart) -> list[SpanLine]:
    match part.state:
        case Running(metadata={"output": str(output)}):
            lines = output.rstrip("\n").split("\n")[-LIVE_LINES:]
            return [shown_line((Span("  │ ", "dim"), Span(line, "dim"))) for line in lines if line]
        case _:
            return []


def _children(course: Course | None) -> Sequence[SpanLine]:
    rows = []
    for child in _working(course)[:CHILDREN] if course else ():
        who = child.session.agent or "subagent"
        title = one_line(child.session.title).removesuffix(f" (@{who} subagent)")
        tokens = f" · {counted(child.tokens, 'token')}" if child.tokens else ""
        text = f" {title} · {_doing(child)}{tokens}"
        rows.append(shown_line((Span("◆ ", "accent"), Span(who, "bold"), Span(text, "dim"))))
    return rows


def _doing(child: Child) -> str:
    return retry_text(child.wait) if child.wait else child.last or "starting"


def _working(course: Course) -> Sequence[Child]:
    """Return the running subagents, in the order of their calls."""
    order = [_child_of(part) for part in course.calls.values()]
    found = [child for child in course.children.values() if child.running]
    return sorted(found, key=lambda child: [*order, child.session.id].index(child.session.id))


def _child_of(part: ToolPart) -> object:
    """Return the session id of the subagent that a tool call runs; None for other tool calls."""
    match part.state:
        case Running(metadata={"sessionId": session_id}):
            return session_id
        case _:
            return None


def _todo(course: Course | None) -> Sequence[SpanLine]:
    todos = course.todos if course else ()
    still = [todo for todo in todos if todo.status not in ("completed", "cancelled")]
    if not still:
        return ()
    done = len(todos) - len(still)
    rows: list[SpanLine] = []
    for todo in still[: TODOS - 1]:
        style = "active" if todo.status == "in_progress" else "plain"
        mark = "▸ " if style == "active" else "○ "
        rows.append(shown_line((Span(f"  {mark}{one_line(todo.content)}", style),)))  # type: ignore[arg-type]
    more = len(still) - len(rows)
    note = f"  {done} of {counted(len(todos), 'task')} done{f', {more} more' if more else ''}"
    return [*rows, (Span(note, "dim"),)]


def _tail(course: Course | None, width: int, room: int) -> Sequence[SpanLine]:
    """Return the end of the text or reasoning that the model is writing, at most `room` lines."""
    if course is None:
        return ()
    style: SpanStyle = "plain" if course.writes else "dim"
    most = room if course.writes else min(room, THOUGHT_LINES)
    text = course.tail(max(1, most), TAIL_LETTERS)
    if not text.strip():
        return ()
    lines = (shown_line((Span(line, style),)) for line in text.split("\n"))
    return [row for line in lines for row in wrapped(line, width, at_words=True)][-most:]
