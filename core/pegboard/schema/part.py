"""The parts of a message, the states of a tool part, and the parts of a prompt without ids."""

from pathlib import Path
from typing import Any, Literal, Self

from pegboard.errors import InvalidInputError
from pegboard.schema.session import Tokens
from pegboard.schema.wire import Rest, Wire

DIRECTORY_MIME = "application/x-directory"
TEXT_MIME = "text/plain"
_MEDIA = ("image/", "audio/", "video/", "application/pdf")


class TimeSpan(Wire, frozen=True):
    """The start and the end of an activity, such as a call, in milliseconds since the epoch."""

    start: int
    end: int | None = None


class Pending(Rest, frozen=True, tag_field="status", tag="pending"):
    """The state of a call while the model writes it; `raw` is the text of the arguments so far."""

    input: dict[str, Any]
    raw: str


class Running(Wire, frozen=True, tag_field="status", tag="running"):
    """The state of a call while the tool runs; `title` and `metadata` show the progress."""

    input: dict[str, Any]
    time: TimeSpan
    title: str | None = None
    metadata: dict[str, Any] | None = None


class CompletedSpan(Wire, frozen=True):
    """A `TimeSpan` with `compacted`, the time when a call's output was hidden from the model."""

    start: int
    end: int
    compacted: int | None = None


class Completed(Wire, frozen=True, tag_field="status", tag="completed"):
    """The state of a call after the tool has answered; `attachments` are file parts."""

    input: dict[str, Any]
    output: str
    title: str
    metadata: dict[str, Any]
    time: CompletedSpan
    attachments: tuple["FilePart", ...] = ()


class Failed(Wire, frozen=True, tag_field="status", tag="error"):
    """The state of a call that failed, was denied or was stopped; the model reads `error`."""

    input: dict[str, Any]
    error: str
    time: TimeSpan
    metadata: dict[str, Any] | None = None


ToolState = Pending | Running | Completed | Failed


class SourceText(Rest, frozen=True):
    """The part of the user's text from which a part was made; offsets count characters."""

    value: str
    start: int
    end: int


class StoredPart(Wire, frozen=True):
    """The fields of every part of a message: the ids of the part, its session and its message."""

    id: str
    session_id: str
    message_id: str


class TextPart(StoredPart, frozen=True, tag_field="type", tag="text"):
    """Text of the user or the model; `synthetic` text was added by a program."""

    text: str
    synthetic: bool = False
    ignored: bool = False
    time: TimeSpan | None = None
    metadata: dict[str, Any] | None = None


class ReasoningPart(StoredPart, frozen=True, tag_field="type", tag="reasoning"):
    """The model's reasoning; `metadata`, such as a signature, comes from the provider."""

    text: str
    time: TimeSpan
    metadata: dict[str, Any] | None = None


class FilePart(StoredPart, frozen=True, tag_field="type", tag="file"):
    """A file, given by a `data:` or `file:` URL."""

    mime: str
    url: str
    filename: str | None = None
    source: dict[str, Any] | None = None


class ToolPart(StoredPart, frozen=True, tag_field="type", tag="tool"):
    """One tool call; `metadata` is what the provider has sent with the call."""

    call_id: str
    tool: str
    state: ToolState
    metadata: dict[str, Any] | None = None


class StepStartPart(StoredPart, frozen=True, tag_field="type", tag="step-start"):
    """The start of a request to the model; `snapshot` is the id of the files' state before it."""

    snapshot: str | None = None


class StepFinishPart(StoredPart, frozen=True, tag_field="type", tag="step-finish"):
    """The end of a request to the model: the finish reason, and the cost in US dollars if known."""

    reason: str
    cost: float | None
    tokens: Tokens
    snapshot: str | None = None


Unkept = Literal["large", "many", "ignored", "nested", "submodule", "empty"]
"""Why no snapshot has a path: it is long, one of very many that git does not track, ignored by
git, in a repository of its own, or an empty folder."""


