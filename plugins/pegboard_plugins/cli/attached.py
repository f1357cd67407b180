"""A server, as the command line uses it: requests one way, events the other."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard_client import AsyncClient, Resync, ServerError, ServerUnreachableError
from pegboard_client.attachment import AttachedFrontEnd

from pegboard.app import Subscription
from pegboard.display import Block, default_block
from pegboard.errors import ModelNotFoundError, NotFoundError, TimeLimitError
from pegboard.plugins import nearest_names
from pegboard.schema.config import Command
from pegboard.schema.event import (
    Event,
    MessageUpdated,
    PartUpdated,
    PermissionAsked,
    PluginFailed,
    QuestionAsked,
    SessionIdle,
    SessionStatusChanged,
)
from pegboard.schema.message import AssistantMessage, Prompt, Turn
from pegboard.schema.model import Model
from pegboard.schema.part import Part, Pending, ToolPart
from pegboard.schema.session import Session
from pegboard.unstable import Bus, given_block
from pegboard_plugins.cli.backend import QUEUED_EVENTS, PromptRequest, model_name
from pegboard_plugins.shared.frontend import LeftOut, Protection

if TYPE_CHECKING:
    from pegboard_client import AsyncEventStream

TOLD_WITHIN_S = 10.0
"""What the events of a turn may come later than its answer, which has a connection of its own."""
LOOK_EVERY_S = 0.5
READ_AGAIN = 20
ABORT_AGAIN_AFTER_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""An abort may come before its prompt."""
_SEARCHED = 500


@asynccontextmanager
async def attached(
    url: str, directory: Path, password: str | None
) -> AsyncIterator["AttachedBackend"]:
    """Yield the `Backend` of a server for a directory; it hears events as long as it is open.

    :raises ServerError: when no server answers, or it does not let us in.
    """
    async with (
        AsyncClient.discover(directory, url=url, password=password) as client,
        client.events() as events,
    ):
        backend = AttachedBackend(client)
        await backend.look()
        hearing = backend.hear_all(events)
        try:
            yield backend
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)


