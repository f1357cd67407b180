"""The JSON bodies of requests to a server, and of responses that the schema does not define."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pegboard.schema.model import Model
from pegboard.schema.part import FileInput, ModelChoice, PartInput
from pegboard.schema.session import Answers, Question, Reply, Rule, Scope, SessionModel
from pegboard.schema.wire import Rest, Wire


class SessionBody(Wire, frozen=True):
    """The body of a request to create a session."""

    title: str | None = None
    parent_id: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    permission: tuple[Rule, ...] | None = None
    metadata: dict[str, Any] | None = None


class ChangedTime(Wire, frozen=True):
    """The Unix time in milliseconds when a session was archived; null restores the session."""

    archived: int | msgspec.UnsetType | None = msgspec.UNSET


class SessionChange(Wire, frozen=True):
    """The body of a request to change a session; absent fields stay unchanged."""

    title: str | None = None
    metadata: dict[str, Any] | None = None
    permission: tuple[Rule, ...] | None = None
    time: ChangedTime | None = None


class PromptBody(Wire, frozen=True):
    """A prompt. The Python SDK sends `model_id` and `provider_id` instead of `model`.

    `mentions` is the text that the user typed: each `@name` in it stands for a file or an agent.
    Most clients resolve mentions themselves. With `checked`, the server does not store a prompt for
    an unknown agent or model, but returns an error. `format` is `{"type": "text"}`, or
    `json_schema` with a `schema` that the final answer must match.
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
        """Return the model as `provider/model`, or None if the body names no model."""
        if self.model is not None:
            return f"{self.model.provider_id}/{self.model.model_id}"
        if self.model_id and self.provider_id:
            return f"{self.provider_id}/{self.model_id}"
        return None


class CommandBody(Wire, frozen=True):
    """A slash command; `model` has the form `provider/model`.

    `typed` means that a user wrote the arguments, so each `@name` in them is resolved.
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
    """A user's shell command; without `agent`, the session's agent is used."""

    command: str
    agent: str | None = None
    model: ModelChoice | None = None
    message_id: str | None = None


class InitBody(Wire, frozen=True):
    """The body of a request to run the `init` command."""

    model_id: str
    provider_id: str
    message_id: str


class SummarizeBody(Wire, frozen=True):
    """The body of a request to summarise a session, with the model that writes the summary."""

    provider_id: str
    model_id: str
    auto: bool = False


class RevertBody(Wire, frozen=True):
    """The message, or the part of a message, before which a session is reverted."""

    message_id: str
    part_id: str | None = None


class ForkBody(Wire, frozen=True):
    """The body of a request to fork a session; the fork ends before this message."""

    message_id: str | None = None


class ReplyBody(Wire, frozen=True):
    """The answer to a permission request.

    An approval by `always` applies in `scope`. `agent_only` limits it to the agent that asked, and
    `patterns` to these patterns, which may only narrow those that the request offers. `unattended`
    marks a `reject` by a program without a user; the model is informed of this.
    """

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    agent_only: bool = False
    patterns: tuple[str, ...] = ()
    unattended: bool = False


class ResponseBody(Wire, frozen=True):
    """The answer to a permission request in the form that older clients send."""

    response: Reply


class QuestionsBody(Wire, frozen=True):
    """A client's questions to a user."""

    questions: tuple[Question, ...]


class AnswersBody(Wire, frozen=True):
    """The labels that the user chose, for each question."""

    answers: Answers


class LogBody(Wire, frozen=True):
    """A line for the server's log."""

    service: str
    level: Literal["debug", "info", "warn", "error"]
    message: str
    extra: dict[str, Any] | None = None


class ApiAuth(Wire, frozen=True, tag_field="type", tag="api"):
    """A provider's API key."""

    key: str


class OtherAuth(Wire, frozen=True, tag_field="type", tag="oauth"):
    """The OAuth tokens of a provider."""

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
    """A provider as clients see it, without keys and other secrets."""

    id: str
    name: str
    source: Literal["env", "config", "custom", "api"]
    env: tuple[str, ...]
    models: dict[str, Model]
    options: Mapping[str, Any] = {}


class ConfiguredProviders(Rest, frozen=True):
    """The usable providers, and the default model of each."""

    providers: tuple[ProviderListing, ...]
    default: dict[str, str]


class FileNode(Rest, frozen=True):
    """One entry of a folder; `ignored` means that git ignores it."""

    name: str
    path: str
    absolute: str
    type: Literal["file", "directory"]
    ignored: bool


class FileContent(Wire, frozen=True):
    """The content of a file; binary content is base64, or empty if no client can display it."""

    type: Literal["text", "binary"]
    content: str
    encoding: str | None = None
    mime_type: str | None = None


class FileChange(Rest, frozen=True):
    """A file that differs from the last commit, with the numbers of added and removed lines."""

    path: str
    added: int
    removed: int
    status: Literal["added", "deleted", "modified"]


class Shown(Rest, frozen=True):
    """A text in ripgrep's JSON output, such as a path or a line: an object with the key `text`."""

    text: str


class Submatch(Rest, frozen=True):
    """A matched string in a line, with the start and end of the string in bytes."""

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
    """The checked-out branch and the default branch of a project; both are absent without git."""

    branch: str | None = None
    default_branch: str | None = msgspec.field(default=None, name="default_branch")


class Protection(Wire, frozen=True):
    """The sandbox level of a server, and the project's files that Pegboard ignores.

    `mode` is the permission mode of a session for which the user has chosen none. `untrusted` are
    the files of code and configuration that the user does not trust. `unseen` has a line that names
    the documents that agents wrote and the user has not accepted. `left_out` has a line that names
    the code that is not loaded.
    """

    sandbox: str
    mode: str = ""
    untrusted: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class PluginEntry(Wire, frozen=True):
    """A plugin with its origin, its error and its tools."""

    name: str
    origin: str
    error: str = ""
    tools: tuple[str, ...] = ()


class TraceEntry(Wire, frozen=True):
    """The change that a plugin made in one call of a hook, as a unified diff."""

    hook: str
    plugin: str
    diff: str
