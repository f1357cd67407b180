"""The input and the result of a tool call, and the blocks in which a UI shows the call."""

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
    """A piece of a line in one style; it has no line break."""

    text: str
    style: SpanStyle = "plain"


SpanLine = tuple[Span, ...]


class Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a call is displayed: a title after the tool's name, then the other fields that are set.

    They are drawn in this order: `lines`, a unified `diff`, the rows of a `table` (the first is its
    head), and `markdown`. At first only `fold` lines of them are shown, from the beginning
    (`keep="head"`), the end (`tail`) or both ends (`both`). With a `fold` of 0 only the title is
    shown until the user asks for more.
    """

    title: str = ""
    lines: tuple[SpanLine, ...] = ()
    diff: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    markdown: str = ""
    fold: int = HEAD_LINES
    keep: Literal["head", "tail", "both"] = "head"


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file that belongs to a tool's answer; `url` is a `data:` URL."""

    mime: str
    url: str
    filename: str | None = None

    @classmethod
    def of_bytes(cls, content: bytes, mime: str, *, filename: str | None = None) -> "Attachment":
        """Return an attachment with these bytes as its content."""
        url = f"data:{mime};base64,{b64encode(content).decode()}"
        return cls(mime=mime, url=url, filename=filename)


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer: `output` for the model, `title` and `metadata` for clients.

    Clients of the protocol list calls by their `title`. The terminal lists them by their arguments;
    if the title begins with the arguments, the terminal also shows the rest of the title. `display`
    is shown to users instead of the output; no model gets it.
    """

    output: str
    title: str = ""
    metadata: Mapping[str, Any] = {}
    attachments: tuple[Attachment, ...] = ()
    display: Block | None = None


@dataclass(slots=True)
class Activity:
    """A turn, a request to a model or a tool call, which the engine records while it runs.

    `id` is the id of the message or the call, and `name` the name of the agent, the model or the
    tool. `asked` is the `ModelRequest` or the `PendingCall`, and `outcome` or `error` is set at the
    end. For a request to a model, `chunks_ns` are the times at which chunks of the answer arrived,
    and `last_ns` is the time at which the answer was complete, in nanoseconds since the epoch. The
    activity ends later, when the tools of the answer have run.
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
    """A tool call before it runs, as hooks such as `tool_execute_before` see it."""

    id: str
    tool: str
    input: Mapping[str, Any]
    message_id: str


class FoldStep(msgspec.Struct, frozen=True):
    """The change that one plugin made in a fold, a hook that passes a value from plugin to plugin.

    `before` and `after` are the value before and after the plugin, the same object if the plugin
    changed nothing. `session_id` is "" for a hook without a
    session.
    """

    session_id: str
    hook: str
    plugin: str
    before: object
    after: object
    elapsed_ms: float


class PrefixChange(msgspec.Struct, frozen=True, kw_only=True):
    """Two successive requests of a session, where the second does not begin like the first.

    `steps_before` and `steps_after` show what each plugin changed in the first and in the second
    request, in order.
    """

    before: ModelRequest
    after: ModelRequest
    steps_before: tuple[FoldStep, ...]
    steps_after: tuple[FoldStep, ...]


class PrefixLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The plugin that changed the beginning of a request, so that a provider's cache missed it.

    `line` is the first changed line, and `tokens` is about how many the cache would have saved. If
    there is a `warning`, the user reads it.
    """

    plugin: str
    hook: str
    line: str
    tokens: int
    warning: str = ""