class AttachedBackend(AttachedFrontEnd):
    """One project of a server, and one prompt at a time."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._held = Protection(sandbox="")
        self._bus = Bus()
        self._hearing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._posting: asyncio.Task[Turn] | None = None
        self._session_id = ""
        self._before = ""
        self._rests = asyncio.Event()
        self._shown: dict[str, Part] = {}
        self._asked: set[str] = set()
        self._sandbox = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The lines of the server that every run repeats; it logs its other warnings."""
        return (*self.left_out.lines, *self.unseen)

    @property
    def unseen(self) -> tuple[str, ...]:
        """The server's."""
        return self._held.unseen

    @property
    def left_out(self) -> LeftOut:
        """The code that does not run in the server's App."""
        return LeftOut(lines=self._held.left_out)

    async def look(self) -> None:
        """Ask the server for what holds in the project; an older one has no answer."""
        with suppress(ServerError):
            self._held = await self._client.protection()

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """No failures: the plugins are the server's."""
        return ()

    @property
    def sandbox(self) -> str:
        """The server's sandbox, known after the first call in it."""
        return self._sandbox

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the server, of which calls have the number alone."""
        return ()

    @property
    def untrusted(self) -> bool:
        """Whether the server's App leaves files out."""
        return bool(self._held.untrusted)

    async def commands(self) -> Mapping[str, Command]:
        """Return the server's commands by name."""
        return {command.name: command for command in await self._client.commands()}

    async def tools(self) -> Mapping[str, str]:
        """Return the server's tools, without their permissions."""
        return dict.fromkeys(await self._client.tools(), "")

    async def list_sources(self) -> Sequence[str]:
        """Return no keys and no servers: they are those of the server."""
        return ()

    async def model_id(self, chosen: str | None, agent: str | None, session: Session | None) -> str:
        """Return the name of the model that answers."""
        agents = await self._client.agents()
        named = agent or (session and session.agent) or next((each.name for each in agents), "")
        found = next((each for each in agents if each.name == named), None)
        config = await self._client.config()
        return model_name(chosen, found, session, str(config.get("model") or ""))

    async def model(self, chosen: str | None, agent: str | None, session: Session | None) -> Model:
        """Return the model that answers."""
        name = await self.model_id(chosen, agent, session)
        models = {f"{each.provider_id}/{each.id}": each for each in await self.models()}
        if name not in models:
            raise ModelNotFoundError(name, suggestions=nearest_names(name, models))
        return models[name]

    async def session(self, session_id: str) -> Session:
        """Return the session; an error names the nearest ids when there is none."""
        try:
            return await super().session(session_id)
        except NotFoundError as error:
            known = await self._client.sessions.list(limit=_SEARCHED, roots=False)
            hint = nearest_names(session_id, [each.id for each in known])
            raise NotFoundError("session", session_id, suggestions=hint) from error

    async def newest(self) -> Session | None:
        """Return the session that was used last."""
        found = await self._client.sessions.list(limit=1)
        return found[0] if found else None

    async def create(self, *, title: str | None, agent: str | None) -> Session:
        """Create a session."""
        return await self._client.sessions.create(title=title, agent=agent)

    async def change_mode(self, session: Session, mode: str | None) -> None:
        """Change it on the server, whose configuration has the default."""
        from pegboard_plugins.shared.frontend import ASK, with_mode

        metadata = with_mode(session, mode or self._held.mode or ASK)
        await self._client.sessions.update(session.id, metadata=metadata)

    async def delete(self, session_id: str) -> None:
        """Delete the session."""
        await self._client.sessions.delete(session_id)

    async def is_begun(self, session_id: str) -> bool:
        """Return whether the session has messages."""
        return bool(await self._newest_id(session_id))

    def subscribe(self) -> Subscription:
        """Return a subscription to the server's events of this project."""
        return self._bus.subscribe(limit=QUEUED_EVENTS)

    async def prompt(self, session_id: str, prompt: PromptRequest) -> Turn:
        """Return the last answer; a connection that breaks off is taken up again.

        :raises AbortedError: when the turn was stopped before there was an answer.
        :raises ServerError: when the server refuses, or is away for too long.
        """
        self._session_id, self._before = session_id, await self._newest_id(session_id)
        self._posting = posting = asyncio.create_task(self._answer(session_id, prompt))
        try:
            either: set[asyncio.Future[Any]] = {posting, self._hearing}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not posting.done():
                self._hearing.result()  # it ends with an error only
            turn = await posting
            await self._all_told()
        finally:
            posting.cancel()
            await asyncio.gather(posting, return_exceptions=True)
        return turn

    async def abort(self, session_id: str) -> bool:
        """Stop what runs in the session, and see that the prompt ends."""
        try:
            for pause_s in ABORT_AGAIN_AFTER_S:
                await self._client.sessions.abort(session_id)
                if self._posting is None:
                    return False
                done, _ = await asyncio.wait({self._posting}, timeout=pause_s)
                if done:
                    return True
        except (ServerError, TimeLimitError):
            pass
        return False

    async def block(self, part: ToolPart, width: int) -> Block:  # noqa: ARG002 - the protocol's
        """Return the block that the tool gave, or the default one: plugins are the server's."""
        return given_block(part) or default_block(part)

    def hear_all(self, events: "AsyncEventStream[Event]") -> "asyncio.Task[None]":
        """Start the task that passes events on; the caller owns it."""
        task = asyncio.create_task(self._hear(events), name="events")
        self._hearing = task
        return task

    async def _hear(self, events: "AsyncEventStream[Event]") -> None:
        try:
            async for event in events:
                if isinstance(event, Resync):
                    await self._read_anew()
                else:
                    self._tell(event)
        finally:
            self._bus.close()

    def _tell(self, event: Event) -> None:
        match event.properties:
            case SessionStatusChanged(session_id=self._session_id):
                self._rests.clear()
            case SessionIdle(session_id=self._session_id):
                self._rests.set()
            case PartUpdated(part=part):
                self._shown[part.id] = part
                self._sandbox = _sandbox_of(part) or self._sandbox
            case PermissionAsked(request=request) | QuestionAsked(request=request):
                if request.id in self._asked:
                    return
                self._asked.add(request.id)
            case _:
                pass
        self._bus.publish(event)

    async def _read_anew(self) -> None:
        """Publish the state that lost events had; the server is there, or soon will be."""
        for _ in range(READ_AGAIN):
            try:
                await self._read_all()
            except (ServerUnreachableError, TimeLimitError):
                await asyncio.sleep(LOOK_EVERY_S)
            else:
                return

    async def _read_all(self) -> None:
        """Tell what is there of the turn, what waits, and whether the session rests."""
        if not self._session_id:
            return
        for turn in await self._client.messages(self._session_id):
            if turn.info.id > self._before:
                self._tell_turn(turn)
        for request in await self._client.permissions.list():
            self._tell(Event(properties=PermissionAsked(request=request)))
        for question in await self._client.questions.list():
            self._tell(Event(properties=QuestionAsked(request=question)))
        if self._session_id not in await self._client.sessions.status():
            self._rests.set()

    def _tell_turn(self, turn: Turn) -> None:
        session_id = self._session_id
        self._tell(Event(properties=MessageUpdated(session_id=session_id, info=turn.info)))
        for part in turn.parts:
            if self._shown.get(part.id) != part:
                told = PartUpdated(session_id=session_id, part=part, time=turn.info.time.created)
                self._tell(Event(properties=told))

    async def _answer(self, session_id: str, prompt: PromptRequest) -> Turn:
        if prompt.resumes:
            return await self._client.sessions.resume(session_id)
        said = prompt.command
        command = (said.name, said.arguments, said.is_typed) if said else None
        chosen = Prompt(
            parts=prompt.parts,
            agent=prompt.agent,
            model=prompt.model,
            variant=prompt.variant,
            tools=prompt.tools,
            output=prompt.schema,
        )
        try:
            return await self._posted(session_id, chosen, command=command, mentions=prompt.typed)
        except ServerUnreachableError as error:
            return await self._find_answer(session_id, error)

    async def _find_answer(self, session_id: str, lost: ServerUnreachableError) -> Turn:
        """Return the answer to a prompt whose connection broke off, once the session is idle.

        The wait ends with the event stream, which gives up when the server stays away.
        """
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                if session_id in await self._client.sessions.status():
                    continue
                turns = await self._client.messages(session_id, limit=1)
            except (ServerUnreachableError, TimeLimitError):
                continue
            if turns and self._is_answer(turns[-1]):
                return turns[-1]
            raise lost

    def _is_answer(self, turn: Turn) -> bool:
        return turn.info.id > self._before and isinstance(turn.info, AssistantMessage)

    async def _all_told(self) -> None:
        """Wait for the events of the turn that is over, but not for ever."""
        resting = asyncio.create_task(self._rests.wait())
        either: set[asyncio.Future[Any]] = {resting, self._hearing}
        await asyncio.wait(either, timeout=TOLD_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
        resting.cancel()
        await asyncio.gather(resting, return_exceptions=True)

    async def _newest_id(self, session_id: str) -> str:
        turns = await self._client.messages(session_id, limit=1)
        return turns[-1].info.id if turns else ""


def _sandbox_of(part: Part) -> str:
    """Return how tightly the processes of a call were enclosed, "" without a record of it."""
    if not isinstance(part, ToolPart) or isinstance(part.state, Pending):
        return ""
    level = (part.state.metadata or {}).get("sandbox")
    return level if isinstance(level, str) else ""
