"""Objects that the App passes to plugins: hook calls, the App itself, a history to compact."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

import msgspec

from pegboard.contract.context import SessionView
from pegboard.contract.plugin import Answer, Stash
from pegboard.contract.results import FoldStep
from pegboard.contract.tools import Tool
from pegboard.enclosing import Enclosed
from pegboard.providers import Provider
from pegboard.providers.keylookup import Keys
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.event import Event
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.model import Model
from pegboard.schema.session import Rule, Session, Todo
from pegboard.trust.decisions import Decision
from pegboard.workspace import Workspace

_P = ParamSpec("_P")
_T = TypeVar("_T")


class HookCalls(Protocol):
    """Calls of the hooks that a plugin brings, typed by their specifications.

    `await hooks.collect(specs.register_things, config=config)` asks every plugin. Each of
    `fold_listeners` is called with what each plugin makes of a fold. It must be quick and not
    raise.
    """

    fold_listeners: list[Callable[[FoldStep], None]]

    def has(self, spec: Callable[..., object]) -> bool:
        """Return whether any plugin implements the hook."""
        ...

    async def collect(
        self, spec: Callable[_P, Sequence[_T] | None], /, *_: _P.args, **named: _P.kwargs
    ) -> tuple[Answer[_T], ...]:
        """Return the items of all plugins' answers, oldest plugin first, each with its plugin."""
        ...

    async def fold(self, spec: Callable[_P, _T | None], /, *_: _P.args, **named: _P.kwargs) -> _T:
        """Pass the subject through all plugins and return the newest plugin's version."""
        ...

    async def first(
        self, spec: Callable[_P, _T | None], /, *_: _P.args, **named: _P.kwargs
    ) -> _T | None:
        """Return the answer of the newest plugin that has one."""
        ...

    def notify(self, spec: Callable[_P, None], /, *_: _P.args, **named: _P.kwargs) -> None:
        """Queue a notification for every plugin that implements the hook; this never blocks."""
        ...


class ModelQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A text for a model, which answers it by the agent's prompt and without tools.

    It is the agent's model, else the session's. `on_answer` gets the whole answer, also when who
    asked is cancelled by then: it is paid for. It has to be quick.
    """

    agent: Agent
    text: str
    on_answer: Callable[[str], Awaitable[None]] | None = None


class Host(Protocol):
    """The open project, as plugins see it; `App` is one."""

    @property
    def workspace(self) -> Workspace:
        """The directory and its repository."""
        ...

    @property
    def config(self) -> Config:
        """The configuration, after all files and plugins."""
        ...

    @property
    def trust(self) -> Decision:
        """Whether the project's own code may run."""
        ...

    @property
    def untrusted(self) -> tuple[Path, ...]:
        """The project's files that were not run, because the user has not trusted them."""
        ...

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents by name."""
        ...

    @property
    def commands(self) -> Mapping[str, Command]:
        """The slash commands by name."""
        ...

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by id."""
        ...

    def replace_tools(self, plugin: str, tools: Sequence[Tool]) -> tuple[str, ...]:
        """Replace the plugin's tools from now on; return the problems, a line each.

        :raises NotFoundError: when no plugin of this name is loaded.
        """
        ...

    def replace_commands(self, plugin: str, commands: Sequence[Command]) -> None:
        """Replace the plugin's slash commands from here on.

        The rules of `register_commands` decide which command has a name. They hold until the App
        closes, or until the plugin's own code is reloaded.

        :raises NotFoundError: when no plugin of this name is loaded.
        """
        ...

    @property
    def in_sandbox(self) -> Enclosed:
        """The way into the user's sandbox for a process that serves the whole App.

        It is that of `ToolContext.in_sandbox`. End the process in `shutdown`.
        """
        ...

    async def user_env(self) -> Mapping[str, str]:
        """Return the App's environment without the keys of providers, as `shell_env` leaves it.

        It is what programs of the user's get, and what is safe to pass on to a service.
        """
        ...

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers by id."""
        ...

    @property
    def keys(self) -> Keys:
        """Where the providers get their keys."""
        ...

    @property
    def hooks(self) -> HookCalls:
        """The callers of the hooks that plugins bring."""
        ...

    @property
    def stash(self) -> Stash:
        """The values that plugins hold in memory, for `shutdown` to close."""
        ...

    async def resolve_model(self, name: str) -> Model:
        """Return the model with this name.

        :raises ModelNotFoundError: with the nearest names, when no provider serves it.
        """
        ...

    async def models(self, *, without_keys: bool = False) -> tuple[Model, ...]:
        """Return the models that can be used, or could be with a key, with all known facts."""
        ...

    async def create_session(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the field's name
        title: str | None = None,
        parent_id: str | None = None,
        agent: str | None = None,
        permission: Sequence[Rule] = (),
    ) -> Session:
        """Return a new session; `permission` are rules that can only tighten.

        With the `id` of a session that is there it is returned as it is, so that a request may be
        repeated. An id is `ses_` and 1 to 64 letters, digits, `_` or `-`.

        :raises InvalidInputError: for another kind of id, and one of another project's session.
        """
        ...

    async def session(self, session_id: str) -> Session:
        """Return the session.

        :raises NotFoundError: when the id is unknown.
        """
        ...

    async def list_turns(self, session_id: str) -> tuple[Turn, ...]:
        """Return the messages of a session with their parts so far, in order."""
        ...

    async def prompt(self, session: Session | str, prompt: str | Prompt) -> Turn:
        """Return the last answer, once this prompt and those that wait with it are answered.

        :raises InvalidInputError: for a prompt without text and parts, and an unreadable file.
        :raises NotFoundError: for an unknown session or agent.
        :raises ModelNotFoundError: when no provider serves the model.
        :raises AbortedError: when the turn was stopped before there was an answer.
        :raises SessionBusyError: when another process runs the session.
        """
        ...

    async def ask_model(self, session_id: str, question: ModelQuestion) -> str:
        """Ask a model outside of the conversation, at the session's cost, and return its answer.

        The request passes the hooks of every request, the answer `text_complete`. The model's
        reasoning is left out.

        :raises BudgetError: when the session's budget has no room for it.
        :raises ModelNotFoundError: when no provider serves the agent's or session's model.
        :raises ProviderError: when the model cannot be asked.
        :raises RequiredHookError: when a required hook fails.
        """
        ...

    async def update_session(
        self, session_id: str, *, title: str | None = None, if_title: str | None = None
    ) -> Session:
        """Change the title of a session and return it; `updated` stays as it was.

        With `if_title` nothing changes unless the session has that title.
        """
        ...

    def subscribe(self, *, limit: int = ...) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Subscribe to the events from now on; at most `limit` of them are queued."""
        ...

    async def warn(self, session_id: str, message: str) -> None:
        """Show the user a warning in a session; every client gets it as `SessionWarned`."""
        ...

    def publish(self, name: str, data: Mapping[str, Any]) -> None:
        """Publish an event of a plugin's own, which clients get as `Custom`."""
        ...

    async def abort(self, session_id: str, *, reason: str = "") -> bool:
        """Stop the session's run and wait until it has ended; False when none ran.

        The answer's failure is `AbortedFailure`, with a plugin's `reason` it is `StoppedFailure`.
        """
        ...


class CompactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A history that has to become shorter.

    `session.turns` are what the model sees now, after `chat_messages_transform`; so is `first`, the
    session's first prompt, also when it is out of the model's view already. `session.model` is
    the one that `ask` asks.
    `answering` are the ids of the prompts that wait for their answer: they stay whatever the
    compactor says. `prompt` asks for a summary, in the words that the `session_compacting` hook
    has left. `room_tokens` is about how much a text for `ask` may hold, `keep_tokens` how much
    may stay word for word. `auto` says that the window is full and not the user asked.

    `ask` gives the model's answer to a text, and shows it as it comes. It raises
    `ContextOverflowError` when the text is too long, and `ProviderError` when the model cannot
    be asked.
    """

    session: SessionView
    first: Turn | None
    answering: tuple[str, ...]
    todos: tuple[Todo, ...]
    prompt: str
    room_tokens: int
    keep_tokens: int
    auto: bool
    ask: Callable[[str], Awaitable[str]]


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """The replacement of a history: a summary, and what stays word for word.

    `pinned` are texts that the model reads before the summary. `kept` are ids of turns of the
    view that follow it as they were; a turn keeps its tool calls with their results.
    """

    summary: str
    pinned: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Compactor(Protocol):
    """A way to shorten a history; the newest one that plugins register is used."""

    async def compact(self, request: CompactionRequest) -> Compaction:
        """Return the replacement of the history.

        An error ends the turn with its text and leaves the history unchanged. The engine waits
        ten minutes at most.
        """
        ...
