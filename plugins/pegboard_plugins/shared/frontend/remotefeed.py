"""The `Feed` of a project on a server: it sends requests and receives events."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from pegboard_client import AsyncClient, AsyncEventStream, ServerError

from pegboard import App, HookCalls, PegboardError
from pegboard.app import Subscription
from pegboard.display import Block, default_block
from pegboard.errors import ModelNotFoundError, NotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import Custom, Event, PluginFailed
from pegboard.schema.message import Prompt, Turn
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
from pegboard.unstable import Bus, CallBlocks, given_block
from pegboard_plugins.shared.frontend import (
    ASK,
    LISTED,
    Facts,
    PluginEntry,
    TraceEntry,
    left_out,
    with_mode,
)
from pegboard_plugins.shared.frontend.feed import FACTS
from pegboard_plugins.shared.frontend.localfeed import QUEUED_EVENTS, plugins_here
from pegboard_plugins.shared.frontend.serverturns import ServerTurns, gone


async def attach(
    url: str, directory: Path, password: str | None, *, brings_plugins: bool = False
) -> "RemoteFeed":
    """Open the `Feed` of a project on a server, with a running event stream.

    With `brings_plugins`, this machine's plugins add commands, keys and themes, and render calls.

    :raises ServerError: when no server answers, or it rejects the password.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            AsyncClient.discover(directory, url=url, password=password)
        )
        events = await stack.enter_async_context(client.events())
        feed = RemoteFeed(client, events, directory, stack.pop_all())
    try:
        bringing = [feed.bring_plugins()] if brings_plugins else []
        await asyncio.gather(feed.begin(), *bringing)
    except BaseException:
        await feed.aclose()
        raise
    return feed


