"""A session that an editor has open."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime

from pegboard import App
from pegboard.app import Subscription
from pegboard.errors import AbortedError, NotFoundError
from pegboard.plugins import shield
from pegboard.schema.event import (
    Event,
    PartDelta,
    PermissionAsked,
    PermissionReplied,
    PluginFailed,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionUpdated,
)
from pegboard.schema.message import (
    AbortedFailure,
    AssistantMessage,
    BudgetFailure,
    ContentFilterFailure,
    Failure,
    OutputLengthFailure,
    Prompt,
    Turn,
)
from pegboard.schema.part import FileInput
from pegboard.schema.session import PermissionRequest, QuestionRequest, Session, Tokens, add_tokens
from pegboard_acp.blocks import parts_of, typed_text
from pegboard_acp.jsonrpc import ErrorCode, RpcError
from pegboard_acp.link import Link
from pegboard_acp.options import SessionChoices
from pegboard_acp.protocol import Block
from pegboard_acp.relay import Relay, failure_text, plan_of
from pegboard_acp.requests import Requests
from pegboard_acp.updates import (
    AvailableCommand,
    CommandInput,
    CommandsChanged,
    InfoChanged,
    ModeChanged,
    OptionsChanged,
    PromptResult,
    SessionState,
    StopReason,
    TurnUsage,
)
from pegboard_plugins.shared.frontend import CommandOrder, mentioned, run_command

QUEUED_EVENTS = 20_000
"""Of one turn, while the editor is slow to read; what is lost is read again."""
COMPACT = "compact"


class EditorSession:
    """A session that an editor has open, with its App.

    Closing the exit stack `leaving` releases the App. Prompts are answered one after the other, in
    the order of arrival.
    """

    def __init__(self, app: App, session: Session, link: Link, leaving: AsyncExitStack) -> None:
        self.app = app
        self.id = session.id
        self.choices = SessionChoices(app, session)
        self._link = link
        self._leaving = leaving
        self._turns: set[asyncio.Task[PromptResult]] = set()
        self._one_turn = asyncio.Lock()
        self._commands: CommandsChanged | None = None
        self._watching = asyncio.create_task(self._watch(), name=f"watch {session.id}")

    async def aclose(self) -> None:
        """Cancel the running work, and release the App."""
        await self.cancel()
        if self._turns:
            await asyncio.wait(self._turns)  # an abort has its own time limit
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._leaving.aclose()

    async def state(self, *, is_new: bool) -> SessionState:
        """Return the modes and options of the session; the session id only for a new session."""
        return SessionState(
            session_id=self.id if is_new else None,
            modes=self.choices.modes(),
            config_options=await self.choices.options(),
        )

    async def replay(self) -> None:
        """Send the past conversation, up to a revert point, and the todo list as a plan."""
        turns: Sequence[Turn] = await self.app.list_turns(self.id)
        if (revert := self.choices.session.revert) is not None:
            turns = [turn for turn in turns if turn.info.id < revert.message_id]
        await Relay(self.app, self.id, self._link).replay(turns)
        if todos := await self.app.storage.todos(self.id):
            self._link.send(self.id, plan_of(todos))
        await self._link.drain()

    async def send_commands(self) -> None:
        """Send the list of slash commands to the editor if it has changed."""
        known = [
            AvailableCommand(
                name=command.name,
                description=command.description or command.name,
                input=CommandInput(hint=" ".join(command.hints)) if command.hints else None,
            )
            for command in self.app.commands.values()
        ]
        if COMPACT not in self.app.commands:
            known.append(AvailableCommand(name=COMPACT, description="Summarise the conversation"))
        commands = CommandsChanged(available_commands=tuple(known))
        if commands != self._commands:
            self._commands = commands
            self._link.send(self.id, commands)
            await self._link.drain()

    async def send_options(self) -> None:
        """Send all session options with their values."""
        options = await self.choices.options()
        self._link.send(self.id, OptionsChanged(config_options=options))
        await self._link.drain()

    async def cancel(self) -> None:
        """Cancel the running turn and the prompts that wait in the queue."""
        for turn in self._turns:
            turn.cancel()

    async def prompt(self, blocks: tuple[Block, ...]) -> PromptResult:
        """Answer a prompt, and return why the answer stopped, after all updates were sent.

        :raises RpcError: when the model could not answer, or the prompt cannot be used.
        :raises PegboardError: what `App.prompt` raises.
        """
        turn = asyncio.create_task(self._turn(blocks), name=f"turn {self.id}")
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)
        try:
            await asyncio.wait({turn})
        finally:
            if not turn.done():  # this one request was cancelled
                turn.cancel()
                await shield(_ended(turn))
        return PromptResult(stop_reason="cancelled") if turn.cancelled() else turn.result()

    async def _turn(self, blocks: tuple[Block, ...]) -> PromptResult:
        async with self._one_turn:
            relay = Relay(self.app, self.id, self._link)
            events = self.app.subscribe(limit=QUEUED_EVENTS)
            relaying = asyncio.create_task(self._relay(events, relay), name=f"relay {self.id}")
            try:
                answered = await self._answered(blocks)
            except asyncio.CancelledError:
                await shield(self.app.abort(self.id))
                raise
            finally:
                events.close()
                await shield(_ended(relaying))
            await self.send_commands()
            return _result(answered, relay, self.app)

    async def _answered(self, blocks: tuple[Block, ...]) -> Turn | None:
        """Run the prompt or slash command; return the last turn, or None if the run was aborted."""
        await self.app.reload_project_code()
        choices = self.choices
        parts = await parts_of(self.app, self.id, choices.agent, blocks)
        typed = typed_text(blocks)
        word, _, arguments = typed.removeprefix("/").partition(" ")
        is_command = typed.startswith("/")
        with suppress(AbortedError):
            if is_command and word in self.app.commands:
                order = CommandOrder(
                    name=word,
                    arguments=arguments.strip(),
                    agent=choices.agent,
                    model=choices.model or None,
                    variant=choices.variant or None,
                    files=tuple(part for part in parts if isinstance(part, FileInput)),
                )
                return await run_command(self.app, self.id, order)
            if is_command and word == COMPACT:
                return await self.app.summarize(self.id, model=choices.model or None)
            found = await mentioned(self.app, self.id, typed, agent=choices.agent)
            prompt = Prompt(
                parts=(*parts, *found),
                agent=choices.agent,
                model=choices.model or None,
                variant=choices.variant or None,
            )
            return await self.app.prompt(self.id, prompt)
        return None

    async def _relay(self, events: Subscription, relay: Relay) -> None:
        """Send a turn's updates until the subscription ends; then withdraw open requests."""
        began_ms, missed = time.time_ns() // 1_000_000, 0
        async with asyncio.TaskGroup() as tasks:
            requests = Requests(self.app, self._link, self.id, tasks)
            while batch := await events.batch():
                if events.missed > missed:
                    missed = events.missed
                    await relay.catch_up(began_ms)
                    await self._catch_up(requests, relay)
                for event in _joined(batch):
                    await self._take(event, requests, relay)
                await self._link.drain()
            if missed:
                await relay.catch_up(began_ms)
            requests.withdraw_all()

    async def _take(self, event: Event, requests: Requests, relay: Relay) -> None:
        match event.properties:
            case PermissionAsked(request=request):
                await self._ask(request, requests, relay)
            case QuestionAsked(request=question):
                await self._ask(question, requests, relay)
            case (
                PermissionReplied(request_id=name)
                | QuestionReplied(request_id=name)
                | QuestionRejected(request_id=name)
            ):
                requests.withdraw(name)
            case PluginFailed():
                await relay.take(event)
            case _ if event.session_id == self.id:
                await relay.take(event)

    async def _ask(
        self, request: PermissionRequest | QuestionRequest, requests: Requests, relay: Relay
    ) -> None:
        if not await self._is_ours(request.session_id):
            return
        call = request.tool
        known = relay.call_id(call.message_id, call.call_id) if call else None
        if isinstance(request, PermissionRequest):
            requests.ask_permission(request, known)
        else:
            requests.ask_questions(request, known)

    async def _catch_up(self, requests: Requests, relay: Relay) -> None:
        waiting: list[PermissionRequest | QuestionRequest] = [*self.app.permissions.pending()]
        waiting += self.app.questions.pending()
        for request in waiting:
            await self._ask(request, requests, relay)

    async def _is_ours(self, session_id: str) -> bool:
        """Return whether an id belongs to this session or to a subagent of this session."""
        name: str | None = session_id
        while name is not None and name != self.id:
            try:
                name = (await self.app.session(name)).parent_id
            except NotFoundError:
                return False
        return name is not None

    async def _watch(self) -> None:
        """Send changes of the session's title and agent to the editor as they happen."""
        async with self.app.subscribe() as events:
            async for event in events:
                match event.properties:
                    case SessionUpdated(info=info) if info.id == self.id:
                        before, self.choices.session = self.choices.session, info
                        await self._send_changes(before, info)

    async def _send_changes(self, before: Session, now: Session) -> None:
        if now.title != before.title:
            at = datetime.fromtimestamp(now.time.updated / 1000, UTC).isoformat()
            self._link.send(self.id, InfoChanged(title=now.title, updated_at=at))
        agent = now.agent or self.choices.agent
        if agent in self.app.agents and agent not in {before.agent, self.choices.agent}:
            self.choices.agent = agent
            self._link.send(self.id, ModeChanged(current_mode_id=agent))
            await self.send_options()


