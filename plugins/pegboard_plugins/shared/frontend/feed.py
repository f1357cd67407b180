"""The interface of front ends to a project's sessions, in this process or on a server."""

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
"""The feed's own event that announces changed `facts`."""


class Feed(Protocol):
    """The access of a front end to the sessions of one project, on a server or in this process.

    A method that fails raises a `PegboardError`.
    """

    @property
    def facts(self) -> "Facts":
        """The known facts of the project, such as its folder, branch, model and warnings."""
        ...

    @property
    def mode(self) -> str:
        """The permission mode of a new session."""
        ...

    @property
    def hooks(self) -> HookCalls | None:
        """The hooks of the plugins that run in this process."""
        ...

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """The failures so far of the plugins that run in this process."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether events arrive now; False while the server is unreachable."""
        ...

    def subscribe(self) -> Subscription:
        """Return a subscription to all later events."""
        ...

    async def aclose(self) -> None:
        """Close the feed, and stop the work that runs in this process."""
        ...

    async def commands(self) -> Sequence[Command]:
        """Return the slash commands of the project, skills and plugins."""
        ...

    async def agents(self) -> Sequence[Agent]:
        """Return the agents, the default one first."""
        ...

    async def tools(self) -> Mapping[str, str]:
        """Return each tool's permission by the tool's name; "" for an unknown permission."""
        ...

    async def models(self) -> Sequence[Model]:
        """Return the available models, with prices, limits and other facts as far as known."""
        ...

    async def require_model(self, name: str) -> Model | None:
        """Return the model; None means that its provider is known but does not list the model.

        :raises ModelNotFoundError: when the model is unknown; it names the nearest models.
        """
        ...

    async def unlisted(self) -> Sequence[str]:
        """Return the providers that have a key but no known model."""
        ...

    async def model_sources(self) -> Sequence[str]:
        """Return a line for each key and each server of models on this machine."""
        ...

    async def plugins(self) -> "Sequence[PluginEntry]":
        """Return the plugins with their errors and tools."""
        ...

    async def standing(self, session_id: str, agent: str) -> Mapping[str, int]:
        """Return how many characters each source, such as a plugin, adds to each request."""
        ...

    async def trace(self, session_id: str) -> "Sequence[TraceEntry]":
        """Return the changes that plugins made to the last prompts."""
        ...

    async def sessions(self, *, search: str | None = None) -> Sequence[Session]:
        """Return the project's sessions, most recently used first, filtered by `search`."""
        ...

    async def newest(self) -> Session | None:
        """Return the most recently used session of this folder, or else of the project."""
        ...

    async def session(self, session_id: str) -> Session:
        """Return the session; if no session has the id, the error names the nearest ids."""
        ...

    async def create(self, *, title: str | None = None, agent: str | None = None) -> Session:
        """Create a session."""
        ...

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        """Create a copy of the session, with all messages or those before `message_id`."""
        ...

    async def rename(self, session_id: str, title: str) -> None:
        """Change the session's title."""
        ...

    async def change_mode(self, session_id: str, mode: str) -> None:
        """Change the session's permission mode."""
        ...

    async def delete(self, session_id: str) -> None:
        """Delete the session and its subagents' sessions."""
        ...

    async def turns(self, session_id: str, *, limit: int | None = None) -> Sequence[Turn]:
        """Return the session's turns so far, or only the newest `limit` turns."""
        ...

    async def status(self, session_id: str) -> SessionStatus | None:
        """Return the session's status, or None while the session is idle."""
        ...

    async def waiting(self) -> Sequence[PermissionRequest | QuestionRequest]:
        """Return the permission requests and questions that wait for an answer."""
        ...

    async def todos(self, session_id: str) -> Sequence[Todo]:
        """Return the session's todo list."""
        ...

    async def diff(self, session_id: str) -> Sequence[FileDiff]:
        """Return the session's changes of files."""
        ...

    async def prompt(
        self, session_id: str, prompt: Prompt, *, mentions: str = "", checked: bool = False
    ) -> Turn:
        """Send a prompt and return the last answer, after all its events.

        `mentions` is the text that the user typed, where `@name` means a file or an agent. With
        `checked`, a prompt that no model can answer is refused before it is stored.

        :raises AbortedError: when the turn was stopped before it had an answer.
        """
        ...

    async def run_command(
        self, session_id: str, name: str, prompt: Prompt, *, typed: bool = True
    ) -> Turn:
        """Run a slash command with the prompt's text as arguments, and with its files.

        `typed` means that a user wrote the arguments, so mentions in them count.
        """
        ...

    async def resume(self, session_id: str) -> Turn:
        """Resume an interrupted turn, and return its answer after all its events."""
        ...

    async def shell(self, session_id: str, prompt: Prompt) -> Turn:
        """Run the prompt's text as the user's shell command, and return its turn at the end."""
        ...

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Withdraw a prompt that no model has read; return whether this succeeded."""
        ...

    async def abort(self, session_id: str) -> bool:
        """Stop the session's turn; return False if no turn is running."""
        ...

    async def approve(
        self,
        request_id: str,
        scope: Scope,
        *,
        agent_only: bool = False,
        patterns: Sequence[str] = (),
    ) -> None:
        """Allow a waiting request, and similar requests from now on.

        `patterns`, if any, and `agent_only` narrow the approval.
        """
        ...

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        ...

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request because no user is present to answer the request."""
        ...

    async def ask(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask a user questions, here or at another client; return None if the user declines."""
        ...

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]] | None) -> None:
        """Answer the questions of a request; None means that the user declines to answer."""
        ...

    async def revert(self, session_id: str, message_id: str) -> None:
        """Revert the session to before a message; an event names files that were not restored."""
        ...

    async def unrevert(self, session_id: str) -> None:
        """Undo the revert of a session."""
        ...

    async def compact(self, session_id: str, model: str) -> None:
        """Summarise the session's history with this model."""
        ...

    async def files(self, text: str) -> Sequence[str]:
        """Return the project's paths that contain the letters of the text in this order."""
        ...

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the lines to display for a tool call, in `width` columns."""
        ...
