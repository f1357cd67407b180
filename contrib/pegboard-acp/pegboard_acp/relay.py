"""The translation of a session's events into updates for an editor."""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec.structs import asdict, replace

from pegboard import App
from pegboard.errors import ModelNotFoundError
from pegboard.schema.event import (
    Event,
    MessageUpdated,
    PartDelta,
    PartUpdated,
    PluginFailed,
    SessionStatusChanged,
    SessionWarned,
    TodoUpdated,
)
from pegboard.schema.message import AssistantMessage, Failure, Turn, UserMessage
from pegboard.schema.part import (
    Failed,
    FilePart,
    Part,
    Pending,
    ReasoningPart,
    Running,
    TextPart,
    TimeSpan,
    ToolPart,
)
from pegboard.schema.session import Retry, Todo
from pegboard.unstable import CallBlocks
from pegboard_acp.blocks import block_of
from pegboard_acp.link import Link
from pegboard_acp.protocol import TextBlock
from pegboard_acp.toolcalls import fields_of
from pegboard_acp.updates import (
    AgentChunk,
    CallChanged,
    CallStarted,
    CompactionChanged,
    CompactionChunk,
    Cost,
    Notice,
    Plan,
    PlanEntry,
    PlanPriority,
    PlanStatus,
    ThoughtChunk,
    Update,
    UsageChanged,
    UserChunk,
)

PROGRESS_S = 0.1
"""The least time between two updates of one running call."""
_TITLE_COLUMNS = 100
_INTERRUPTED = "interrupted"


