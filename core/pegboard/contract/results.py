"""What goes into a call of a tool and what comes out of it, the blocks that people see included."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Literal

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
