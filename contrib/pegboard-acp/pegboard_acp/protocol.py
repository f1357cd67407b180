"""The types of ACP, protocol version 1, that clients send.

Names and meanings are those of the schema, https://agentclientprotocol.com/protocol/v1/schema.
Unknown fields are ignored, as the protocol requires.
"""

from typing import Any

import msgspec

VERSION = 1


class AcpValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The base class of all ACP values, with the settings to decode and encode them."""


# What a client can do.


class ElicitationSupport(AcpValue, frozen=True):
    """The ways in which an ACP client can ask its user for input."""

    form: dict[str, Any] | None = None


class ClientSession(AcpValue, frozen=True):
    """The optional session updates that a client can display."""

    notices: dict[str, Any] | None = None
    compaction: dict[str, Any] | None = None


class ClientAuth(AcpValue, frozen=True):
    """The ways to sign in that need the client's help."""

    terminal: bool = False


class ClientCapabilities(AcpValue, frozen=True):
    """The capabilities of a client."""

    session: ClientSession | None = None
    elicitation: ElicitationSupport | None = None
    auth: ClientAuth | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def shows_notices(self) -> bool:
        """Whether the client displays `notice` updates."""
        return self.session is not None and self.session.notices is not None

    @property
    def shows_compaction(self) -> bool:
        """Whether the client displays `compaction_update` updates."""
        return self.session is not None and self.session.compaction is not None

    @property
    def fills_forms(self) -> bool:
        """Whether the client displays forms."""
        return self.elicitation is not None and self.elicitation.form is not None

    @property
    def opens_terminals_to_sign_in(self) -> bool:
        """Whether the client can run sign-ins in a terminal; older clients say so in `_meta`."""
        said = self.auth is not None and self.auth.terminal
        return said or bool((self.meta or {}).get("terminal-auth"))


# What a client sends.


class InitializeParams(AcpValue, frozen=True):
    """The parameters of `initialize`, the first request."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None


class NamedValue(AcpValue, frozen=True):
    """An environment variable of an MCP server's process, or an HTTP header for a remote server."""

    name: str
    value: str


class McpServer(AcpValue, frozen=True):
    """An MCP server that a client requests for a session: a `command`, or a `url`."""

    name: str
    type: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[NamedValue, ...] = ()
    url: str = ""
    headers: tuple[NamedValue, ...] = ()


class OpenParams(AcpValue, frozen=True):
    """The parameters that open a session; `session_id` is set to load or resume a session."""

    cwd: str
    session_id: str = ""
    mcp_servers: tuple[McpServer, ...] | None = None
    additional_directories: tuple[str, ...] | None = None


class ListParams(AcpValue, frozen=True):
    """The parameters of `session/list`: a filter and a page."""

    cwd: str | None = None
    cursor: str | None = None


class SessionParams(AcpValue, frozen=True):
    """The parameters of a request about an existing session."""

    session_id: str


class ModeParams(SessionParams, frozen=True):
    """The parameters of `session/set_mode`."""

    mode_id: str


class OptionParams(SessionParams, frozen=True):
    """The parameters that set an option of a session."""

    config_id: str
    value: str | bool


class Annotations(AcpValue, frozen=True):
    """The annotations of a content block: for whom the block is meant."""

    audience: tuple[str, ...] | None = None


class TextBlock(AcpValue, frozen=True, tag_field="type", tag="text"):
    """A block of Markdown text."""

    text: str
    annotations: Annotations | None = None


class ImageBlock(AcpValue, frozen=True, tag_field="type", tag="image"):
    """An image block, encoded in base64."""

    data: str
    mime_type: str
    uri: str | None = None


class AudioBlock(AcpValue, frozen=True, tag_field="type", tag="audio"):
    """An audio block, encoded in base64."""

    data: str
    mime_type: str


class LinkBlock(AcpValue, frozen=True, tag_field="type", tag="resource_link"):
    """A block that links to a file or another resource."""

    uri: str
    name: str
    mime_type: str | None = None


class ResourceContents(AcpValue, frozen=True):
    """The content of a resource: a text or a base64 `blob`."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class ResourceBlock(AcpValue, frozen=True, tag_field="type", tag="resource"):
    """A content block that embeds a resource with its content."""

    resource: ResourceContents


Block = TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock


class PromptParams(SessionParams, frozen=True):
    """The parameters of `session/prompt`: the user's prompt."""

    prompt: tuple[Block, ...]


class Chosen(AcpValue, frozen=True, tag_field="outcome", tag="selected"):
    """The outcome of a permission request for which the user chose an option."""

    option_id: str


class Unchosen(AcpValue, frozen=True, tag_field="outcome", tag="cancelled"):
    """The outcome of a permission request whose turn was cancelled."""


class PermissionResult(AcpValue, frozen=True):
    """The answer to `session/request_permission`."""

    outcome: Chosen | Unchosen


class ElicitationResult(AcpValue, frozen=True):
    """The answer to `elicitation/create`; `content` is set only if the action is `accept`."""

    action: str
    content: dict[str, str | bool | int | float | list[str]] | None = None
