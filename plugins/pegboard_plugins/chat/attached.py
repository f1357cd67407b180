"""The feed that a server is."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from pegboard_client import AsyncClient, Resync, ServerError, ServerUnreachableError
from pegboard_client.attachment import AttachedFrontEnd, gone

from pegboard import HookCalls, PegboardError
from pegboard.app import Subscription
from pegboard.display import Block, default_block
from pegboard.errors import ModelNotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import Custom, Event, PluginFailed, SessionIdle
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.part import ToolPart
from pegboard.schema.session import (
    Answers,
    FileDiff,
    PermissionRequest,
    Question,
    QuestionRequest,
    Session,
    SessionStatus,
    Todo,
)
from pegboard.unstable import Bus, CallBlocks, given_block
from pegboard_plugins.chat.feed import FACTS, QUEUED_EVENTS, RESYNC, Facts, Order
from pegboard_plugins.chat.local import chat_options, plugins_here
from pegboard_plugins.shared.frontend import (
    ASK,
    PluginEntry,
    TraceEntry,
    left_out,
    with_mode,
)

if TYPE_CHECKING:
    from pegboard_client import AsyncEventStream

    from pegboard import App

LISTED = 500


async def attach(url: str, directory: Path, password: str | None) -> "AttachedFeed":
    """Open the feed of a server for a directory; it hears events until it is closed.

    :raises ServerError: when no server answers, or it does not let us in.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            AsyncClient.discover(directory, url=url, password=password)
        )
        events = await stack.enter_async_context(client.events())
        feed = AttachedFeed(client, directory)
        await asyncio.gather(feed.begin(events), feed.bring_plugins(stack))
        feed.keep(stack.pop_all())
        return feed


