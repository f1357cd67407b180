"""Targets of a prompt of the command line: an App in this process, or a server."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

import pegboard.unstable
from pegboard.app import Subscription, UserFolders
from pegboard.display import Block
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import PluginFailed
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.model import Model
from pegboard.schema.part import FileInput, PartInput, ToolPart
from pegboard.schema.session import Reply, Scope, Session
from pegboard_plugins.shared import frontend

if TYPE_CHECKING:
    from pegboard import App
    from pegboard_plugins.shared.frontend import LeftOut

QUEUED_EVENTS = 10_000
"""Events that may wait while the user at the terminal thinks about a question."""


class SlashCall(msgspec.Struct, frozen=True, kw_only=True):
    """A slash command; `is_typed`: its arguments are the user's own words."""

    name: str
    arguments: str
    is_typed: bool


class PromptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt, its agent and model, and its time limit in seconds.

    In `typed`, the user's own words, `@name` means a file or an agent. `tools` are switches by
    name, of which the last that fits counts, `schema` is that of the answer; a slash command has
    neither. `resumes`: an interrupted answer goes on instead.
    """

    parts: Sequence[PartInput]
    typed: str = ""
    command: SlashCall | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    tools: Mapping[str, bool] = {}
    limit_s: float | None = None
    schema: Mapping[str, Any] | None = None
    resumes: bool = False


class Backend(Protocol):
    """The sessions of one project, and what runs in them.

    Everything raises a `PegboardError` when it cannot be done.
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings for the user before the prompt runs."""
        ...

    @property
    def unseen(self) -> tuple[str, ...]:
        """The warnings that every run repeats: documents that do not count."""
        ...

    @property
    def left_out(self) -> "LeftOut":
        """The line that every run repeats about code that does not run."""
        ...

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """The failures of this process's plugins so far."""
        ...

    @property
    def sandbox(self) -> str:
        """How tightly the processes of tools are enclosed, "" as long as it is unknown."""
        ...

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that they reach, where there is a list of them and it is known."""
        ...

    @property
    def untrusted(self) -> bool:
        """Whether the project has files that are not loaded because they are not trusted."""
        ...

    async def commands(self) -> Mapping[str, Command]:
        """Return the slash commands by name."""
        ...

    async def tools(self) -> Mapping[str, str]:
        """Return the permission of each tool by its name; empty where it is not known."""
        ...

    async def models(self) -> Sequence[Model]:
        """Return the models that can be asked."""
        ...

    async def list_sources(self) -> Sequence[str]:
        """Return a line for each key and each server of models on this machine."""
        ...

    async def model_id(self, chosen: str | None, agent: str | None, session: Session | None) -> str:
        """Return the name of the model that answers, empty if none is chosen."""
        ...

    async def model(self, chosen: str | None, agent: str | None, session: Session | None) -> Model:
        """Return the model that answers: the chosen, the agent's, the session's last, the default.

        :raises ModelNotFoundError: when there is none.
        """
        ...

    async def session(self, session_id: str) -> Session:
        """Return the session; an error names the nearest ids when there is none."""
        ...

    async def newest(self) -> Session | None:
        """Return the session that was used last, if there is one."""
        ...

    async def create(self, *, title: str | None, agent: str | None) -> Session:
        """Create a session."""
        ...

    async def fork(self, session_id: str) -> Session:
        """Create a copy of the session."""
        ...

    async def change_mode(self, session: Session, mode: str | None) -> None:
        """Give the session this permission mode, or that of the configuration."""
        ...

    async def delete(self, session_id: str) -> None:
        """Delete the session, with those of its subagents."""
        ...

    async def is_begun(self, session_id: str) -> bool:
        """Return whether the session has messages."""
        ...

    def subscribe(self) -> Subscription:
        """Return a subscription to the events from here on, with a queue of `QUEUED_EVENTS`."""
        ...

    async def prompt(self, session_id: str, prompt: PromptRequest) -> Turn:
        """Send a prompt and return the last answer, after all its events."""
        ...

    async def abort(self, session_id: str) -> bool:
        """Stop the session's run; False when none could be stopped."""
        ...

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the block to draw for a tool call."""
        ...

    async def approve(self, request_id: str, scope: Scope, *, agent_only: bool = False) -> None:
        """Allow what waits, and the like of it from now on; perhaps for one agent alone."""
        ...

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        ...

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request because no user can answer it."""
        ...

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer questions of the model."""
        ...

    async def reject_question(self, request_id: str) -> None:
        """Leave questions of the model unanswered."""
        ...


def model_name(
    chosen: str | None, agent: Agent | None, session: Session | None, default: str | None
) -> str:
    """Return the model that answers, as `provider/model`; empty if none is chosen."""
    if chosen:
        return chosen
    if agent is not None and agent.model is not None:
        return f"{agent.model.provider_id}/{agent.model.model_id}"
    if session is not None and session.model is not None:
        return f"{session.model.provider_id}/{session.model.id}"
    return default or ""


class LocalBackend:
    """The `Backend` of an open App, which it does not close."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self._blocks: pegboard.unstable.CallBlocks | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Settings, plugins with problems, code without trust."""
        return warnings_of(self._app)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Documents that agents wrote."""
        return frontend.unseen_warnings(self._app)

    @property
    def left_out(self) -> "LeftOut":
        """The code that does not run in the App."""
        return frontend.left_out(self._app)

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """The failures of the App's plugins."""
        return self._app.failures

    @property
    def sandbox(self) -> str:
        """The level in force."""
        return self._app.config.sandbox

    @property
    def hosts(self) -> tuple[str, ...]:
        """The list in force."""
        return () if self._app.enclosure is None else self._app.enclosure.hosts

    @property
    def untrusted(self) -> bool:
        """Whether files are left out."""
        return bool(self._app.untrusted)

    async def commands(self) -> Mapping[str, Command]:
        """Return the commands of the App."""
        return self._app.commands

    async def tools(self) -> Mapping[str, str]:
        """Return the tools of the App."""
        return {name: tool.permission for name, tool in self._app.tools.items()}

    async def models(self) -> Sequence[Model]:
        """Return the models of the App."""
        return await self._app.models()

    async def list_sources(self) -> Sequence[str]:
        """Keys and servers, as the App would use them."""
        from pegboard_plugins.cli.firstrun import list_sources  # only where no model is chosen

        return await list_sources(self._app)

    async def model_id(self, chosen: str | None, agent: str | None, session: Session | None) -> str:
        """Return the name of the model that answers."""
        named = agent or (session and session.agent) or self._app.default_agent().name
        return model_name(chosen, self._app.agents.get(named), session, self._app.config.model)

    async def model(self, chosen: str | None, agent: str | None, session: Session | None) -> Model:
        """Return the model that answers."""
        return await self._app.resolve_model(await self.model_id(chosen, agent, session))

    async def session(self, session_id: str) -> Session:
        """Return the session."""
        from pegboard_plugins.cli.foundsession import find_session

        return await find_session(self._app, session_id)

    async def newest(self) -> Session | None:
        """Return the session that was used last."""
        from pegboard_plugins.cli.foundsession import newest_session  # where one goes on

        return await newest_session(self._app)

    async def create(self, *, title: str | None, agent: str | None) -> Session:
        """Create a session."""
        return await self._app.create_session(title=title, agent=agent)

    async def fork(self, session_id: str) -> Session:
        """Create a copy of the session."""
        from pegboard_plugins.shared.frontend import forked

        return await forked(self._app, session_id)

    async def change_mode(self, session: Session, mode: str | None) -> None:
        """Change it in the database."""
        from pegboard_plugins.shared.frontend import change_mode, default_mode

        await change_mode(self._app, session.id, mode or default_mode(self._app.config))

    async def delete(self, session_id: str) -> None:
        """Delete the session."""
        await self._app.delete_session(session_id)

    async def is_begun(self, session_id: str) -> bool:
        """Return whether the session has messages."""
        return bool(await self._app.list_turns(session_id))

    def subscribe(self) -> Subscription:
        """Return a subscription to the App's events."""
        return self._app.subscribe(limit=QUEUED_EVENTS)

    async def prompt(self, session_id: str, prompt: PromptRequest) -> Turn:
        """Send a prompt and return the last answer."""
        agent, model, parts = prompt.agent, prompt.model, prompt.parts
        if prompt.resumes:
            return await self._app.resume(session_id)
        if prompt.command is None:
            if "@" in prompt.typed:
                from pegboard_plugins.shared.frontend import mentioned  # few texts have any

                parts = (*parts, *await mentioned(self._app, session_id, prompt.typed, agent=agent))
            chosen = Prompt(
                parts=parts,
                agent=agent,
                model=model,
                variant=prompt.variant,
                tools=prompt.tools,
                output=prompt.schema,
            )
            return await self._app.prompt(session_id, chosen)
        from pegboard_plugins.shared.frontend import CommandOrder, run_command

        order = CommandOrder(
            name=prompt.command.name,
            arguments=prompt.command.arguments,
            typed=prompt.command.is_typed,
            agent=agent,
            model=model,
            variant=prompt.variant,
            files=tuple(part for part in prompt.parts if isinstance(part, FileInput)),
        )
        return await run_command(self._app, session_id, order)

    async def abort(self, session_id: str) -> bool:
        """Stop the session's run."""
        return await self._app.abort(session_id)

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the block of the App's plugins."""
        self._blocks = self._blocks or pegboard.unstable.CallBlocks(self._app)
        return await self._blocks.block(part, width)

    async def approve(self, request_id: str, scope: Scope, *, agent_only: bool = False) -> None:
        """Allow what waits, and the like of it."""
        await self._app.policy.approve(request_id, scope, agent_only=agent_only)

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        await self._app.answer_permission(request_id, reply, message)

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request."""
        await self._app.permissions.leave_unattended(request_id)

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer questions."""
        await self._app.answer_question(request_id, answers)

    async def reject_question(self, request_id: str) -> None:
        """Leave questions unanswered."""
        await self._app.reject_question(request_id)


def warnings_of(app: "App") -> tuple[str, ...]:
    """Return the warnings, gravest first: `surroundings`, then plugins."""
    faulty = app.plugins.problems or app.failures
    # Most runs have none, and load no module for them.
    return (
        *surroundings(app),
        *(frontend.fault_warnings(app) if faulty else ()),
    )


def surroundings(app: "App") -> tuple[str, ...]:
    """Return the warnings about database, code, keys and settings."""
    damage = _damage_of_keys(UserFolders.of(os.environ).keys)
    return (
        *app.storage.warnings,
        *(frontend.untrusted_warnings(app) if app.untrusted else ()),
        *damage,
        *frontend.settings_warnings(app),
    )


def _damage_of_keys(file: Path) -> tuple[str, ...]:
    """Return the damage of the file of stored keys."""
    if not file.exists():
        return ()
    _, damage = frontend.KeyFile(file).read()
    return (f"{file} cannot be used, and the keys in it do not count: {damage}",) if damage else ()
