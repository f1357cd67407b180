"""Blocks: what people see of a tool call, as data that every terminal, page and export draws."""

from typing import Literal

import msgspec

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
