"""The seam of front ends: the sessions of one project, in this process or on a server."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pegboard import HookCalls
from pegboard.app import Subscription
from pegboard.display import Block
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import PluginFailed
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.model import Model
from pegboard.schema.part import ToolPart
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

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Facts, PluginEntry, TraceEntry

RESYNC = "feed.resync"
"""A feed's own event: events were lost, so a front end must read its content again.

With an `error` in its data the server is away for good, and no event follows.
"""
FACTS = "feed.facts"
"""A feed's own event: `facts` are others."""


class Feed(Protocol):
    """The sessions of one project; everything raises a `PegboardError` when it cannot be done."""

    @property
    def facts(self) -> "Facts":
        """The known facts of the project."""
        ...

    @property
    def mode(self) -> str:
        """The permission mode with which a session begins."""
        ...

    @property
    def hooks(self) -> HookCalls | None:
        """The hooks of the plugins that run in this process."""
        ...

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """The failures of these plugins so far."""
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

    async def tools(self) -> Mapping[str, str]:
        """Return the permission of each tool by its name, "" where it is not known."""
        ...

    async def models(self) -> Sequence[Model]:
        """Return the models that can be asked, with all known facts."""
        ...

    async def require_model(self, name: str) -> Model | None:
        """Return a model that can be asked, None for one that only a server's provider knows.

        :raises ModelNotFoundError: for any other; it names the nearest.
        """
        ...

    async def unlisted(self) -> Sequence[str]:
        """Return the providers with a key of which no model is known."""
        ...

    async def model_sources(self) -> Sequence[str]:
        """Return a line for each key and each server of models on this machine."""
        ...

    async def plugins(self) -> "Sequence[PluginEntry]":
        """Return the plugins with their faults and their tools."""
        ...

    async def standing(self, session_id: str, agent: str) -> Mapping[str, int]:
        """Return the characters that every request carries beside the conversation, by source."""
        ...

    async def trace(self, session_id: str) -> "Sequence[TraceEntry]":
        """Return the changes that plugins made to the last prompts."""
        ...

    async def sessions(self, *, search: str | None = None) -> Sequence[Session]:
        """Return the project's sessions, last used first."""
        ...

    async def newest(self) -> Session | None:
        """Return the session that was used last in this folder, else in the project."""
        ...

    async def session(self, session_id: str) -> Session:
        """Return the session; an error names the nearest ids when there is none."""
        ...

    async def create(self, *, title: str | None = None, agent: str | None = None) -> Session:
        """Create a session."""
        ...

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        """Create a session with the messages before this one, or with all."""
        ...

    async def rename(self, session_id: str, title: str) -> None:
        """Give the session a title."""
        ...

    async def change_mode(self, session_id: str, mode: str) -> None:
        """Give the session another permission mode."""
        ...

    async def delete(self, session_id: str) -> None:
        """Delete the session, with those of its subagents."""
        ...

    async def turns(self, session_id: str, *, limit: int | None = None) -> Sequence[Turn]:
        """Return the session's messages so far, or the newest of them."""
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

    async def diff(self, session_id: str) -> Sequence[FileDiff]:
        """Return the session's changes in files."""
        ...

    async def prompt(
        self, session_id: str, prompt: Prompt, *, mentions: str = "", checked: bool = False
    ) -> Turn:
        """Send a prompt and return the last answer, after all its events.

        In `mentions`, words that a user typed, `@name` means a file or an agent. A `checked` prompt
        that no model can answer is refused before it is stored.

        :raises AbortedError: when the turn was stopped before there was an answer.
        """
        ...

    async def run_command(
        self, session_id: str, name: str, prompt: Prompt, *, typed: bool = True
    ) -> Turn:
        """Run a slash command with the prompt's text as arguments, and with its files.

        `typed`: a user wrote the arguments, so mentions in them count.
        """
        ...

    async def resume(self, session_id: str) -> Turn:
        """Go on with an interrupted answer, and return it after all its events."""
        ...

    async def shell(self, session_id: str, prompt: Prompt) -> Turn:
        """Run the user's own command, the prompt's text, and return when it has ended."""
        ...

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Return whether a prompt is gone, because no model has read it."""
        ...

    async def abort(self, session_id: str) -> bool:
        """Stop what runs in the session; False when nothing runs in this process."""
        ...

    async def approve(
        self,
        request_id: str,
        scope: Scope,
        *,
        agent_only: bool = False,
        patterns: Sequence[str] = (),
    ) -> None:
        """Allow what waits, and the like of it from now on, or less if the patterns say so."""
        ...

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        ...

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request because no user can answer it."""
        ...

    async def ask(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask a user, here or at another client; the answers are None when they decline."""
        ...

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]] | None) -> None:
        """Answer questions, or leave them unanswered: None."""
        ...

    async def revert(self, session_id: str, message_id: str) -> None:
        """Go back to before a message; an event tells which files were left, and why."""
        ...

    async def unrevert(self, session_id: str) -> None:
        """Undo the going back."""
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
