"""The input and the result of a tool call, with the blocks that people see."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from pegboard.providers import ModelRequest, StreamFinish

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
    """The drawing of a call: a title behind the tool's name, then the other fields that are set.

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
        """Return an attachment with this content."""
        url = f"data:{mime};base64,{b64encode(content).decode()}"
        return cls(mime=mime, url=url, filename=filename)


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer: `output` for the model, `title` and `metadata` for clients.

    Clients of the protocol list calls by their `title`. The terminal lists them by their arguments,
    and shows what a title that begins with these adds. `display` is what users see of the call in
    place of its output; no model gets it.
    """

    output: str
    title: str = ""
    metadata: Mapping[str, Any] = {}
    attachments: tuple[Attachment, ...] = ()
    display: Block | None = None


@dataclass(slots=True)
class Activity:
    """A turn, a request to a model or a tool call; the engine fills it in while it lasts.

    `id` is that of the message or the call, `name` that of the agent, the model or the tool, and
    `asked` what it is about. At the end `outcome` or `error` says what came of it. Of a request,
    `chunks_ns` are when its chunks came and `last_ns` is when the answer was complete, in
    nanoseconds since the epoch: its tools run while it still lasts.
    """

    kind: Literal["turn", "model", "tool"]
    session_id: str
    id: str
    name: str
    asked: "ModelRequest | PendingCall | None" = None
    chunks_ns: list[int] = field(default_factory=list)
    last_ns: int = 0
    outcome: "StreamFinish | ToolResult | None" = None
    error: BaseException | None = None


class PendingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call before it runs, as the `tool_execute_before` and `after` hooks see it."""

    id: str
    tool: str
    input: Mapping[str, Any]
    message_id: str


class FoldStep(msgspec.Struct, frozen=True):
    """The subject of a fold after one plugin; the same object if the plugin left it unchanged.

    `session_id` is "" for a hook without a session.
    """

    session_id: str
    hook: str
    plugin: str
    before: object
    after: object
    elapsed_ms: float


class PrefixChange(msgspec.Struct, frozen=True, kw_only=True):
    """Two successive requests of a session, of which the second does not begin with the first.

    The steps are what plugins made of the subjects of the hooks that build a request, in order.
    """

    before: ModelRequest
    after: ModelRequest
    steps_before: tuple[FoldStep, ...]
    steps_after: tuple[FoldStep, ...]


class PrefixLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The plugin that changed the beginning of a request, so that a provider's cache missed it.

    `line` is the first changed line, `tokens` about what the cache would have had. The user reads
    the `warning`, if there is one.
    """

    plugin: str
    hook: str
    line: str
    tokens: int
    warning: str = ""
