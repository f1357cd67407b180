"""What goes into a call of a tool and what comes out of it."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard.contract.blocks import Block


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
