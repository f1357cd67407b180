"""An App in this process, as the command line uses it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pegboard.embedding import Subscription
from pegboard.kit import Block
from pegboard.schema.config import Command
from pegboard.schema.event import PluginFailed
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.part import FileInput, ToolPart
from pegboard.schema.session import Reply, Scope, Session
from pegboard_plugins.cli.backend import QUEUED_EVENTS, PromptRequest, model_name
from pegboard_plugins.cli.opening import find_session, warnings_of
from pegboard_terminal import CallBlocks

if TYPE_CHECKING:
    from pegboard import App


class LocalBackend:
    """The `Backend` that an open App is; it closes nothing."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self._blocks = CallBlocks(app.hooks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Settings, plugins with problems, code without trust."""
        return warnings_of(self._app)

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """Those of the App's plugins."""
        return self._app.failures

    @property
    def sandbox(self) -> str:
        """The level in force."""
        return self._app.config.sandbox

    @property
    def hosts(self) -> tuple[str, ...]:
        """The list in force."""
        return () if self.sandbox == "off" else self._app.policy.hosts

    @property
    def untrusted(self) -> bool:
        """Whether files are left out."""
        return bool(self._app.untrusted)

    async def commands(self) -> Mapping[str, Command]:
        """Those of the App."""
        return self._app.commands

    async def tools(self) -> Mapping[str, str]:
        """Those of the App."""
        return {name: tool.permission for name, tool in self._app.tools.items()}

    async def models(self) -> Sequence[Model]:
        """Those of the App."""
        return await self._app.models()

    async def found_here(self) -> Sequence[str]:
        """Keys and servers, as the App would use them."""
        from pegboard_plugins.cli.firstrun import found_here  # only where no model is chosen

        return await found_here(self._app)

    async def named(self, chosen: str | None, agent: str | None, session: Session | None) -> str:
        """The name of the model that answers."""
        named = agent or (session and session.agent) or self._app.default_agent().name
        found = self._app.agents.get(named)
        return model_name(chosen, found, session, self._app.config.model)

    async def model(self, chosen: str | None, agent: str | None, session: Session | None) -> Model:
        """The model that answers."""
        return await self._app.resolve_model(await self.named(chosen, agent, session))

    async def session(self, session_id: str) -> Session:
        """The session."""
        return await find_session(self._app, session_id)

    async def newest(self) -> Session | None:
        """The session that was used last."""
        found = await self._app.sessions(limit=1)
        return found[0] if found else None

    async def create(self, *, title: str | None, agent: str | None) -> Session:
        """A new session."""
        return await self._app.create_session(title=title, agent=agent)

    async def fork(self, session_id: str) -> Session:
        """A copy of the session."""
        from pegboard_frontend import forked

        return await forked(self._app, session_id)

    async def delete(self, session_id: str) -> None:
        """Delete the session."""
        await self._app.delete_session(session_id)

    async def is_begun(self, session_id: str) -> bool:
        """Whether the session has messages."""
        return bool(await self._app.turns(session_id))

    def subscribe(self) -> Subscription:
        """The App's events."""
        return self._app.subscribe(limit=QUEUED_EVENTS)

    async def prompt(self, session_id: str, prompt: PromptRequest) -> Turn:
        """The last answer."""
        from pegboard.embedding import CommandOrder

        agent, model = prompt.agent, prompt.model
        if prompt.command is None:
            mentioned = await self._app.mentioned(session_id, prompt.typed, agent=agent)
            parts = (*prompt.parts, *mentioned)
            return await self._app.prompt(
                session_id,
                parts,
                agent=agent,
                model=model,
                variant=prompt.variant,
                tools=prompt.tools or None,
            )
        order = CommandOrder(
            name=prompt.command.name,
            arguments=prompt.command.arguments,
            typed=prompt.command.is_typed,
            agent=agent,
            model=model,
            variant=prompt.variant,
            files=tuple(part for part in prompt.parts if isinstance(part, FileInput)),
        )
        return await self._app.command(session_id, order)

    async def abort(self, session_id: str) -> bool:
        """Stop the session's run."""
        return await self._app.abort(session_id)

    async def block(self, part: ToolPart, width: int) -> Block:
        """The block of the App's plugins."""
        return await self._blocks.block(part, width)

    async def approve(self, request_id: str, scope: Scope, *, agent_only: bool = False) -> None:
        """Allow what waits, and the like of it."""
        await self._app.policy.approve(request_id, scope, agent_only=agent_only)

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        await self._app.reply(request_id, reply, message)

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request."""
        await self._app.permissions.leave_unattended(request_id)

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer questions."""
        await self._app.answer(request_id, answers)

    async def reject_question(self, request_id: str) -> None:
        """Leave questions unanswered."""
        await self._app.reject_question(request_id)