async def _ended(task: "asyncio.Task[object]") -> None:
    """Wait until a task has ended, and ignore the task's result or error."""
    await asyncio.wait({task})


def _joined(batch: Sequence[Event]) -> list[Event]:
    """Join consecutive text deltas of the same message part."""
    joined: list[Event] = []
    for event in batch:
        match (joined[-1].properties if joined else None), event.properties:
            case PartDelta(part_id=a) as first, PartDelta(part_id=b) as second if a == b:
                whole = PartDelta(
                    session_id=first.session_id,
                    message_id=first.message_id,
                    part_id=first.part_id,
                    field=first.field,
                    delta=first.delta + second.delta,
                )
                joined[-1] = Event(properties=whole)
            case _:
                joined.append(event)
    return joined


def _result(turn: Turn | None, relay: Relay, app: App) -> PromptResult:
    if turn is None:
        return PromptResult(stop_reason="cancelled")
    info = turn.info
    assert isinstance(info, AssistantMessage)
    return PromptResult(stop_reason=_reason(info, relay, app), usage=_usage(relay))


_REASONS: dict[type[Failure], StopReason] = {
    AbortedFailure: "cancelled",
    OutputLengthFailure: "max_tokens",
    ContentFilterFailure: "refusal",
    BudgetFailure: "max_turn_requests",
}
_FINISHES: dict[str | None, StopReason] = {"length": "max_tokens", "content-filter": "refusal"}


def _reason(info: AssistantMessage, relay: Relay, app: App) -> StopReason:
    """Return why a turn ended, as an ACP stop reason.

    :raises RpcError: when the model could not answer.
    """
    if (error := info.error) is not None:
        if (reason := _REASONS.get(type(error))) is None:
            name = type(error).__name__
            raise RpcError(ErrorCode.INTERNAL_ERROR, failure_text(error), {"error": name})
        return reason
    agent = app.agents.get(info.agent)
    steps = agent.steps if agent is not None else None
    is_last = steps is not None and len(relay.answers) >= steps
    return _FINISHES.get(info.finish, "max_turn_requests" if is_last else "end_turn")


def _usage(relay: Relay) -> TurnUsage | None:
    total: Tokens | None = None
    for answer in relay.answers.values():
        total = add_tokens(total, answer.tokens)
    if total is None:
        return None
    cache = total.cache
    return TurnUsage(
        total_tokens=total.input + total.output + total.reasoning + cache.read + cache.write,
        input_tokens=total.input,
        output_tokens=total.output,
        thought_tokens=total.reasoning,
        cached_read_tokens=cache.read,
        cached_write_tokens=cache.write,
    )
