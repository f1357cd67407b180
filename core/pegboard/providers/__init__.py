"""The request to a provider and its answer: one stream of events for every kind of model.

A provider yields the events of this module in the order of the model's answer. The engine
adds the results of tools and the step's frame; no provider sees the session.
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
    """Text of a model message; `metadata` is the provider's own from an earlier answer."""

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
    """A tool's result for the call `id`; `media` is sent along where the provider can."""

    id: str
    name: str
    output: str
    is_error: bool = False
    media: tuple[Media, ...] = ()


Content = Text | Reasoning | Media | Call | Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMessage:
    """One message of the history, in a form that every provider can translate.

    A `tool` message holds only results. The engine gives the very same object again in every
    later request of the session, so a provider keeps the encoded form in `encoded` under a key
    of its own, and a step costs no more than the bytes that it sends. Another message, also one
    that `evolve` makes, begins without.
    """

    role: Literal["user", "assistant", "tool"]
    content: tuple[Content, ...]
    encoded: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A tool as the model sees it; `parameters` is a JSON Schema of type object.

    `exposure` is what the user or the tool says about it, `None` where neither does. `source` is
    what the tool comes from, such as a plugin's name; "" for built-in plugins. `source_description`
    says what the tools of the source are for, where a model searches for tools.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    permission: str
    exposure: Exposure | None = None
    source: str = ""
    source_description: str = ""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a model; None leaves a parameter to the provider.

    `output_schema` is the JSON Schema of the final answer. The system prompt has it, too, and the
    engine checks the answer, so a provider may ignore it. `deferred` are tools that the model can
    call although the request leaves them out; no provider sends them.
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
        """Return the request without these tools, None if it has none of them."""
        kept = tuple([tool for tool in self.tools if tool.name not in names])
        return replace(self, tools=kept) if len(kept) < len(self.tools) else None


class TextStart(msgspec.Struct, frozen=True):
    """A block of text begins; blocks may interleave, so each has an id."""

    id: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


class TextDelta(msgspec.Struct, frozen=True):
    """Text is added to a block."""

    id: str
    text: str

    def __post_init__(self) -> None:
        if not self.text.isascii():
            _check(self)


class TextEnd(msgspec.Struct, frozen=True):
    """A block of text is complete."""

    id: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


class ReasoningStart(msgspec.Struct, frozen=True):
    """A block of reasoning begins."""

    id: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


class ReasoningDelta(msgspec.Struct, frozen=True):
    """Reasoning is added to a block."""

    id: str
    text: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.metadata or not self.text.isascii():
            _check(self)


class ReasoningEnd(msgspec.Struct, frozen=True):
    """A block of reasoning is complete; `metadata` may hold its signature."""

    id: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


class ToolInputStart(msgspec.Struct, frozen=True):
    """The model begins to write a tool call; `id` is the provider's call id.

    Of a name over 200 characters, which no tool has, the beginning stays.
    """

    id: str
    name: str

    def __post_init__(self) -> None:
        _keep_beginning(self)


class ToolInputDelta(msgspec.Struct, frozen=True):
    """A piece of a call's arguments."""

    id: str
    text: str


class ToolInputEnd(msgspec.Struct, frozen=True):
    """A call's arguments are complete."""

    id: str


class ToolCall(msgspec.Struct, frozen=True):
    """A complete call; `input` is the JSON text that the model wrote.

    It comes only when the provider is sure that nothing was cut off. Its name is cut as that of
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
    """Reject an event that cannot be stored, so that the error arises in the provider's code."""
    try:
        check_json(values or event, f"this {type(event).__name__}")
    except InvalidInputError as error:
        raise ValueError(str(error)) from None  # the provider's mistake, and not its answer


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one request: `input` without the cached ones, `output` without `reasoning`."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0


class Heartbeat(msgspec.Struct, frozen=True):
    """A sign that the provider still waits for its server; restarts the limit on silence.

    A provider that sends it limits the wait itself.
    """


class StreamFinish(msgspec.Struct, frozen=True):
    """The answer is complete. A stream that ends without it has failed.

    `usage` is None when the provider did not say. `note` is a warning for the user about the end
    of the answer; with the reason "error" it is the text of the error.
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
        """The provider's name for people."""
        ...

    @property
    def env(self) -> Sequence[str]:
        """The environment variables that may hold the key."""
        ...

    def models(self) -> Sequence[Model]:
        """Return the models that are known without a request; cheap, possibly empty."""
        ...

    def resolve(self, model_id: str) -> Model | None:
        """Return the model with this id, None if this provider certainly lacks it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Stream the answer; closing the iterator ends the request at once.

        :raises ProviderAuthError: when a key is missing or refused.
        :raises ContextOverflowError: when the request is too long for the model.
        :raises ProviderError: when the model cannot be asked or the answer breaks off.
        """
        ...

    async def aclose(self) -> None:
        """Close the provider's connections; called once, when the App ends."""
        ...