class Staged(Wire, frozen=True):
    """The changes that a step made in git's index.

    `files` are the paths of the changed entries. `hash` is a git tree with only these paths before
    the step, `after` the same after it. `head` is the commit before the step, "" if there was none.
    """

    hash: str
    after: str
    files: tuple[str, ...]
    head: str = ""


class PatchPart(StoredPart, frozen=True, tag_field="type", tag="patch"):
    """The files that a step changed.

    `hash` and `after` are the ids of the snapshots before and after the step. `left` are files that
    no revert can restore, with the reason. `staged` are the step's changes of git's index.
    """

    hash: str
    files: tuple[str, ...]
    after: str | None = None
    left: dict[str, Unkept] = {}
    staged: tuple[Staged, ...] = ()


class AgentPart(StoredPart, frozen=True, tag_field="type", tag="agent"):
    """An `@agent` mention of the user."""

    name: str
    source: SourceText | None = None


class ModelChoice(Rest, frozen=True):
    """A model, given by the ids of its provider and of the model."""

    provider_id: str
    model_id: str


class SubtaskPart(StoredPart, frozen=True, tag_field="type", tag="subtask"):
    """Work that the user gives directly to a subagent."""

    prompt: str
    description: str
    agent: str
    model: ModelChoice | None = None
    command: str | None = None


class CompactionPart(StoredPart, frozen=True, tag_field="type", tag="compaction"):
    """A request to summarise the history before this part."""

    auto: bool


class Instant(Wire, frozen=True):
    """A point in time, in milliseconds since the epoch."""

    created: int


class RetryPart(StoredPart, frozen=True, tag_field="type", tag="retry"):
    """A failed attempt of a model request; `error` is an `APIFailure` in its wire form."""

    attempt: int
    error: dict[str, Any]
    time: Instant


Part = (
    TextPart
    | ReasoningPart
    | FilePart
    | ToolPart
    | StepStartPart
    | StepFinishPart
    | PatchPart
    | AgentPart
    | SubtaskPart
    | CompactionPart
    | RetryPart
)


class TextInput(Wire, frozen=True, tag_field="type", tag="text"):
    """Text that the user typed; `synthetic` text was added by a program."""

    text: str
    id: str | None = None
    synthetic: bool = False
    ignored: bool = False
    metadata: dict[str, Any] | None = None


class FileInput(Wire, frozen=True, tag_field="type", tag="file"):
    """A file, given by a `data:` or `file:` URL; `?start=&end=` of a `file:` URL select lines."""

    mime: str
    url: str
    id: str | None = None
    filename: str | None = None
    source: dict[str, Any] | None = None

    @classmethod
    def of(cls, file: Path) -> Self:
        """Return the part that attaches a file or a folder; this blocks.

        :raises InvalidInputError: when it cannot be read.
        """
        path = file.absolute()
        try:
            if path.is_dir():
                return cls(mime=DIRECTORY_MIME, url=path.as_uri(), filename=path.name)
            with path.open("rb"):
                return cls(mime=mime_of(path), url=path.as_uri(), filename=path.name)
        except OSError as error:
            raise InvalidInputError(f"cannot read {file}: {error.strerror or error}") from error


class AgentInput(Wire, frozen=True, tag_field="type", tag="agent"):
    """An `@agent` mention."""

    name: str
    id: str | None = None
    source: SourceText | None = None


class SubtaskInput(Wire, frozen=True, tag_field="type", tag="subtask"):
    """Work for a subagent."""

    prompt: str
    description: str
    agent: str
    id: str | None = None
    model: ModelChoice | None = None
    command: str | None = None


def mime_of(path: Path) -> str:
    """Return the MIME type for a file part: the file's own if models accept it, or plain text."""
    import mimetypes  # its tables take 10 ms, and few prompts have files

    guessed = mimetypes.guess_type(path.name)[0] or ""
    is_media = guessed.startswith(_MEDIA) and not guessed.endswith("+xml")
    return guessed if is_media else TEXT_MIME


PartInput = TextInput | FileInput | AgentInput | SubtaskInput
