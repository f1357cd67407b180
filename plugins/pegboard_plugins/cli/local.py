"""An App in this process, as the command line uses it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pegboard_frontend
import pegboard_terminal
from pegboard import InvalidInputError
from pegboard.embedding import Places, Subscription
from pegboard.errors import NotFoundError
from pegboard.kit import Block, nearest_names
from pegboard.schema.config import Command
from pegboard.schema.event import PluginFailed
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.part import FileInput, ToolPart
from pegboard.schema.session import Reply, Scope, Session
from pegboard_plugins.cli.backend import QUEUED_EVENTS, PromptRequest, model_name

if TYPE_CHECKING:
    from pegboard import App


_SHOWN = 5
_SEARCHED = 500
"""The newest sessions, among which a misspelt id is looked for."""


class LocalBackend:
    """The `Backend` that an open App is; it closes nothing."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self._blocks: pegboard_terminal.CallBlocks | None = None

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
        return () if self._app.enclosure is None else self._app.enclosure.hosts

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
        agent, model = prompt.agent, prompt.model
        if prompt.command is None:
            parts = prompt.parts
            if "@" in prompt.typed:
                from pegboard_frontend import mentioned  # few texts have any

                found = await mentioned(self._app, session_id, prompt.typed, agent=agent)
                parts = (*parts, *found)
            return await self._app.prompt(
                session_id,
                parts,
                agent=agent,
                model=model,
                variant=prompt.variant,
                tools=prompt.tools or None,
            )
        from pegboard_frontend import CommandOrder, run_command

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
        """The block of the App's plugins."""
        if self._blocks is None:
            self._blocks = pegboard_terminal.CallBlocks(self._app.hooks)
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


def warnings_of(app: "App") -> tuple[str, ...]:
    """What is not as the user might think, the gravest first: `surroundings`, then plugins."""
    found = sorted(app.register.problems, key=lambda each: each.kind != "refusal")
    problems = (f"{problem.plugin}: {problem.text}" for problem in found)
    failures = (failure.message for failure in app.failures)
    return (*surroundings(app), *problems, *failures)


def surroundings(app: "App") -> tuple[str, ...]:
    """What is not as the user might think but for plugins: database, code, keys, settings."""
    damage = _damage_of_keys(Places.of(os.environ).keys)
    return (
        *app.storage.warnings,
        *_left_out(app),
        *damage,
        *pegboard_frontend.settings_warnings(app),
    )


def _left_out(app: "App") -> tuple[str, ...]:
    """Code that nobody has trusted."""
    code = [path for path in app.untrusted if path not in app.loaded.untrusted]
    if not code:
        return ()
    names = ", ".join(_short(path, app.workspace.worktree) for path in code)
    text = f"not loaded, because this project is not trusted: {names}"
    return (f"{text}; `pegboard trust allow` shows and trusts it, --trust does so once",)


def _damage_of_keys(file: Path) -> tuple[str, ...]:
    """What is wrong with the keys that were kept."""
    if not file.exists():
        return ()
    from pegboard_frontend import KeyFile

    _, damage = KeyFile(file).read()
    return (f"{file} cannot be used, and the keys in it do not count: {damage}",) if damage else ()


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _chosen(found: Sequence[Session]) -> Session:
    """The session used last, or another one of the newest that a person chooses."""
    if not found:
        raise InvalidInputError("there is no session in this project yet")
    from pegboard_plugins.cli.picking import can_pick, pick

    if len(found) == 1 or not can_pick():
        return found[0]
    rows = [(each.id, each.title) for each in found]
    chosen = pick("session", rows)
    return next(each for each in found if each.id == chosen)


async def find_session(app: "App", session_id: str | None, *, whole: bool = False) -> Session:
    """The session of this id, or whose id alone begins so; without an id the one used last.

    On a terminal a person chooses where there is no id. With `whole` an id must be given in full.

    :raises NotFoundError: with the nearest ids, when there is none.
    :raises InvalidInputError: when several begin so, or the project has none at all.
    """
    if session_id is None:
        return _chosen(await app.sessions(limit=_SEARCHED))
    try:
        return await app.session(session_id)
    except NotFoundError as error:
        every = await app.sessions(roots=False)
        meant = [each for each in every if session_id and each.id.startswith(session_id)]
        if len(meant) == 1 and not whole:
            return meant[0]
        if len(meant) > 1:
            shown = ", ".join(each.id for each in meant[:_SHOWN])
            text = f"{len(meant)} sessions begin with {session_id}: {shown}"
            raise InvalidInputError(text) from error
        hint = nearest_names(session_id, [each.id for each in every[:_SEARCHED]])
        raise NotFoundError("session", session_id, suggestions=hint) from error
