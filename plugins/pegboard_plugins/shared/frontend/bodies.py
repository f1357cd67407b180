"""The bodies of requests to a server, and of answers that are no values of the schema."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pegboard.schema.model import Model
from pegboard.schema.part import FileInput, ModelChoice, PartInput
from pegboard.schema.session import Answers, Question, Reply, Rule, Scope, SessionModel
from pegboard.schema.wire import Rest, Wire


class SessionBody(Wire, frozen=True):
    """A new session."""

    title: str | None = None
    parent_id: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    permission: tuple[Rule, ...] | None = None
    metadata: dict[str, Any] | None = None


class ChangedTime(Wire, frozen=True):
    """The time when a session was archived, in milliseconds since the epoch; null restores it."""

    archived: int | msgspec.UnsetType | None = msgspec.UNSET


class SessionChange(Wire, frozen=True):
    """The changes of a session."""

    title: str | None = None
    metadata: dict[str, Any] | None = None
    permission: tuple[Rule, ...] | None = None
    time: ChangedTime | None = None


class PromptBody(Wire, frozen=True):
    """A prompt; `model_id` with `provider_id` beside the parts is the Python SDK's way.

    `mentions` are the words that a user typed: a `@name` in them stands for a file or an agent.
    Most clients look for them themselves. A `checked` prompt that no model can answer is refused
    before it is stored. `format` is `{"type": "text"}`, or `json_schema` with a `schema` that the
    final answer has to fit.
    """

    parts: tuple[PartInput, ...]
    message_id: str | None = None
    model: ModelChoice | None = None
    agent: str | None = None
    no_reply: bool | None = None
    tools: dict[str, bool] | None = None
    system: str | None = None
    variant: str | None = None
    mentions: str | None = None
    checked: bool | None = None
    format: dict[str, Any] | None = None
    model_id: str | None = None
    provider_id: str | None = None

    def model_name(self) -> str | None:
        """Return the model as `provider/model`."""
        if self.model is not None:
            return f"{self.model.provider_id}/{self.model.model_id}"
        if self.model_id and self.provider_id:
            return f"{self.provider_id}/{self.model_id}"
        return None


class CommandBody(Wire, frozen=True):
    """A slash command; its model is one text.

    `typed`: the arguments are a user's own words, in which mentions count.
    """

    command: str
    arguments: str = ""
    typed: bool = True
    message_id: str | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    parts: tuple[FileInput, ...] = ()


class ShellBody(Wire, frozen=True):
    """A user's command line; without an agent the session's agent is used."""

    command: str
    agent: str | None = None
    model: ModelChoice | None = None
    message_id: str | None = None


class InitBody(Wire, frozen=True):
    """The run of the `init` command."""

    model_id: str
    provider_id: str
    message_id: str


class SummarizeBody(Wire, frozen=True):
    """The model that summarises."""

    provider_id: str
    model_id: str
    auto: bool = False


class RevertBody(Wire, frozen=True):
    """The point to go back to."""

    message_id: str
    part_id: str | None = None


class ForkBody(Wire, frozen=True):
    """The message that the copy ends before."""

    message_id: str | None = None


class ReplyBody(Wire, frozen=True):
    """The answer to a permission request.

    `scope` is how far an `always` goes, `agent_only` limits it to the agent that asked, `patterns`
    to what they match: they only narrow what the request offers. A `reject` that is `unattended`
    comes from a program that nobody is at: the model is told so.
    """

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    agent_only: bool = False
    patterns: tuple[str, ...] = ()
    unattended: bool = False


class ResponseBody(Wire, frozen=True):
    """The answer to a permission request, as older clients give it."""

    response: Reply


class QuestionsBody(Wire, frozen=True):
    """A client's questions to a user."""

    questions: tuple[Question, ...]


class AnswersBody(Wire, frozen=True):
    """For each question the labels that are chosen."""

    answers: Answers


class LogBody(Wire, frozen=True):
    """A line for the log."""

    service: str
    level: Literal["debug", "info", "warn", "error"]
    message: str
    extra: dict[str, Any] | None = None


class ApiAuth(Wire, frozen=True, tag_field="type", tag="api"):
    """A provider's key."""

    key: str


class OtherAuth(Wire, frozen=True, tag_field="type", tag="oauth"):
    """Tokens of a provider that signs users in."""

    refresh: str
    access: str
    expires: int


class WellKnownAuth(Wire, frozen=True, tag_field="type", tag="wellknown"):
    """A stored credential of type `wellknown`: a token that a company issues for its own site."""

    key: str
    token: str


Auth = ApiAuth | OtherAuth | WellKnownAuth


class Health(Rest, frozen=True):
    """The server's health, with its version."""

    healthy: bool
    version: str


class ProviderListing(Rest, frozen=True):
    """A provider as clients see it; keys and other secrets are never part of it."""

    id: str
    name: str
    source: Literal["env", "config", "custom", "api"]
    env: tuple[str, ...]
    models: dict[str, Model]
    options: Mapping[str, Any] = {}


class ConfiguredProviders(Rest, frozen=True):
    """The providers that can be used, and the model of each that is taken unasked."""

    providers: tuple[ProviderListing, ...]
    default: dict[str, str]


class FileNode(Rest, frozen=True):
    """One entry of a folder; `ignored` is what git would not look at."""

    name: str
    path: str
    absolute: str
    type: Literal["file", "directory"]
    ignored: bool


class FileContent(Wire, frozen=True):
    """The content of a file; a binary one is base64, or left out where no client can show it."""

    type: Literal["text", "binary"]
    content: str
    encoding: str | None = None
    mime_type: str | None = None


class FileChange(Rest, frozen=True):
    """One file that differs from the last commit, with the lines added and removed."""

    path: str
    added: int
    removed: int
    status: Literal["added", "deleted", "modified"]


class Shown(Rest, frozen=True):
    """A text in ripgrep's JSON form."""

    text: str


class Submatch(Rest, frozen=True):
    """The place of the pattern in the line, in bytes."""

    match: Shown
    start: int
    end: int


class Match(Rest, frozen=True):
    """A matching line in ripgrep's JSON form."""

    path: Shown
    lines: Shown
    line_number: int = msgspec.field(name="line_number")
    absolute_offset: int = msgspec.field(name="absolute_offset")
    submatches: tuple[Submatch, ...] = ()


class Branch(Wire, frozen=True):
    """The checked-out branch and the default one; absent without git."""

    branch: str | None = None
    default_branch: str | None = msgspec.field(default=None, name="default_branch")


class Protection(Wire, frozen=True):
    """The level of the sandbox, and the project's files that do not count for lack of trust.

    `mode` is the permission mode of a session whose user has chosen none. `unseen` is a line for
    documents that agents wrote and the user has not accepted, `left_out` one for code that does not
    run.
    """

    sandbox: str
    mode: str = ""
    untrusted: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class PluginEntry(Wire, frozen=True):
    """A plugin with its problems and its tools."""

    name: str
    origin: str
    error: str = ""
    tools: tuple[str, ...] = ()


class TraceEntry(Wire, frozen=True):
    """The change by a plugin in one call of a hook, as a unified diff."""

    hook: str
    plugin: str
    diff: str
