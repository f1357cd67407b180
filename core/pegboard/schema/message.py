"""Messages, the errors that a message can end with, and turns: messages with their parts."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
from msgspec import UNSET

from pegboard.errors import OutputError
from pegboard.schema.config import Command
from pegboard.schema.part import FileInput, ModelChoice, Part, PartInput, TextInput, TextPart
from pegboard.schema.session import FileDiff, Tokens
from pegboard.schema.wire import Rest, Wire


class MessageTime(Wire, frozen=True):
    """The times of a message, in milliseconds since the epoch."""

    created: int
    completed: int | None = None


class UserSummary(Wire, frozen=True):
    """The result of a prompt: the file changes of the prompt's turn as unified diffs, and a title.

    `title` is made from the prompt's own words. Pegboard never sets `body`.
    """

    diffs: tuple[FileDiff, ...]
    title: str | None = None
    body: str | None = None


class JsonFormat(Wire, frozen=True, tag_field="type", tag="json_schema"):
    """The form of a final answer: JSON that matches a schema, with up to `retry_count` repairs."""

    schema: dict[str, Any]
    retry_count: int = 2

    @property
    def order(self) -> str:
        """The instruction to the model to answer in this form."""
        return (
            "Your final message is one JSON value and nothing else: no words before it, no fence. "
            f"It has to fit this JSON Schema:\n{msgspec.json.encode(self.schema).decode()}"
        )


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for a session: first its `files`, then the text, then its other `parts`.

    `agent` and `model` (as `provider/model`) default to those of the session. `system` is added to
    the system prompt. `tools` turns tools on or off by name; the last match counts. `variant` is a
    variant of the model. With `no_reply` the model is not asked.

    `output` is the form of the final answer, whose value is then in `Turn.output`: a dataclass, a
    msgspec struct, a pydantic model, another type that has a JSON Schema, or such a schema.
    `command` is the slash command that made the parts. `typed` is what the user typed for it, for
    the session's title.
    """

    text: str = ""
    _: KW_ONLY
    files: Sequence[Path | str] = ()
    parts: Sequence[PartInput] = ()
    agent: str | None = None
    model: str | None = None
    message_id: str | None = None
    system: str | None = None
    tools: Mapping[str, bool] | None = None
    variant: str | None = None
    no_reply: bool = False
    output: Any = None
    command: Command | None = None
    typed: str | None = None

    @property
    def inputs(self) -> tuple[PartInput, ...]:
        """The text and the other parts of the prompt, without its files."""
        texts = (TextInput(text=self.text),) if self.text else ()
        return (*texts, *self.parts)

    def attach(self, directory: Path) -> Self:
        """Return the prompt with its files converted to parts; relative paths start at `directory`.

        This blocks.

        :raises InvalidInputError: when a file cannot be read.
        """
        attached = (FileInput.of(directory / file) for file in self.files)
        return replace(self, text="", files=(), parts=(*attached, *self.inputs))


class UserMessage(Wire, frozen=True, tag_field="role", tag="user"):
    """The user's message, with the agent and the model that answer it.

    `summary` is set at the end of the run if a plugin records file changes.
    """

    id: str
    session_id: str
    time: MessageTime
    agent: str
    model: ModelChoice
    system: str | None = None
    tools: dict[str, bool] | None = None
    variant: str | None = None
    summary: UserSummary | None = None
    format: JsonFormat | None = None

    @property
    def orders(self) -> tuple[str | None, ...]:
        """The prompt's additions to the system prompt: `system`, and the form of the answer."""
        return (self.system, self.format.order) if self.format else (self.system,)


class MessagePath(Rest, frozen=True):
    """The paths of a turn: the working directory, and the root of the git worktree."""

    cwd: str
    root: str


class AuthData(Rest, frozen=True):
    """The provider whose API key or sign-in failed, and the reason for the failure."""

    provider_id: str
    message: str


class ProviderAuthFailure(Wire, frozen=True, tag_field="name", tag="ProviderAuthError"):
    """The failure that a credential is missing or was refused."""

    data: AuthData


class TextData(Rest, frozen=True):
    """A sentence for the user."""

    message: str


class UnknownFailure(Wire, frozen=True, tag_field="name", tag="UnknownError"):
    """Any failure without a class of its own."""

    data: TextData


class NoData(Wire, frozen=True):
    """The data of a failure without details, empty on the wire; `message` is a text for users."""

    message: ClassVar[str] = "the answer was cut at the model's output limit"


class OutputLengthFailure(Wire, frozen=True, tag_field="name", tag="MessageOutputLengthError"):
    """The failure that the model's answer was cut at its output limit."""

    data: NoData