class RemoteFeed:
    """The `Feed` of a project on a server; `stack` holds the connections, which `aclose` closes."""

    def __init__(
        self,
        client: AsyncClient,
        events: AsyncEventStream[Event],
        directory: Path,
        stack: AsyncExitStack,
    ) -> None:
        self._client = client
        self._stack = stack
        self._here: App | None = None
        self._blocks: CallBlocks | None = None
        self._bus = Bus()
        self._turns = ServerTurns(client, events, self._bus, self._look_again)
        self._hearing: asyncio.Task[None] | None = None
        self._failing: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._mode = ASK
        self._facts = Facts(directory=directory, server=client.url)

    async def begin(self) -> None:
        """Start the event stream, and request the project's facts."""
        self._hearing = self._turns.begin()
        looking = self._look()
        agents, config, _ = await asyncio.gather(self.agents(), self._client.config(), looking)
        agent = agents[0].name if agents else "build"
        self._facts = replace(self._facts, agent=agent, model=str(config.get("model") or ""))

    async def _look(self) -> None:
        """Request the facts that a turn may have changed, and publish an event about them."""
        with suppress(PegboardError):  # a server of another make may know neither
            held = await self._client.protection()
            self._mode = held.mode or ASK
            self._facts = replace(
                self._facts,
                sandbox=held.sandbox,
                untrusted=held.untrusted,
                unseen=held.unseen,
                left_out=held.left_out,
            )
            found = await self._client.branch()
            self._facts = replace(self._facts, branch=found.branch or "")
        self._bus.publish(Event(properties=Custom(name=FACTS, data={})))

    def _look_again(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.create_task(self._look(), name="facts")

    async def begin_trace(self) -> None:
        """Let the server record changes that plugins make, if the server supports this."""
        with suppress(ServerError):
            await self._client.begin_trace()

    async def bring_plugins(self) -> None:
        """Load this machine's plugins for commands, keys, colours and blocks of tool calls."""
        try:
            app = await self._stack.enter_async_context(plugins_here(self._facts.directory))
        except PegboardError as error:
            warnings = (f"without the plugins of this machine: {error}",)
            self._facts = replace(self._facts, warnings=warnings)
            return
        self._here, self._blocks = app, CallBlocks(app)
        self._failing = asyncio.create_task(self._hear_failures(app.subscribe()), name="failures")
        missing, chat = left_out(app), app.config.plugins.get("chat")
        self._facts = replace(
            self._facts,
            options=chat.options if chat else {},
            warnings=(*missing.lines, *missing.others),
            known=missing.details,
        )

    async def _hear_failures(self, events: Subscription) -> None:
        """Publish failures of the plugins on this machine together with the server's events."""
        async for event in events:
            if isinstance(event.properties, PluginFailed):
                self._bus.publish(event)

    @property
    def facts(self) -> Facts:
        """The facts that the server sent, and the warnings of the server and this machine."""
        held = self._facts
        warnings = dict.fromkeys((*held.left_out, *held.unseen, *held.warnings))
        return replace(held, warnings=tuple(warnings))

    @property
    def mode(self) -> str:
        """The server's permission mode of a new session."""
        return self._mode

    @property
    def hooks(self) -> HookCalls | None:
        """The hooks of the plugins on this machine; None if they are not loaded."""
        return self._here.hooks if self._here else None

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """The failures of this machine's plugins."""
        return self._here.failures if self._here else ()

    @property
    def is_connected(self) -> bool:
        """Whether the server is connected."""
        return self._turns.is_connected

    def subscribe(self) -> Subscription:
        """Return a subscription to the server's events."""
        return self._bus.subscribe(limit=QUEUED_EVENTS)

    async def aclose(self) -> None:
        """Close the connection; turns continue on the server."""
        tasks = [task for task in (self._hearing, self._failing, self._looking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._bus.close()
        await self._stack.aclose()

    async def commands(self) -> Sequence[Command]:
        """Return the server's slash commands."""
        return await self._client.commands()

    async def agents(self) -> Sequence[Agent]:
        """Return the server's agents."""
        return await self._client.agents()

    async def tools(self) -> Mapping[str, str]:
        """Return the server's tools, with "" for each tool's permission."""
        return dict.fromkeys(await self._client.tools(), "")

    async def models(self) -> Sequence[Model]:
        """Return the server's models."""
        listed = (await self._client.providers()).providers
        return [model for each in listed for model in each.models.values()]

    async def require_model(self, name: str) -> Model | None:
        """Return the model; None means that its provider is known but does not list the model."""
        models = {f"{each.provider_id}/{each.id}": each for each in await self.models()}
        known = [*models, self._facts.model]
        provider, slash, _ = name.partition("/")
        if not slash or not any(each.startswith(provider + slash) for each in known):
            raise ModelNotFoundError(name, suggestions=nearest_names(name, known))
        return models.get(name)

    async def unlisted(self) -> Sequence[str]:
        """Return nothing, because only the server knows its keys."""
        return ()

    async def model_sources(self) -> Sequence[str]:
        """Return nothing, because only the server knows its sources of models."""
        return ()

    async def plugins(self) -> Sequence[PluginEntry]:
        """Return the server's plugins."""
        return await self._client.plugins()

    async def standing(self, session_id: str, agent: str) -> Mapping[str, int]:
        """Return how many characters each source, such as a plugin, adds to each request."""
        return await self._client.standing(session_id, agent)

    async def trace(self, session_id: str) -> Sequence[TraceEntry]:
        """Return the changes that the server's plugins made since `begin_trace`."""
        return await self._client.trace(session_id)

    async def sessions(self, *, search: str | None = None) -> Sequence[Session]:
        """Return the project's sessions, most recently used first, filtered by `search`."""
        return await self._client.sessions.list(limit=LISTED, search=search)

    async def newest(self) -> Session | None:
        """Return the most recently used session of this folder, or else of the project."""
        found, folder = await self.sessions(), str(self._facts.directory)
        here = (each for each in found if each.directory == folder)
        return next(here, found[0] if found else None)

    async def session(self, session_id: str) -> Session:
        """Return the session; if no session has the id, the error names the nearest ids."""
        try:
            with gone("session", session_id):
                return await self._client.sessions.get(session_id)
        except NotFoundError as error:
            known = await self._client.sessions.list(limit=LISTED, roots=False)
            hint = nearest_names(session_id, [each.id for each in known])
            raise NotFoundError("session", session_id, suggestions=hint) from error

    async def create(self, *, title: str | None = None, agent: str | None = None) -> Session:
        """Create a session."""
        return await self._client.sessions.create(title=title, agent=agent)

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        """Create a copy of the session, with all messages or those before `message_id`."""
        return await self._client.sessions.fork(session_id, message_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Change the session's title."""
        await self._client.sessions.update(session_id, title=title)

    async def change_mode(self, session_id: str, mode: str) -> None:
        """Change the session's permission mode."""
        metadata = with_mode(await self._client.sessions.get(session_id), mode)
        await self._client.sessions.update(session_id, metadata=metadata)

    async def delete(self, session_id: str) -> None:
        """Delete the session."""
        await self._client.sessions.delete(session_id)

    async def turns(self, session_id: str, *, limit: int | None = None) -> Sequence[Turn]:
        """Return the session's turns, or only the newest `limit` turns."""
        return await self._client.messages(session_id, limit=limit)

    async def status(self, session_id: str) -> SessionStatus | None:
        """Return the session's status, or None while the session is idle."""
        return (await self._client.sessions.status()).get(session_id)

    async def waiting(self) -> Sequence[PermissionRequest | QuestionRequest]:
        """Return the permission requests and questions that wait for an answer."""
        permissions = await self._client.permissions.list()
        return (*permissions, *await self._client.questions.list())

    async def todos(self, session_id: str) -> Sequence[Todo]:
        """Return the session's todo list."""
        return await self._client.todo(session_id)

    async def diff(self, session_id: str) -> Sequence[FileDiff]:
        """Return the session's changes of files."""
        return await self._client.diff(session_id)

    async def prompt(
        self, session_id: str, prompt: Prompt, *, mentions: str = "", checked: bool = False
    ) -> Turn:
        """Send a prompt, and return the last answer after its events."""
        send = partial(self._client.prompt, mentions=mentions or None, checked=checked)
        return await self._turns.answer(session_id, partial(send, session_id, prompt))

    async def run_command(
        self, session_id: str, name: str, prompt: Prompt, *, typed: bool = True
    ) -> Turn:
        """Run a slash command on the server, and return its answer."""
        send = partial(
            self._client.command,
            session_id,
            name,
            prompt.text,
            typed=typed,
            agent=prompt.agent,
            model=prompt.model,
            variant=prompt.variant,
            files=[part for part in prompt.parts if isinstance(part, FileInput)],
        )
        return await self._turns.answer(session_id, send)

    async def resume(self, session_id: str) -> Turn:
        """Resume an interrupted turn, and return its answer."""
        resume = partial(self._client.sessions.resume, session_id)
        return await self._turns.answer(session_id, resume)

    async def shell(self, session_id: str, prompt: Prompt) -> Turn:
        """Run the prompt's text as the user's shell command, and return its turn."""
        agent, model = prompt.agent, prompt.model
        return await self._client.shell(session_id, prompt.text, agent=agent, model=model)

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Withdraw a prompt that no model has read; return whether this succeeded."""
        with gone("message", message_id):
            return await self._client.withdraw(session_id, message_id)

    async def abort(self, session_id: str) -> bool:
        """Stop the session's turn; return whether anything ran."""
        return await self._client.sessions.abort(session_id)

    async def approve(
        self,
        request_id: str,
        scope: Scope,
        *,
        agent_only: bool = False,
        patterns: Sequence[str] = (),
    ) -> None:
        """Allow a waiting request, and similar requests from now on."""
        with gone("permission request", request_id):
            await self._client.permissions.approve(
                request_id, scope, agent_only=agent_only, patterns=patterns
            )

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        with gone("permission request", request_id):
            await self._client.permissions.reply(request_id, reply, message)

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request because no user is present to answer the request."""
        with gone("permission request", request_id):
            await self._client.permissions.leave_unattended(request_id)

    async def ask(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask the users of all clients of the session; return None if a user declines."""
        return await self._client.questions.ask(session_id, questions)

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]] | None) -> None:
        """Answer the questions of a request; None means that the user declines to answer."""
        with gone("question", request_id):
            if answers is None:
                await self._client.questions.reject(request_id)
            else:
                await self._client.questions.reply(request_id, answers)

    async def revert(self, session_id: str, message_id: str) -> None:
        """Revert the session to before a message."""
        await self._client.sessions.revert(session_id, message_id)

    async def unrevert(self, session_id: str) -> None:
        """Undo the revert of the session."""
        await self._client.sessions.unrevert(session_id)

    async def compact(self, session_id: str, model: str) -> None:
        """Summarise the session's history with this model."""
        await self._client.sessions.summarize(session_id, model)

    async def files(self, text: str) -> Sequence[str]:
        """Return the project's paths that the server finds for the text."""
        return await self._client.files.find(text)

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the lines to display for a tool call, from plugins on this machine or the tool."""
        if self._blocks is not None:
            return await self._blocks.block(part, width)
        return given_block(part) or default_block(part)
