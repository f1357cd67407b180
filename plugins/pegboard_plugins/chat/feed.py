"""The source of the chat: the sessions of one project, in this process or on a server."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pegboard import HookCalls
from pegboard.app import Subscription
from pegboard.display import Block
from pegboard.schema.config import Agent, Command
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.part import FileInput, ToolPart
from pegboard.schema.session import (
    Answers,
    FileDiff,
    PermissionRequest,
    Question,
    QuestionRequest,
    Reply,
    Scope,
    Session,
    SessionStatus,
    Todo,
)
from pegboard_plugins.shared.frontend import PluginEntry, TraceEntry

QUEUED_EVENTS = 20_000
RESYNC = "chat.resync"
"""A feed's own event: events were lost, so the chat must read its content again."""
FACTS = "chat.facts"
"""A feed's own event: `facts` are others."""


class Choices(msgspec.Struct, kw_only=True):
    """The user's choices for the next prompts; empty ones are the session's."""

    agent: str = ""
    agent_before_plan: str = ""
    model: str = ""
    variant: str = ""
    mode: str = ""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as the user has written it; `command` makes it a slash command's arguments.

    `typed` is the editor's text, with chips for long texts and files.
    """

    text: str
    typed: str = ""
    files: tuple[FileInput, ...] = ()
    command: str | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of the project for the status line and the first screen."""

    directory: Path
    branch: str = ""
    model: str = ""
    agent: str = "build"
    mode: str = ""
    """The permission mode with which a session begins."""
    sandbox: str = ""
    untrusted: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    """A line for the documents that agents wrote and the user has not accepted."""
    warnings: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    """The messages of plugins that a line of the warnings stands for."""
    server: str = ""
    keys: Mapping[str, tuple[str, ...]] = {}
    """The environment's variables that each provider reads a key from."""
    options: Mapping[str, Any] = {}
    """What the user's configuration says under `plugins.chat.options`."""


class Feed(Protocol):
    """The sessions of one project; everything raises a `PegboardError` when it cannot be done."""

    @property
    def facts(self) -> Facts:
        """The known facts of the project."""
        ...

    @property
    def hooks(self) -> HookCalls | None:
        """The hooks of the plugins that run in this process."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether events arrive now; False while a server is away."""
        ...

    def subscribe(self) -> Subscription:
        """Return a subscription to the events from here on."""
        ...

    async def aclose(self) -> None:
        """End it, and what runs in it if that is in this process."""
        ...

    async def commands(self) -> Sequence[Command]:
        """Return the slash commands of project, skills and plugins."""
        ...

    async def agents(self) -> Sequence[Agent]:
        """Return the agents, the default one first."""
        ...

    async def unlisted(self) -> Sequence[str]:
        """Return the providers with a key of which no model is known."""
        ...

    async def models(self) -> Sequence[Model]:
        """Return the models that can be asked, with all known facts."""
        ...

    async def require_model(self, name: str) -> None:
        """Check that a model can be asked.

        :raises ModelNotFoundError: for any other; it names the nearest.
        """
        ...

    async def plugins(self) -> Sequence[PluginEntry]:
        """Return the plugins with their faults and their tools."""
        ...

    async def standing(self, session_id: str, agent: str) -> Mapping[str, int]:
        """Return the characters that every request carries beside the conversation, by source."""
        ...

    async def trace(self, session_id: str) -> Sequence[TraceEntry]:
        """Return the changes that plugins made to the last prompts."""
        ...

    async def sessions(self, *, search: str | None = None) -> Sequence[Session]:
        """Return the project's sessions, last used first."""
        ...

    async def session(self, session_id: str) -> Session:
        """Return the session."""
        ...

    async def create(self) -> Session:
        """Create a session."""
        ...

    async def turns(self, session_id: str) -> Sequence[Turn]:
        """Return the session's messages so far."""
        ...

    async def status(self, session_id: str) -> SessionStatus | None:
        """Return the session's status, None while it is idle."""
        ...

    async def waiting(self) -> Sequence[PermissionRequest | QuestionRequest]:
        """Return the requests that wait for an answer."""
        ...

    async def todos(self, session_id: str) -> Sequence[Todo]:
        """Return the session's todo list."""
        ...

    async def change_mode(self, session_id: str, mode: str) -> None:
        """Give the session another permission mode."""
        ...

    async def prompt(self, session_id: str, order: Order) -> None:
        """Return when the prompt is answered; the answer itself comes as events."""
        ...

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Return whether a prompt is gone, because no model has read it."""
        ...

    async def shell(self, session_id: str, command: str, order: Order) -> None:
        """Run the user's own command and return when it has ended."""
        ...

    async def abort(self, session_id: str) -> None:
        """Stop what runs in the session."""
        ...

    async def approve(self, request_id: str, scope: Scope, *, patterns: Sequence[str] = ()) -> None:
        """Allow what waits, and the like of it from now on, or less if the patterns say so."""
        ...

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        ...

    async def ask(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask a user, here or at another client; the answers are None when they decline."""
        ...

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer questions."""
        ...

    async def reject_question(self, request_id: str) -> None:
        """Leave questions unanswered."""
        ...

    async def rename(self, session_id: str, title: str) -> None:
        """Give the session a title."""
        ...

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        """Create a session with the messages before this one, or with all."""
        ...

    async def revert(self, session_id: str, message_id: str) -> None:
        """Go back to before a message; an event tells which files were left, and why."""
        ...

    async def unrevert(self, session_id: str) -> None:
        """Undo the going back."""
        ...

    async def diff(self, session_id: str) -> Sequence[FileDiff]:
        """Return the session's changes in files."""
        ...

    async def compact(self, session_id: str, model: str) -> None:
        """Summarise the history."""
        ...

    async def files(self, text: str) -> Sequence[str]:
        """Paths of the project that have the letters of the text in this order."""
        ...

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the block to draw for a tool call."""
        ...