class Relay:
    """The sender of a session's updates to the editor, during a turn or a replay.

    It records what was sent, so that each part is sent once even if the App publishes it
    repeatedly.
    """

    def __init__(self, app: App, session_id: str, link: Link) -> None:
        self._app = app
        self._session_id = session_id
        self._link = link
        self._client = link.client
        self._blocks = CallBlocks(app)
        self._texts: dict[str, TextPart | ReasoningPart] = {}
        self._sent: dict[str, str] = {}
        self._calls: dict[str, ToolPart] = {}
        self._call_sent_s: dict[str, float] = {}
        self._warned: set[str] = set()
        self._is_deaf = False
        self.answers: dict[str, AssistantMessage] = {}

    def call_id(self, message_id: str, call_id: str) -> str | None:
        """Return the editor's id of a tool call, or None if the call was not sent."""
        wanted = (message_id, call_id)
        known = self._calls.values()
        return next((each.id for each in known if (each.message_id, each.call_id) == wanted), None)

    async def take(self, event: Event) -> None:
        """Translate an event of the session into an ACP update, and send the update."""
        match event.properties:
            case PartDelta(part_id=part_id, delta=text) if not self._is_deaf:
                self._delta(part_id, text)
            case PartUpdated(part=part):
                await self._part(part)
            case MessageUpdated(info=AssistantMessage() as info):
                await self._answer(info)
            case TodoUpdated(todos=todos):
                self._send(plan_of(todos))
            case SessionWarned(message=text) | PluginFailed(message=text):
                await self._warn(text)
            case SessionStatusChanged(status=Retry(message=text)) if self._client.shows_notices:
                self._send(Notice(severity="info", title=f"Trying again: {text}"))

    async def catch_up(self, since_ms: int) -> None:
        """Send the answers that began at `since_ms` or later, because a slow editor missed events.

        From then on, each text is sent only when complete, because deltas might repeat text.
        """
        self._is_deaf = True
        for turn in await self._app.list_turns(self._session_id):
            if isinstance(turn.info, AssistantMessage) and turn.info.time.created >= since_ms:
                await self._answer(turn.info)
                for part in turn.parts:
                    await self._part(part)

    async def replay(self, turns: Iterable[Turn]) -> None:
        """Send a whole stored conversation."""
        for turn in turns:
            if isinstance(turn.info, UserMessage):
                for chunk in _user_parts(turn):
                    self._send(chunk)
                continue
            await self._answer(turn.info)
            for part in turn.parts:
                await self._part(_settled(part))

    async def _answer(self, info: AssistantMessage) -> None:
        known = self.answers.get(info.id)
        self.answers[info.id] = info
        if info.summary:
            self._compaction(info, is_new=known is None)
        is_over = info.time.completed is not None
        if is_over and (known is None or known.time.completed is None) and not info.summary:
            await self._usage(info)

    async def _usage(self, info: AssistantMessage) -> None:
        tokens = info.tokens
        size = None
        with suppress(ModelNotFoundError):  # one of an earlier configuration
            model = await self._app.resolve_model(f"{info.provider_id}/{info.model_id}")
            size = model.limit.context
        used = tokens.input + tokens.output + tokens.reasoning
        used += tokens.cache.read + tokens.cache.write
        if size is None or not used:
            return
        session = await self._app.session(self._session_id)
        spent = session.known_cost
        cost = None if spent is None else Cost(amount=spent, currency="USD")
        self._send(UsageChanged(used=used, size=size, cost=cost))

    def _compaction(self, info: AssistantMessage, *, is_new: bool) -> None:
        if not self._client.shows_compaction:
            return
        if info.time.completed is not None:
            text = failure_text(info.error) if info.error else None
            self._send(
                CompactionChanged(
                    compaction_id=info.id,
                    status="completed" if text is None else "failed",
                    error=text,
                )
            )
        elif is_new:
            self._send(CompactionChanged(compaction_id=info.id, status="in_progress"))

    async def _part(self, part: Part) -> None:
        if part.message_id not in self.answers:
            return  # the prompt, which the editor has
        match part:
            case TextPart() | ReasoningPart():
                self._send_text(part)
            case ToolPart():
                await self._call(part)

    def _send_text(self, part: TextPart | ReasoningPart) -> None:
        """Send the end of a text not sent yet; send nothing if earlier text has changed."""
        self._texts[part.id] = part
        sent = self._sent.get(part.id, "")
        if part.text.startswith(sent):
            self._add(part, part.text[len(sent) :])

    def _delta(self, part_id: str, text: str) -> None:
        if (part := self._texts.get(part_id)) is not None:
            self._add(part, text)

    def _add(self, part: TextPart | ReasoningPart, text: str) -> None:
        if not text:
            return
        self._sent[part.id] = self._sent.get(part.id, "") + text
        content = TextBlock(text=text)
        if self.answers[part.message_id].summary:
            if self._client.shows_compaction:
                self._send(CompactionChunk(compaction_id=part.message_id, content=content))
            else:
                self._send(ThoughtChunk(content=content, message_id=part.message_id))
        elif isinstance(part, ReasoningPart):
            self._send(ThoughtChunk(content=content, message_id=part.message_id))
        else:
            self._send(AgentChunk(content=content, message_id=part.message_id))

    async def _call(self, part: ToolPart) -> None:
        """Send the state of a tool call if it has changed; limit the rate for running calls."""
        known = self._calls.get(part.id)
        is_same = known is not None and type(known.state) is type(part.state)
        now = time.monotonic()
        is_soon = now - self._call_sent_s.get(part.id, 0.0) < PROGRESS_S
        if is_same and (not isinstance(part.state, Running) or is_soon or known == part):
            return
        self._calls[part.id] = part
        self._call_sent_s[part.id] = now
        block = await self._blocks.block(part, _TITLE_COLUMNS)
        fields = fields_of(
            part,
            title=f"{part.tool} {block.title}".strip(),
            tool=self._app.tools.get(part.tool),
            directory=self._app.workspace.directory,
        )
        make = CallStarted if known is None else CallChanged
        self._send(make(**asdict(fields)))

    async def _warn(self, text: str) -> None:
        """Send a warning, once per text."""
        if text not in self._warned:
            self._warned.add(text)
            await self._link.warn(self._session_id, text)

    def _send(self, update: Update) -> None:
        self._link.send(self._session_id, update)


def _user_parts(turn: Turn) -> Iterator[UserChunk]:
    """Yield the user's texts and attachments as chunks."""
    for part in turn.parts:
        match part:
            case TextPart(text=text, synthetic=False) if text:
                yield UserChunk(content=TextBlock(text=text), message_id=part.message_id)
            case FilePart():
                yield UserChunk(content=block_of(part), message_id=part.message_id)


def _settled(part: Part) -> Part:
    """Return a part of a stored conversation; a call that has no result is returned as failed."""
    match part:
        case ToolPart(state=Pending() | Running() as state):
            failed = Failed(input=state.input, error=_INTERRUPTED, time=TimeSpan(start=0))
            return replace(part, state=failed)
        case _:
            return part


def plan_of(todos: Iterable[Todo]) -> Plan:
    """Return the todo list as an ACP plan."""
    return Plan(entries=tuple(_entry(todo) for todo in todos))


_STATUSES: dict[str, PlanStatus] = {
    "completed": "completed",
    "cancelled": "completed",
    "in_progress": "in_progress",
}
_PRIORITIES: dict[str, PlanPriority] = {"high": "high", "low": "low"}


def _entry(todo: Todo) -> PlanEntry:
    return PlanEntry(
        content=todo.content,
        priority=_PRIORITIES.get(todo.priority, "medium"),
        status=_STATUSES.get(todo.status, "pending"),
    )


def failure_text(failure: Failure) -> str:
    """Return the error message in a `Failure`."""
    return failure.data.message
