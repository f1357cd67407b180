"""The feed that an App in this process is."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

from pegboard import HookCalls, InvalidInputError
from pegboard.app import Subscription
from pegboard.display import Block
from pegboard.errors import ModelNotFoundError
from pegboard.schema.config import Agent, Command
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.model import Model
from pegboard.schema.part import ToolPart
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
from pegboard.unstable import CallBlocks
from pegboard_plugins.chat.chatoptions import StartOptions
from pegboard_plugins.chat.feed import QUEUED_EVENTS, Facts, Order
from pegboard_plugins.shared.frontend import (
    CommandOrder,
    PluginEntry,
    RunRules,
    TraceEntry,
    begin_trace,
    branch,
    change_mode,
    default_mode,
    follow_folder,
    forked,
    left_out,
    mentioned,
    plugin_entries,
    require_answerer,
    require_folder,
    reverted,
    run_command,
    session_diff,
    settings_warnings,
    standing,
    trace_entries,
    unreverted,
    unseen_warnings,
)

if TYPE_CHECKING:
    from pegboard import App

LISTED = 500
FACTS_S = 1.0
"""The branch may be another by then."""


async def open_local(start: StartOptions) -> "LocalFeed":
    """Open an App for the directory, with a person who can be asked.

    :raises InvalidInputError: for a rule that is none.
    """
    from pegboard import App, AppOptions

    rules = [RunRules(allow=start.allow, deny=start.deny)] * bool(start.allow or start.deny)
    options = AppOptions(
        interactive=True,
        trust=True if start.trust else None,
        config={} if start.sandbox is None else {"sandbox": start.sandbox},
        plugins=rules,
    )
    app = await App.open(start.directory, options)
    try:
        for each in rules:
            each.check(app)
    except InvalidInputError:
        await app.aclose()
        raise
    begin_trace(app)
    return LocalFeed(app, await follow_folder(app))


@asynccontextmanager
async def plugins_here(directory: Path) -> "AsyncIterator[App]":
    """Open an App for this machine's plugins next to a server's session; it runs nothing."""
    from pegboard import App, AppOptions

    env = {name: value for name, value in os.environ.items() if name != "PEGBOARD_DATABASE"}
    config = {"sandbox": "off"}  # nothing runs that could be enclosed
    with TemporaryDirectory(prefix="pegboard-", ignore_cleanup_errors=True) as folder:
        options = AppOptions(env=env, config=config, data_dir=Path(folder))
        async with App.open(directory, options) as app:
            yield app


def chat_options(app: "App") -> Mapping[str, Any]:
    """Return the user's settings for the chat."""
    said = app.config.plugins.get("chat")
    return said.options if said else {}


