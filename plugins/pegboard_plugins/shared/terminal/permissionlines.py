"""The lines of a permission request, as complete styled text."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from pegboard.display import Block, Span, SpanLine
from pegboard.schema.session import PermissionRequest, Scope
from pegboard.unstable import block_lines, counted, exposed

HELD_S = 0.25
"""A key answers a request only if no other key follows within this time: it begins a text."""
QUIET_S = 1.0
"""A pause of this length ends typing that began before a question appeared."""
CONFIRM: Mapping[Scope, str] = {
    "session": "Enter allows it in this session",
    "project": "Enter allows it always in this project",
    "user": "Enter allows it always in all of your projects",
}
"""The line behind the key of an answer that lasts: Enter gives it, as it is not asked again."""
SEEN_AT_ONCE = 100
"""The maximum length of a line without a note about its length."""
_OPERATORS = re.compile(r" *(?:&&|\|\|?|;) *")
"""The operators between the commands of a shell line, each of which is a pattern."""
_DELETES = re.compile(r"(?:rm|rmdir|unlink)(?: [^\n&|;<>()$`]*)")
"""A single command that only deletes files."""


def permission_lines(
    request: PermissionRequest, *, most: int | None = None
) -> tuple[SpanLine, ...]:
    """Return the lines that describe a permission request exactly, at most `most` lines.

    They have the patterns, the whole command with its unclear parts marked, the path, the arguments
    of a call, the text to send, and the diff.
    """
    return tuple(islice(_lines(request), most))


def _lines(request: PermissionRequest) -> Iterator[SpanLine]:
    facts = request.metadata
    text, diff = facts.get("text"), facts.get("diff")
    arguments = tuple(_arguments(facts.get("arguments")))
    anything = () if arguments else tuple(_in_full("any"))
    path = facts.get("filepath") if "parentDir" in facts else None
    has_all_parts = tuple(_OPERATORS.split(request.line)) == request.patterns
    act = _act(request)
    if act:
        yield (Span(exposed(act)),)
    elif not has_all_parts:
        for pattern in request.patterns:
            yield from _in_full(pattern) if pattern != "*" else anything
    if request.line and not act:
        if not has_all_parts:
            yield (Span(_by_command(request), "dim"),)
        yield from _in_full(request.line)
    if isinstance(path, str):
        yield (Span("for the path", "dim"),)
        yield from _in_full(path)
    yield from arguments
    yield from _place(facts.get("place"))
    if facts.get("background") is True:
        yield (Span("runs in the background", "warning"),)
    if isinstance(text, str):
        yield from _in_full(text)
    if isinstance(diff, str):
        yield from block_lines(Block(diff=diff), "whole").lines


def _act(request: PermissionRequest) -> str:
    """Return a sentence on how a shell command changes files; "" if it is too long for one row."""
    if request.permission != "edit" or not request.line:
        return ""
    verb = "delete" if _DELETES.fullmatch(request.line) else "change"
    files = ", ".join(f"`{each}`" for each in request.patterns)
    act = f"`{request.line}` would {verb} {files}"
    return act if len(act) <= SEEN_AT_ONCE and act.isprintable() else ""


def _by_command(request: PermissionRequest) -> str:
    """Return words to join a request's patterns to its command, such as "in the command"."""
    if request.permission != "edit":
        return "in the command"
    return f"would be {'deleted' if _DELETES.fullmatch(request.line) else 'changed'} by the command"


def _arguments(arguments: object) -> Iterator[SpanLine]:
    """Yield the arguments of a tool call with their names, without arguments that are null."""
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield from _in_full(f"{name}: {text}")


def _place(place: object) -> Iterator[SpanLine]:
    marked = place.get("marked") if isinstance(place, dict) else None
    if isinstance(marked, str):
        for line in exposed(marked).split("\n"):
            yield (Span(line, "warning"),)


def _in_full(text: str) -> Iterator[SpanLine]:
    """Yield all lines of a text, and the length of the text if it is long."""
    lines = text.split("\n")
    for line in lines:
        yield (Span(exposed(line)),)
    if len(lines) > 1 or len(text) > SEEN_AT_ONCE:
        size = f"({counted(len(text), 'character')} in {counted(len(lines), 'line')})"
        yield (Span(size, "dim"),)
