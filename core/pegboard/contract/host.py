"""The objects that hooks receive from the App: `Host`, `HookCalls`, `CompactionRequest`."""

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
    """The caller of the hooks that a plugin defines, typed by the hooks' specifications.

    For example, `await hooks.collect(specs.register_things, config=config)` asks every plugin. In
    a fold, each plugin receives the value that the plugin before it returned. After each plugin,
    every function in `fold_listeners` is called; it must be quick and must not raise.
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
        """Pass the hook's subject, an argument, from plugin to plugin; return the last value."""
        ...

    async def first(
        self, spec: Callable[_P, _T | None], /, *_: _P.args, **named: _P.kwargs
    ) -> _T | None:
        """Return the first answer that a plugin gives; the newest plugin is asked first."""
        ...

    def notify(self, spec: Callable[_P, None], /, *_: _P.args, **named: _P.kwargs) -> None:
        """Queue a call of every plugin that implements the hook, and return at once."""
        ...


class ModelQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model outside of the conversation, without tools.

    The agent's prompt is the system prompt. The model is the agent's, or the session's if the agent
    names none. `on_answer` is awaited with the whole answer, even if the asking task has been
    cancelled by then, because the answer is paid for. It has to be quick.
    """

    agent: Agent
    text: str
    on_answer: Callable[[str], Awaitable[None]] | None = None


class Host(Protocol):
    """The open project, as plugins see it; the class `App` implements this protocol."""

    @property
    def workspace(self) -> Workspace:
        """The project directory that was opened, and the git repository around it."""
        ...

    @property
    def config(self) -> Config:
        """The configuration, after all files and plugins have been applied."""
        ...

    @property
    def trust(self) -> Decision:
        """The decision whether the project's own code may run."""
        ...

    @property
    def untrusted(self) -> tuple[Path, ...]:
        """The project's files that were not run because the user does not trust their content."""
        ...

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents by name."""
        ...

    @property
    def commands(self) -> Mapping[str, Command]:
        """The slash commands by name, without the slash."""
        ...

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by id."""
        ...

    def replace_tools(self, plugin: str, tools: Sequence[Tool]) -> tuple[str, ...]:
        """Replace a plugin's tools from the next turn on; return the new tools' problems as lines.

        :raises NotFoundError: when no plugin of this name is loaded.
        """
        ...

    def replace_commands(self, plugin: str, commands: Sequence[Command]) -> None:
        """Replace the plugin's slash commands from now on.

        If a name is taken, the rules of `register_commands` decide. The commands last until the App
        closes or the plugin's own code is reloaded.

        :raises NotFoundError: when no plugin of this name is loaded.
        """
        ...

    @property
    def in_sandbox(self) -> Enclosed:
        """The function that wraps a command line in the sandbox, for processes of the whole App.

        It is used like `ToolContext.in_sandbox`. End the process in `shutdown`.
        """
        ...

    async def user_env(self) -> Mapping[str, str]:
        """Return the App's environment without provider keys, as changed by `shell_env`.

        Use it for programs that you start for the user; it is also safe to pass on to a service.
        """
        ...

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers by id."""
        ...

    @property
    def keys(self) -> Keys:
        """The lookup of the providers' API keys."""
        ...

    @property
    def hooks(self) -> HookCalls:
        """The caller of the hooks that plugins define."""
        ...

    @property
    def stash(self) -> Stash:
        """The values that plugins keep in memory; a plugin closes its own values in `shutdown`."""
        ...

    async def resolve_model(self, name: str) -> Model:
        """Return the model with this name.

        :raises ModelNotFoundError: when no provider serves it; the text has the nearest names.
        """
        ...

    async def models(self, *, without_keys: bool = False) -> tuple[Model, ...]:
        """Return the models of providers that need no API key or have a key, with all known facts.

        With `without_keys`, models of providers that lack a key are included.
        """
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
        """Create and return a session.

        `permission` are rules that can only make the session's permissions stricter. If a session
        with this `id` exists, it is returned unchanged, so that a request can be repeated. An id is
        `ses_` followed by 1 to 64 letters, digits, `_` or `-`.

        :raises InvalidInputError: for an id of another form, or one of another project's session.
        """
        ...

    async def session(self, session_id: str) -> Session:
        """Return the session with this id.

        :raises NotFoundError: when the id is unknown.
        """
        ...

    async def list_turns(self, session_id: str) -> tuple[Turn, ...]:
        """Return the messages of a session in order, with the parts of an unfinished answer."""
        ...

    async def prompt(self, session: Session | str, prompt: str | Prompt) -> Turn:
        """Send a prompt to a session and return the last answer.

        Prompts that wait in the same session are answered along with it.

        :raises InvalidInputError: for a prompt without text and parts, or with an unreadable file.
        :raises NotFoundError: for an unknown session or agent.
        :raises ModelNotFoundError: when no provider serves the model.
        :raises AbortedError: when the turn was stopped before there was an answer.
        :raises SessionBusyError: when another process runs the session.
        """
        ...

    async def ask_model(self, session_id: str, question: ModelQuestion) -> str:
        """Ask a model outside of the conversation; return the answer without the model's reasoning.

        The cost counts as the session's. The request passes through the hooks of every request, and
        the answer through `text_complete`.

        :raises BudgetError: when the request would exceed the session's budget.
        :raises ModelNotFoundError: when no provider serves the agent's or session's model.
        :raises ProviderError: when the model cannot be asked.
        :raises RequiredHookError: when a required hook fails.
        """
        ...

    async def update_session(
        self, session_id: str, *, title: str | None = None, if_title: str | None = None
    ) -> Session:
        """Change the title of a session and return the session; its time `updated` does not change.

        With `if_title` nothing changes unless the session has that title.
        """
        ...

    def subscribe(self, *, limit: int = ...) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Subscribe to events from now on; the subscription queues at most `limit` events."""
        ...

    async def warn(self, session_id: str, message: str) -> None:
        """Show the user a warning in a session; every client gets it as `SessionWarned`."""
        ...

    def publish(self, name: str, data: Mapping[str, Any]) -> None:
        """Publish an event that a plugin defines; clients get it as `Custom`."""
        ...

    async def abort(self, session_id: str, *, reason: str = "") -> bool:
        """Stop the session's run and wait until it has ended; return False if none was running.

        The `error` of the interrupted answer is an `AbortedFailure`, or with a `reason` a
        `StoppedFailure`.
        """
        ...


class CompactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A history that has to become shorter, as a `Compactor` receives it.

    - `session`: its `turns` are what the model sees now, after `chat_messages_transform`; its
      `model` is the one that `ask` asks.
    - `first`: the session's first prompt, also if the model does not see it any more.
    - `answering`: ids of the prompts that wait for an answer. They are kept whatever the compactor
      returns.
    - `prompt`: the request for a summary, as the hook `session_compacting` left it.
    - `room_tokens`: about how long a text for `ask` may be.
    - `keep_tokens`: about how much may be kept word for word.
    - `auto`: true if the window is full, false if the user asked for the compaction.
    - `ask`: gives the model's answer to a text, and shows it as it arrives. It raises
      `ContextOverflowError` when the text is too long, and `ProviderError` when the model cannot be
      asked.
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
    """The replacement of a history: a summary, and what is kept word for word.

    `pinned` are texts that the model reads before the summary. `kept` are ids of turns that follow
    the summary unchanged; a turn keeps its tool calls with their results.
    """

    summary: str
    pinned: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Compactor(Protocol):
    """A way to shorten a session's history; the one that a plugin registered last is used."""

    async def compact(self, request: CompactionRequest) -> Compaction:
        """Return the shorter replacement of the history, within ten minutes.

        An exception ends the turn as failed and leaves the history unchanged; the user sees its
        text.
        """
        ...