class LocalFeed:
    """The `Feed` of an open App, which it closes; `note` is one on its folder, if any."""

    def __init__(self, app: "App", note: str = "") -> None:
        self._app = app
        self._note = note
        self._blocks = CallBlocks(app)
        self._facts: Facts | None = None
        self._known_until = 0.0

    @property
    def facts(self) -> Facts:
        """The known facts of the project, looked up now and then: every frame needs them."""
        now = monotonic()
        if self._facts is None or now > self._known_until:
            self._facts, self._known_until = self._facts_now(), now + FACTS_S
        return self._facts

    def _facts_now(self) -> Facts:
        app = self._app
        missing = left_out(app)
        return Facts(
            directory=app.workspace.directory,
            branch=branch(app.workspace) or "",
            model=app.config.model or "",
            agent=app.default_agent().name,
            mode=default_mode(app.config),
            sandbox=app.config.sandbox,
            untrusted=tuple(str(path) for path in app.untrusted),
            unseen=unseen_warnings(app),
            warnings=(
                *filter(None, [self._note]),
                *missing.lines,
                *app.storage.warnings,
                *settings_warnings(app),
                *missing.others,
            ),
            known=missing.details,
            options=chat_options(app),
            keys={name: tuple(each.env) for name, each in app.providers.items()},
        )

    @property
    def hooks(self) -> HookCalls | None:
        """The App's."""
        return self._app.hooks

    @property
    def is_connected(self) -> bool:
        """True: the sessions are in this process."""
        return True

    def subscribe(self) -> Subscription:
        """Return a subscription to the App's events."""
        return self._app.subscribe(limit=QUEUED_EVENTS)

    async def aclose(self) -> None:
        """Close the App."""
        await self._app.aclose()

    async def commands(self) -> Sequence[Command]:
        """Return the slash commands, those of files that were trusted meanwhile too."""
        await self._app.reload_project_code()
        return tuple(self._app.commands.values())

    async def agents(self) -> Sequence[Agent]:
        """Return the agents."""
        first = self._app.default_agent().name
        return sorted(self._app.agents.values(), key=lambda agent: agent.name != first)

    async def unlisted(self) -> Sequence[str]:
        """Return the providers with a key of which no model is known."""
        app = self._app
        listed = {model.provider_id for model in await app.models()}
        return [
            name
            for name, each in app.providers.items()
            if name not in listed and each.env and app.keys.source(name, each.env) is not None
        ]

    async def models(self) -> Sequence[Model]:
        """Return the models that can be asked, always with the configured one."""
        found = {(model.provider_id, model.id): model for model in await self._app.models()}
        if self._app.config.model:
            with suppress(ModelNotFoundError):
                model = await self._app.resolve_model(self._app.config.model)
                found.setdefault((model.provider_id, model.id), model)
        return [found[name] for name in sorted(found)]

    async def require_model(self, name: str) -> None:
        """Look for the model."""
        await self._app.resolve_model(name)

    async def plugins(self) -> Sequence[PluginEntry]:
        """Return the plugins."""
        return plugin_entries(self._app)

    async def standing(self, session_id: str, agent: str) -> Mapping[str, int]:
        """Return the sizes of the system prompt's pieces and the tools' descriptions, by plugin."""
        return standing(self._app, session_id, agent)

    async def trace(self, session_id: str) -> Sequence[TraceEntry]:
        """Return the changes by plugins."""
        return trace_entries(self._app, session_id)

    async def sessions(self, *, search: str | None = None) -> Sequence[Session]:
        """Return the project's sessions."""
        return await self._app.sessions(limit=LISTED, search=search)

    async def session(self, session_id: str) -> Session:
        """Return the session; one of another folder is refused."""
        session = await self._app.session(session_id)
        require_folder(session, self._app.workspace.directory)
        return session

    async def create(self) -> Session:
        """Create a session."""
        return await self._app.create_session()

    async def turns(self, session_id: str) -> Sequence[Turn]:
        """Return the session's messages."""
        return await self._app.list_turns(session_id)

    async def status(self, session_id: str) -> SessionStatus | None:
        """Return the session's status."""
        status = self._app.session_status(session_id)
        return None if isinstance(status, Idle) else status

    async def waiting(self) -> Sequence[PermissionRequest | QuestionRequest]:
        """Return the requests that wait for an answer."""
        return (*self._app.permissions.pending(), *self._app.questions.pending())

    async def todos(self, session_id: str) -> Sequence[Todo]:
        """Return the session's todo list."""
        return await self._app.storage.todos(session_id)

    async def change_mode(self, session_id: str, mode: str) -> None:
        """Change the session."""
        await change_mode(self._app, session_id, mode)

    async def prompt(self, session_id: str, order: Order) -> None:
        """Send it; the mentions in it are the person's own."""
        app = self._app
        if order.command is not None:
            said = CommandOrder(
                name=order.command,
                arguments=order.text,
                typed=True,
                agent=order.agent,
                model=order.model,
                variant=order.variant,
                files=order.files,
            )
            await run_command(app, session_id, said)
            return
        await require_answerer(app, session_id, agent=order.agent, model=order.model)
        found = await mentioned(app, session_id, order.text, agent=order.agent)
        prompt = Prompt(
            order.text,
            parts=(*order.files, *found),
            agent=order.agent,
            model=order.model,
            variant=order.variant,
        )
        await app.prompt(session_id, prompt)

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Take it back."""
        return await self._app.withdraw(session_id, message_id)

    async def shell(self, session_id: str, command: str, order: Order) -> None:
        """Run the command."""
        from pegboard_plugins.shared.frontend import ShellOrder, run_shell

        said = ShellOrder(command=command, agent=order.agent, model=order.model)
        await run_shell(self._app, session_id, said)

    async def abort(self, session_id: str) -> None:
        """Stop it."""
        await self._app.abort(session_id)

    async def approve(self, request_id: str, scope: Scope, *, patterns: Sequence[str] = ()) -> None:
        """Allow it, and the like of it."""
        await self._app.policy.approve(request_id, scope, patterns=patterns)

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer."""
        await self._app.answer_permission(request_id, reply, message)

    async def ask(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask."""
        return await self._app.ask_user(session_id, questions)

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer."""
        await self._app.answer_question(request_id, answers)

    async def reject_question(self, request_id: str) -> None:
        """Leave them."""
        await self._app.reject_question(request_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Give it a title."""
        await self._app.update_session(session_id, title=title)

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        """Create a copy up to a message."""
        return await forked(self._app, session_id, message_id)

    async def revert(self, session_id: str, message_id: str) -> None:
        """Go back."""
        await reverted(self._app, session_id, message_id)

    async def unrevert(self, session_id: str) -> None:
        """Go forth again."""
        await unreverted(self._app, session_id)

    async def diff(self, session_id: str) -> Sequence[FileDiff]:
        """Return the session's changes."""
        return await session_diff(self._app, session_id)

    async def compact(self, session_id: str, model: str) -> None:
        """Summarise."""
        await self._app.summarize(session_id, model=model or None)

    async def files(self, text: str) -> Sequence[str]:  # noqa: ARG002 - the protocol's
        """None: plugins of this process complete them."""
        return ()

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the block of the plugins."""
        return await self._blocks.block(part, width)