class AbortedFailure(Wire, frozen=True, tag_field="name", tag="MessageAbortedError"):
    """The failure that the user stopped the turn."""

    data: TextData


class StoppedFailure(Wire, frozen=True, tag_field="name", tag="StoppedError"):
    """The failure that a plugin, such as a command hook, stopped the turn, with the reason."""

    data: TextData


class APIData(Wire, frozen=True):
    """The details of a provider's error response."""

    message: str
    is_retryable: bool
    status_code: int | None = None
    response_headers: dict[str, str] | None = None
    response_body: str | None = None
    metadata: dict[str, str] | None = None


class APIFailure(Wire, frozen=True, tag_field="name", tag="APIError"):
    """The failure that the provider refused the request, or that the answer broke off."""

    data: APIData


class OverflowData(Wire, frozen=True):
    """The details of a provider's error response to a request that is too long."""

    message: str
    response_body: str | None = None


class ContextOverflowFailure(Wire, frozen=True, tag_field="name", tag="ContextOverflowError"):
    """The failure that the request is longer than the model's context window."""

    data: OverflowData


class ContentFilterFailure(Wire, frozen=True, tag_field="name", tag="ContentFilterError"):
    """The failure that the model, or the provider's content filter, refused to answer."""

    data: TextData


class BudgetFailure(Wire, frozen=True, tag_field="name", tag="BudgetError"):
    """The failure that a limit of the user's budget was reached."""

    data: TextData


class PluginFailure(Wire, frozen=True, tag_field="name", tag="PluginError"):
    """The failure of a plugin that the turn requires."""

    data: TextData


class CallsFailure(Wire, frozen=True, tag_field="name", tag="CallsError"):
    """The failure that no call of several steps in a row could run: unknown, invalid or denied."""

    data: TextData


class OutputData(Wire, frozen=True):
    """The error in the last answer, and the number of repairs."""

    message: str
    retries: int


class StructuredOutputFailure(Wire, frozen=True, tag_field="name", tag="StructuredOutputError"):
    """The failure that the final answer does not have the form that the prompt requires."""

    data: OutputData


Failure = (
    ProviderAuthFailure
    | UnknownFailure
    | OutputLengthFailure
    | AbortedFailure
    | StoppedFailure
    | APIFailure
    | ContextOverflowFailure
    | ContentFilterFailure
    | BudgetFailure
    | PluginFailure
    | CallsFailure
    | StructuredOutputFailure
)


class AssistantMessage(Wire, frozen=True, tag_field="role", tag="assistant"):
    """One answer of a model; each request to a model creates a message.

    `cost` is in US dollars, None if the model's price is unknown. `finish` is why the model
    stopped: stop, length, content-filter, tool-calls, error, other or unknown. `structured` is the
    JSON value of a final answer if the prompt requires a form.
    """

    id: str
    session_id: str
    parent_id: str
    model_id: str
    provider_id: str
    mode: str
    agent: str
    path: MessagePath
    cost: float | None
    tokens: Tokens
    time: MessageTime
    error: Failure | None = None
    summary: bool = False
    finish: str | None = None
    variant: str | None = None
    metadata: dict[str, Any] | None = None
    structured: Any = UNSET


Message = UserMessage | AssistantMessage


class Turn(Rest, frozen=True, weakref=True):
    """A message with its parts, as the protocol lists them."""

    info: Message
    parts: tuple[Part, ...]

    @property
    def prompt_id(self) -> str:
        """The id of this prompt, or of the prompt that this message answers."""
        return self.info.id if isinstance(self.info, UserMessage) else self.info.parent_id

    @property
    def text(self) -> str:
        """The text parts of the message as one string, without reasoning and tool calls."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def own_texts(self) -> tuple[str, ...]:
        """The texts that the user typed or the model wrote, without any that Pegboard added."""
        texts = (part for part in self.parts if isinstance(part, TextPart))
        return tuple(part.text for part in texts if not part.synthetic)

    @property
    def output(self) -> Any:  # noqa: ANN401 - JSON, or a value of `Prompt.output`
        """The value of the final answer, or None if the prompt requires no form.

        :raises OutputError: when the answer does not have the form.
        """
        info = self.info
        if not isinstance(info, AssistantMessage):
            return None
        if isinstance(info.error, StructuredOutputFailure):
            data = info.error.data
            raise OutputError(data.message, answer=self.text, retries=data.retries)
        return None if info.structured is UNSET else info.structured


class TypedTurn(Turn, frozen=True, weakref=True):
    """A turn with the value of its final answer converted to a Python type."""

    value: Any

    @property
    def output(self) -> Any:  # noqa: ANN401 - of the type
        """The value of the final answer, converted to the Python type."""
        return self.value