class AttachedFeed(AttachedFrontEnd):
    """One project of a server."""

    def __init__(self, client: AsyncClient, directory: Path) -> None:
        self._client = client
        self._stack = AsyncExitStack()
        self._here: App | None = None
        self._blocks: CallBlocks | None = None
        self._bus = Bus()
        self._events: AsyncEventStream[Event] | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._failing: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._facts = Facts(directory=directory, server=client.url, mode=ASK)

    async def begin(self, events: "AsyncEventStream[Event]") -> None:
        """Hear the server from here on."""
        self._events = events
        self._hearing = asyncio.create_task(self._hear(events), name="events")
        with suppress(ServerError):  # an older one has no trace
            await self._client.begin_trace()
        agents = await self.agents()
        config = await self._client.config()
        with suppress(PegboardError):  # a server of another make does not know it
            mode = (await self._client.protection()).mode
            self._facts = replace(self._facts, mode=mode or ASK)
        self._facts = replace(
            self._facts,
            agent=agents[0].name if agents else "build",
            model=str(config.get("model") or ""),
        )
        self._look_again()

    async def _look(self) -> None:
        """Ask for what a turn may have changed of the project."""
        with suppress(PegboardError):  # a server of another make may know neither
            said = await self._client.branch()
            self._facts = replace(self._facts, branch=said.branch or "")
            held = await self._client.protection()
            self._facts = replace(
                self._facts, sandbox=held.sandbox, untrusted=held.untrusted, unseen=held.unseen
            )
        self._bus.publish(Event(properties=Custom(name=FACTS, data={})))

    def _look_again(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.create_task(self._look(), name="facts")

    async def bring_plugins(self, stack: AsyncExitStack) -> None:
        """Load the plugins of this machine: commands, keys, colours, and what is shown of calls."""
        directory = self._facts.directory
        try:
            app = await stack.enter_async_context(plugins_here(directory))
        except PegboardError as error:
            warning = f"without the plugins of this machine: {error}"
            self._facts = replace(self._facts, warnings=(warning,))
            return
        self._here, self._blocks = app, CallBlocks(app)
        self._failing = asyncio.create_task(self._hear_failures(app.subscribe()), name="failures")
        missing = left_out(app)
        self._facts = replace(
            self._facts,
            options=chat_options(app),
            warnings=(*missing.lines, *missing.others),
            known=missing.details,
        )

    def keep(self, stack: AsyncExitStack) -> None:
        """Own the stack, which ends when the feed is closed."""
        self._stack = stack

    async def _hear_failures(self, events: Subscription) -> None:
        """Tell of the plugins of this machine when they fail."""
        async for event in events:
            if isinstance(event.properties, PluginFailed):
                self._bus.publish(event)

    async def _hear(self, events: "AsyncEventStream[Event]") -> None:
        try:
            async for event in events:
                if isinstance(event, Resync):
                    self._bus.publish(Event(properties=Custom(name=RESYNC, data={})))
                else:
                    self._bus.publish(event)
                if isinstance(event, Resync) or isinstance(event.properties, SessionIdle):
                    self._look_again()
        except ServerError as error:
            told = Custom(name=RESYNC, data={"error": str(error)})
            self._bus.publish(Event(properties=told))

    @property
    def facts(self) -> Facts:
        """The facts that the server gave."""
        return self._facts

    @property
    def hooks(self) -> HookCalls | None:
        """The hooks of this machine's plugins; the server calls its own."""
        return self._here.hooks if self._here else None

    @property
    def is_connected(self) -> bool:
        """Whether the server is connected."""
        return self._events is None or self._events.is_connected

    def subscribe(self) -> Subscription:
        """Return a subscription to the server's events."""
        return self._bus.subscribe(limit=QUEUED_EVENTS)

    async def aclose(self) -> None:
        """Hang up; what runs goes on."""
        tasks = (self._hearing, self._failing, self._looking)
        hearing = [task for task in tasks if task is not None]
        for task in hearing:
            task.cancel()
        await asyncio.gather(*hearing, return_exceptions=True)
        self._bus.close()
        await self._stack.aclose()

    async def commands(self) -> Sequence[Command]:
        """Return the server's commands."""
        return await self._client.commands()

    async def agents(self) -> Sequence[Agent]:
        """Return the server's agents."""
        return await self._client.agents()

    async def unlisted(self) -> Sequence[str]:
        """Return none: only the server knows which keys it has."""
        return ()

    async def require_model(self, name: str) -> None:
        """Look for the provider among those of the models that the server lists."""
        known = [self._facts.model]
        known += [f"{each.provider_id}/{each.id}" for each in await self.models()]
        provider, slash, _ = name.partition("/")
        if not any(each.startswith(provider + slash) for each in known) or not slash:
            raise ModelNotFoundError(name, suggestions=nearest_names(name, known))

    async def plugins(self) -> Sequence[PluginEntry]:
        """Return the server's plugins."""
        return await self._client.plugins()

    async def standing(self, session_id: str, agent: str) -> Mapping[str, int]:
        """Return the characters that the server's requests carry."""
        return await self._client.standing(session_id, agent)

    async def trace(self, session_id: str) -> Sequence[TraceEntry]:
        """Return the changes by the server's plugins since the chat attached."""
        return await self._client.trace(session_id)

    async def sessions(self, *, search: str | None = None) -> Sequence[Session]:
        """Return the project's sessions."""
        return await self._client.sessions.list(limit=LISTED, search=search)

    async def create(self) -> Session:
        """Create a session."""
        return await self._client.sessions.create()

    async def turns(self, session_id: str) -> Sequence[Turn]:
        """Return the session's messages."""
        return await self._client.messages(session_id)

    async def status(self, session_id: str) -> SessionStatus | None:
        """Return the session's status."""
        return (await self._client.sessions.status()).get(session_id)

    async def waiting(self) -> Sequence[PermissionRequest | QuestionRequest]:
        """Return the requests that wait for an answer."""
        permissions = await self._client.permissions.list()
        return (*permissions, *await self._client.questions.list())

    async def todos(self, session_id: str) -> Sequence[Todo]:
        """Return the session's todo list."""
        return await self._client.todo(session_id)

    async def change_mode(self, session_id: str, mode: str) -> None:
        """Change the session."""
        metadata = with_mode(await self._client.sessions.get(session_id), mode)
        await self._client.sessions.update(session_id, metadata=metadata)

    async def prompt(self, session_id: str, order: Order) -> None:
        """Send it; a connection that breaks off leaves the turn running, and events tell of it."""
        command = (order.command, order.text, True) if order.command else None
        prompt = Prompt(
            "" if command else order.text,
            parts=order.files,
            agent=order.agent,
            model=order.model,
            variant=order.variant,
        )
        try:
            await self._posted(
                session_id, prompt, command=command, mentions=order.text, checked=True
            )
        except ServerUnreachableError:
            await self._client.sessions.get(session_id)  # it is back, or it says that it is not

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Take it back."""
        with gone("message", message_id):
            return await self._client.withdraw(session_id, message_id)

    async def ask(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask everybody who sees the session."""
        return await self._client.questions.ask(session_id, questions)

    async def shell(self, session_id: str, command: str, order: Order) -> None:
        """Run the command."""
        await self._client.shell(session_id, command, agent=order.agent, model=order.model)

    async def abort(self, session_id: str) -> None:
        """Stop it."""
        await self._client.sessions.abort(session_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Give it a title."""
        await self._client.sessions.update(session_id, title=title)

    async def revert(self, session_id: str, message_id: str) -> None:
        """Go back."""
        await self._client.sessions.revert(session_id, message_id)

    async def unrevert(self, session_id: str) -> None:
        """Go forth again."""
        await self._client.sessions.unrevert(session_id)

    async def diff(self, session_id: str) -> Sequence[FileDiff]:
        """Return the session's changes."""
        return await self._client.diff(session_id)

    async def compact(self, session_id: str, model: str) -> None:
        """Summarise."""
        await self._client.sessions.summarize(session_id, model)

    async def files(self, text: str) -> Sequence[str]:
        """Return the files that the server finds."""
        return await self._client.files.find(text)

    async def block(self, part: ToolPart, width: int) -> Block:
        """Return the block of this machine's plugins, the tool's own, or the default one."""
        if self._blocks is not None:
            return await self._blocks.block(part, width)
        return given_block(part) or default_block(part)
