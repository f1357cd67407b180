"""Tools: what the model can call, made from a function or from a raw JSON Schema."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that goes with a tool's answer; `url` is a `data:` URL."""

    mime: str
    url: str
    filename: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A tool's answer: `output` for the model, `title` and `metadata` for who watches."""

    output: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A call before it runs, as the `tool_execute_before` and `after` hooks see it."""

    id: str
    tool: str
    input: Mapping[str, Any]
    message_id: str
