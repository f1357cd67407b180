"""The values of ACP, protocol version 1, that a client sends and Pegboard uses.

Names and meanings are those of the schema, https://agentclientprotocol.com/protocol/v1/schema.
Fields that are not listed are ignored when they come, as the protocol asks for.
"""

from typing import Any

import msgspec

VERSION = 1


class AcpValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The settings that all values share."""


# What a client can do.


class ElicitationSupport(AcpValue, frozen=True):
    """The ways in which a client asks its user."""

    form: dict[str, Any] | None = None


class ClientSession(AcpValue, frozen=True):
    """The updates that a client can show; it cannot show omitted ones."""

    notices: dict[str, Any] | None = None
    compaction: dict[str, Any] | None = None


class ClientAuth(AcpValue, frozen=True):
    """The ways to sign in that need a client's help."""

    terminal: bool = False


class ClientCapabilities(AcpValue, frozen=True):
    """The capabilities of a client."""

    session: ClientSession | None = None
    elicitation: ElicitationSupport | None = None
    auth: ClientAuth | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def shows_notices(self) -> bool:
        """Return whether the client takes a `notice`."""
        return self.session is not None and self.session.notices is not None

    @property
    def shows_compaction(self) -> bool:
        """Return whether the client takes a `compaction_update`."""
        return self.session is not None and self.session.compaction is not None

    @property
    def fills_forms(self) -> bool:
        """Return whether the client shows forms."""
        return self.elicitation is not None and self.elicitation.form is not None

    @property
    def opens_terminals_to_sign_in(self) -> bool:
        """Return whether the client can run terminal sign-ins; those of 2025 say so in `_meta`."""
        said = self.auth is not None and self.auth.terminal
        return said or bool((self.meta or {}).get("terminal-auth"))


# What a client sends.


class InitializeParams(AcpValue, frozen=True):
    """The first request."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None


class NamedValue(AcpValue, frozen=True):
    """A variable of a server's process, or a header of requests to it."""

    name: str
    value: str


class McpServer(AcpValue, frozen=True):
    """An MCP server that a client wants for a session: a `command`, or a `url`."""

    name: str
    type: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[NamedValue, ...] = ()
    url: str = ""
    headers: tuple[NamedValue, ...] = ()


class OpenParams(AcpValue, frozen=True):
    """The fields of a new session, or with `session_id` of a loaded or resumed one."""

    cwd: str
    session_id: str = ""
    mcp_servers: tuple[McpServer, ...] | None = None
    additional_directories: tuple[str, ...] | None = None


class ListParams(AcpValue, frozen=True):
    """Which sessions are listed."""

    cwd: str | None = None
    cursor: str | None = None


class SessionParams(AcpValue, frozen=True):
    """The session that is meant."""

    session_id: str


class ModeParams(SessionParams, frozen=True):
    """The mode that is chosen."""

    mode_id: str


class OptionParams(SessionParams, frozen=True):
    """The option that is set."""

    config_id: str
    value: str | bool


class Annotations(AcpValue, frozen=True):
    """The audience of a block."""

    audience: tuple[str, ...] | None = None


class TextBlock(AcpValue, frozen=True, tag_field="type", tag="text"):
    """Text, as Markdown."""

    text: str
    annotations: Annotations | None = None


class ImageBlock(AcpValue, frozen=True, tag_field="type", tag="image"):
    """A picture in base64."""

    data: str
    mime_type: str
    uri: str | None = None


class AudioBlock(AcpValue, frozen=True, tag_field="type", tag="audio"):
    """A sound in base64."""

    data: str
    mime_type: str


class LinkBlock(AcpValue, frozen=True, tag_field="type", tag="resource_link"):
    """A file or another resource, by its address."""

    uri: str
    name: str
    mime_type: str | None = None


class ResourceContents(AcpValue, frozen=True):
    """A text or, in base64, a `blob`."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class ResourceBlock(AcpValue, frozen=True, tag_field="type", tag="resource"):
    """A resource with its content."""

    resource: ResourceContents


Block = TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock


class PromptParams(SessionParams, frozen=True):
    """A prompt of the user."""

    prompt: tuple[Block, ...]


class Chosen(AcpValue, frozen=True, tag_field="outcome", tag="selected"):
    """The user has chosen an option."""

    option_id: str


class Unchosen(AcpValue, frozen=True, tag_field="outcome", tag="cancelled"):
    """The turn was cancelled first."""


class PermissionResult(AcpValue, frozen=True):
    """The answer to `session/request_permission`."""

    outcome: Chosen | Unchosen


class ElicitationResult(AcpValue, frozen=True):
    """The answer to `elicitation/create`; only `accept` has a content."""

    action: str
    content: dict[str, str | bool | int | float | list[str]] | None = None
