"""The request to a provider, and the answer as a stream of events that is the same for all.

A provider yields the events of this module in the order of the model's answer. The engine adds the
results of tools. No provider sees the session.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec
from msgspec.structs import force_setattr, replace

from pegboard.errors import InvalidInputError
from pegboard.providers.keylookup import Key as Key
from pegboard.providers.keylookup import Keys as Keys
from pegboard.providers.keylookup import KeyStore as KeyStore
from pegboard.providers.keylookup import Renew as Renew
from pegboard.schema.config import Exposure
from pegboard.schema.model import Model
from pegboard.schema.wire import check_json

FinishReason = Literal[
    "stop", "length", "content-filter", "tool-calls", "error", "other", "unknown"
]
LONGEST_NAME = 200
"""Characters of the name in a call; a call with a longer one is a mistake of the model's."""


class Text(msgspec.Struct, frozen=True):
    """Text of a message.

    `metadata` is what the provider attached to the text in an earlier answer, to receive it back.
    """

    text: str
    metadata: Mapping[str, Any] | None = None


class Reasoning(msgspec.Struct, frozen=True):
    """The model's reasoning in an earlier answer, with its signature in `metadata`."""

    text: str
    metadata: Mapping[str, Any] | None = None


class Media(msgspec.Struct, frozen=True):
    """An image, sound, video or PDF; `url` is a `data:` or `https:` URL."""

    mime: str
    url: str
    filename: str | None = None


class Call(msgspec.Struct, frozen=True):
    """A tool call that the model made in an earlier answer."""

    id: str
    name: str
    input: Mapping[str, Any]
    metadata: Mapping[str, Any] | None = None


class Result(msgspec.Struct, frozen=True):
    """The result of the tool call `id`; `media` is sent too if the provider supports it."""

    id: str
    name: str
    output: str
    is_error: bool = False
    media: tuple[Media, ...] = ()


Content = Text | Reasoning | Media | Call | Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMessage:
    """One message of the history, in a form that every provider can convert.

    A `tool` message has only results. The engine uses the same object in every later request of the
    session. Therefore a provider can store the encoded form in `encoded`, under its own key, and
    need not encode the message again. Other messages, such as copies, start with an empty
    `encoded`.
    """

    role: Literal["user", "assistant", "tool"]
    content: tuple[Content, ...]
    encoded: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A tool as the model sees it; `parameters` is the JSON Schema of its arguments, an object.

    `exposure` is set by the user or the tool, else None. `source` is the tool's origin, such as a
    plugin's name, and "" for built-in plugins. `source_description` says what the source's tools
    are for, if the model searches for tools.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    permission: str
    exposure: Exposure | None = None
    source: str = ""
    source_description: str = ""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a model; a parameter that is None is left to the provider.

    `output_schema` is the JSON Schema of the final answer. A provider may ignore it, because the
    system prompt contains it too and the engine checks the answer. `deferred` are tools whose
    definitions the model finds by a search tool. It may call them, but a provider must not send
    their definitions.
    """

    model: Model
    system: tuple[str, ...]
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    options: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    session_id: str = ""
    idle_timeout_s: float = 120.0
    output_schema: Mapping[str, Any] | None = None
    deferred: tuple[ToolDefinition, ...] = ()

    def without(self, *names: str) -> "ModelRequest | None":
        """Return the request without the named tools, or None if it has none of these tools."""
        kept = tuple([tool for tool in self.tools if tool.name not in names])
        return replace(self, tools=kept) if len(kept) < len(self.tools) else None


class TextStart(msgspec.Struct, frozen=True):
    """The start of a text block; blocks may interleave, so each has an id."""

    id: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


class TextDelta(msgspec.Struct, frozen=True):
    """Text that is added to a text block of the answer."""

    id: str
    text: str

    def __post_init__(self) -> None:
        if not self.text.isascii():
            _check(self)


class TextEnd(msgspec.Struct, frozen=True):
    """The end of a text block."""

    id: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


class ReasoningStart(msgspec.Struct, frozen=True):
    """The start of a reasoning block."""

    id: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


class ReasoningDelta(msgspec.Struct, frozen=True):
    """Reasoning that is added to a reasoning block of the answer."""

    id: str
    text: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.metadata or not self.text.isascii():
            _check(self)


class ReasoningEnd(msgspec.Struct, frozen=True):
    """The end of a reasoning block; `metadata` may contain its signature."""

    id: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


class ToolInputStart(msgspec.Struct, frozen=True):
    """The start of a tool call; `id` is the provider's call id.

    A name of more than 200 characters, which no tool has, is cut.
    """

    id: str
    name: str

    def __post_init__(self) -> None:
        _keep_beginning(self)


class ToolInputDelta(msgspec.Struct, frozen=True):
    """A chunk of the arguments of a tool call."""

    id: str
    text: str


class ToolInputEnd(msgspec.Struct, frozen=True):
    """The end of the arguments of a tool call."""

    id: str


class ToolCall(msgspec.Struct, frozen=True):
    """A complete tool call; `input` is the JSON text that the model wrote.

    It is sent only when the provider is sure that nothing was cut off. A long name is cut as in
    `ToolInputStart`.
    """

    id: str
    name: str
    input: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _keep_beginning(self)


def _keep_beginning(call: ToolInputStart | ToolCall) -> None:
    if len(call.name) > LONGEST_NAME:
        force_setattr(call, "name", f"{call.name[:LONGEST_NAME]}…")
    _check(call, call.id, call.name, getattr(call, "metadata", None))


def _check(event: msgspec.Struct, *values: object) -> None:
    """Reject an event that cannot be stored, so that the error is raised in the provider's code."""
    try:
        check_json(values or event, f"this {type(event).__name__}")
    except InvalidInputError as error:
        raise ValueError(str(error)) from None  # the provider's mistake, and not its answer


class Usage(msgspec.Struct, frozen=True):
    """The tokens of a request; `input` excludes cached tokens, `output` excludes `reasoning`."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0


class Heartbeat(msgspec.Struct, frozen=True):
    """A sign that the provider still waits for its server.

    It restarts the time limit `idle_timeout_s`, within which the next event must arrive. A provider
    that sends heartbeats limits the wait itself.
    """


class StreamFinish(msgspec.Struct, frozen=True):
    """The end of a complete answer; a stream without this event has failed.

    `usage` is None if the provider reported none. `note` is a warning for the user about the end of
    the answer. With the reason "error" it is the error message.
    """

    reason: FinishReason
    usage: Usage | None = None
    metadata: dict[str, Any] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        _check(self)


StreamEvent = (
    TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolInputEnd
    | ToolCall
    | Heartbeat
    | StreamFinish
)


class Provider(Protocol):
    """A source of models; `id` is the part of a model's name before the first slash."""

    @property
    def id(self) -> str:
        """The provider's name in `provider/model`."""
        ...

    @property
    def name(self) -> str:
        """The provider's name for users."""
        ...

    @property
    def env(self) -> Sequence[str]:
        """The environment variables that may contain the API key."""
        ...

    def models(self) -> Sequence[Model]:
        """Return the models that are known without a request; fast, possibly empty."""
        ...

    def resolve(self, model_id: str) -> Model | None:
        """Return the model with this id, or None if the provider certainly lacks the model."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Stream the events of the model's answer; closing the iterator ends the request at once.

        :raises ProviderAuthError: when a key is missing or refused.
        :raises ContextOverflowError: when the request is too long for the model.
        :raises ProviderError: when the model cannot be asked or the answer breaks off.
        """
        ...

    async def aclose(self) -> None:
        """Close the provider's connections; called once, when the App ends."""
        ...
