"""The `Feed` of an App in this process."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pegboard.unstable
from pegboard import HookCalls
from pegboard.app import Subscription
from pegboard.display import Block
from pegboard.errors import ModelNotFoundError
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import PluginFailed
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.model import Model
from pegboard.schema.part import FileInput, ToolPart
from pegboard.schema.session import (
    Answers,
    FileDiff,
    Idle,
    PermissionRequest,
    Question,
    QuestionRequest,
    Reply,
    Scope,
    Session,
    SessionStatus,
    Todo,
)
from pegboard_plugins.shared import frontend

if TYPE_CHECKING:
    from pegboard import App
    from pegboard_plugins.shared.frontend import Facts, PluginEntry, TraceEntry

QUEUED_EVENTS = 20_000
"""The maximum number of events that wait while the user thinks about a question."""
FACTS_S = 1.0
"""The time after which facts such as the branch are read again."""


@asynccontextmanager
async def plugins_here(directory: Path) -> "AsyncIterator[App]":
    """Yield an App that only loads this machine's plugins, while a server runs the sessions.

    The App runs no session, and uses a temporary data folder.
    """
    from tempfile import TemporaryDirectory  # few Apps are next to a server

    from pegboard import App, AppOptions

    env = {name: value for name, value in os.environ.items() if name != "PEGBOARD_DATABASE"}
    config = {"sandbox": "off"}  # nothing runs that could be enclosed
    with TemporaryDirectory(prefix="pegboard-", ignore_cleanup_errors=True) as folder:
        options = AppOptions(env=env, config=config, data_dir=Path(folder))
        async with App.open(directory, options) as app:
            yield app


class LocalFeed:
    """The `Feed` of an App in this process; `note` is an additional warning, or ""."""

    def __init__(self, app: "App", note: str = "") -> None:
        self._app = app
        self._note = note
        self._blocks: pegboard.unstable.CallBlocks | None = None
        self._facts: Facts | None = None
        self._known_until = 0.0

    @property
    def facts(self) -> "Facts":
        """The facts of the project, cached for one second because every frame reads them."""
        now = monotonic()
        if self._facts is None or now > self._known_until:
            self._facts = frontend.facts_of(self._app, self._note)
            self._known_until = now + FACTS_S
        return self._facts

    @property
    def mode(self) -> str:
        """The permission mode of a new session."""
        return frontend.default_mode(self._app.config)

    @property
    def hooks(self) -> HookCalls | None:
        """The hooks of the App's plugins."""
        return self._app.hooks

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """The failures of the App's plugins."""
        return self._app.failures

    @property
    def is_connected(self) -> bool:
        """True, because the sessions are in this process."""
        return True

    def subscribe(self) -> Subscription:
        """Return a subscription to the App's events."""
        return self._app.subscribe(limit=QUEUED_EVENTS)

    async def aclose(self) -> None:
        """Close the App."""
        await self._app.aclose()

    async def commands(self) -> Sequence[Command]:
        """Return the slash commands, including those of files that the user has just trusted."""
        await self._app.reload_project_code()
        return tuple(self._app.commands.values())

    async def agents(self) -> Sequence[Agent]:
        """Return the agents, the default one first."""
        first = self._app.default_agent().name
        return sorted(self._app.agents.values(), key=lambda agent: agent.name != first)

    async def tools(self) -> Mapping[str, str]:
        """Return each tool's permission by the tool's name."""
        return {name: tool.permission for name, tool in self._app.tools.items()}

    async def unlisted(self) -> Sequence[str]:
        """Return the providers that have a key but no known model."""
        app = self._app
        listed = {model.provider_id for model in await app.models()}
        return [
            name
            for name, each in app.providers.items()
            if name not in listed and each.env and app.keys.source(name, each.env) is not None
        ]

    async def models(self) -> Sequence[Model]:
        """Return the available models and the configured model."""
        found = {(model.provider_id, model.id): model for model in await self._app.models()}
        if self._app.config.model:
            with suppress(ModelNotFoundError):
                model = await self._app.resolve_model(self._app.config.model)
                found.setdefault((model.provider_id, model.id), model)
        return [found[name] for name in sorted(found)]

    async def require_model(self, name: str) -> Model | None:
        """Return the model, resolved by the App's providers.

        :raises ModelNotFoundError: when no provider has the model.
        """
        return await self._app.resolve_model(name)

    async def model_sources(self) -> Sequence[str]:
        """Return a line for each key and each model server that the App can use."""
        return await frontend.model_sources(self._app)

    async def plugins(self) -> "Sequence[PluginEntry]":
        """Return the plugins with their errors and tools."""
        return frontend.plugin_entries(self._app)

    async def standing(self, session_id: str, agent: str) -> Mapping[str, int]:
        """Return how many characters each source, such as a plugin, adds to each request."""
        return frontend.standing(self._app, session_id, agent)

    async def trace(self, session_id: str) -> "Sequence[TraceEntry]":
        """Return the changes that plugins made to the session's prompts."""
        return frontend.trace_entries(self._app, session_id)

    async def sessions(self, *, search: str | None = None) -> Sequence[Session]:
        """Return the project's sessions, most recently used first, filtered by `search`."""
        return await self._app.sessions(limit=frontend.LISTED, search=search)

    async def newest(self) -> Session | None:
        """Return the most recently used session of this folder, or else of the project."""
        return await frontend.newest_session(self._app)

    async def session(self, session_id: str) -> Session:
        """Return the session with this id or unique beginning of an id."""
        return await frontend.named_session(self._app, session_id)

    async def create(self, *, title: str | None = None, agent: str | None = None) -> Session:
        """Create a session."""
        return await self._app.create_session(title=title, agent=agent)

    async def delete(self, session_id: str) -> None:
        """Delete the session."""
        await self._app.delete_session(session_id)

    async def turns(self, session_id: str, *, limit: int | None = None) -> Sequence[Turn]:
        """Return the session's turns, or only the newest `limit` turns."""
        return (await self._app.list_turns(session_id))[-(limit or 0) :]

    async def status(self, session_id: str) -> SessionStatus | None:
        """Return the session's status, or None while the session is idle."""
        status = self._app.session_status(session_id)
        return None if isinstance(status, Idle) else status

    async def waiting(self) -> Sequence[PermissionRequest | QuestionRequest]:
        """Return the permission requests and questions that wait for an answer."""
        return (*self._app.permissions.pending(), *self._app.questions.pending())

    async def todos(self, session_id: str) -> Sequence[Todo]:
        """Return the session's todo list."""
        return await self._app.storage.todos(session_id)

    async def change_mode(self, session_id: str, mode: str) -> None:
        """Change the session's permission mode."""
        await frontend.change_mode(self._app, session_id, mode)

    async def prompt(
        self, session_id: str, prompt: Prompt, *, mentions: str = "", checked: bool = False
    ) -> Turn:
        """Send a prompt with the files and agents in `mentions`, and return the last answer."""
        app, agent = self._app, prompt.agent
        if checked:
            await frontend.require_answerer(app, session_id, agent=agent, model=prompt.model)
        if "@" in mentions:
            found = await frontend.mentioned(app, session_id, mentions, agent=agent)
            prompt = replace(prompt, parts=(*prompt.parts, *found))
        return await app.prompt(session_id, prompt)

    async def run_command(
        self, session_id: str, name: str, prompt: Prompt, *, typed: bool = True
    ) -> Turn:
        """Run a slash command, and return its answer."""
        order = frontend.CommandOrder(
            name=name,
            arguments=prompt.text,
            typed=typed,
            agent=prompt.agent,
            model=prompt.model,
            variant=prompt.variant,
            files=tuple(part for part in prompt.parts if isinstance(part, FileInput)),
        )
        return await frontend.run_command(self._app, session_id, order)

    async def resume(self, session_id: str) -> Turn:
        """Resume an interrupted turn, and return its answer."""
        return await self._app.resume(session_id)

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Withdraw a prompt that no model has read; return whether this succeeded."""
        return await self._app.withdraw(session_id, message_id)

    async def shell(self, session_id: str, prompt: Prompt) -> Turn:
        """Run the prompt's text as the user's shell command, and return its turn."""
        order = frontend.ShellOrder(command=prompt.text, agent=prompt.agent, model=prompt.model)
        return await frontend.run_shell(self._app, session_id, order)

    async def abort(self, session_id: str) -> bool:
        """Stop the session's turn and wait for its end; return whether a turn was running."""
        return await self._app.abort(session_id)

    async def approve(
        self,
        request_id: str,
        scope: Scope,
        *,
        agent_only: bool = False,
        patterns: Sequence[str] = (),
    ) -> None:
        """Allow a waiting request, and similar requests from now on."""
        policy = self._app.policy
        await policy.approve(request_id, scope, agent_only=agent_only, patterns=patterns)

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        await self._app.answer_permission(request_id, reply, message)

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request because no user is present to answer the request."""
        await self._app.permissions.leave_unattended(request_id)

    async def ask(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask the user questions; return None if the user declines to answer."""
        return await self._app.ask_user(session_id, questions)

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]] | None) -> None:
        """Answer the questions of a request; None means that the user declines to answer."""
        if answers is None:
            await self._app.reject_question(request_id)
        else:
            await self._app.answer_question(request_id, answers)

    async def rename(self, session_id: str, title: str) -> None:
        """Change the session's title."""
        await self._app.update_session(session_id, title=title)

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        """Create a copy of the session, with all messages or those before `message_id`."""
        return await frontend.forked(self._app, session_id, message_id)

    async def revert(self, session_id: str, message_id: str) -> None:
        """Revert the session to before a message."""
        await frontend.reverted(self._app, session_id, message_id)

    async def unrevert(self, session_id: str) -> None:
        """Undo the revert of the session."""
        await frontend.unreverted(self._app, session_id)

    async def diff(self, session_id: str) -> Sequence[FileDiff]:
        """Return the session's changes of files."""
        return await frontend.session_diff(self._app, session_id)

    async def compact(self, session_id: str, model: str) -> None:
        """Summarise the session's history; an empty `model` means the session's model."""
        await self._app.summarize(session_id, model=model or None)

    async def files(self, text: str) -> Sequence[str]:  # noqa: ARG002 - the protocol's
        """Return no paths, because plugins of this process complete paths."""
        return ()

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the lines to display for a tool call, as the plugins format them."""
        self._blocks = self._blocks or pegboard.unstable.CallBlocks(self._app)
        return await self._blocks.block(part, width)
