"""The run of a session: its record, turns, ids and writer."""

from asyncio import Future
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from pegboard.contract import apphooks
from pegboard.contract.context import SessionView, SubagentResult
from pegboard.contract.results import PrefixLoss
from pegboard.engine.engine import ChildRequest, Engine
from pegboard.engine.finish import RepeatedCalls, StalledSteps
from pegboard.engine.history import History
from pegboard.engine.processor import Processor
from pegboard.engine.sessions import MAX_DEPTH, SessionIds, make_view
from pegboard.engine.writer import Writer
from pegboard.errors import ToolError
from pegboard.policy.clock import Slots
from pegboard.providers import ModelRequest
from pegboard.providers.spending import Budget, Spent
from pegboard.schema.config import Agent
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime, Turn
from pegboard.schema.model import Model
from pegboard.schema.part import ModelChoice
from pegboard.schema.session import Busy, Ruleset, Session, SessionModel, SessionStatus, Tokens
from pegboard.snapshots import Followed, Trail
from pegboard.storage.changes import ChangeSession, PutMessage

MAX_WIDTH = 8
"""Of one session's subagents so many work at the same time; the others wait for their turn."""


class Untracked(Trail):
    """A recorder of file changes that records nothing, for an App without a snapshot plugin."""

    def calling(self, effect: str) -> AbstractAsyncContextManager[None]:  # noqa: ARG002 - unheard
        """Return a context manager that records nothing."""
        return nullcontext()


class Run(msgspec.Struct):
    """The run of one session: from its first unanswered prompt until all prompts are answered.

    `session` is the record as this process last stored it. `ancestors` are the ids of the sessions
    above a subagent's session. `owed` is the cost that is not yet stored in the session and its
    ancestors. `run_child` runs a subagent, and `width` limits how many run at the same time.
    `chosen` is the model that the prompt named. `sent` is the newest request to the model. `loss`
    describes how that request missed the provider's cache. `calls` are the turn's calls with their
    results, to detect repetitions. `progress` counts steps without progress. `trail` records which
    files the steps change. `reopened` are the ids of interrupted answers that the run continues.
    `stored` completes when the result of the last step is stored. `blocked` is set when the user
    rejected a permission; the turn then ends after the step.
    """

    engine: Engine
    session: Session
    history: History
    ids: SessionIds
    writer: Writer
    ancestors: tuple[str, ...]
    parent_rulesets: tuple[Ruleset, ...]
    run_child: Callable[[ChildRequest], Awaitable[SubagentResult]]
    blocked: bool = False
    calls: RepeatedCalls = msgspec.field(default_factory=RepeatedCalls)
    progress: StalledSteps = msgspec.field(default_factory=StalledSteps)
    width: Slots = msgspec.field(default_factory=lambda: Slots(MAX_WIDTH))
    sent: ModelRequest | None = None
    chosen: Model | None = None
    status: SessionStatus = msgspec.field(default_factory=Busy)
    budget: Budget = msgspec.field(default_factory=Budget)
    owed: Spent = Spent()
    trail: Trail = msgspec.field(default_factory=Untracked)
    reopened: frozenset[str] = frozenset()
    stored: Future[None] | None = None
    loss: PrefixLoss | None = None
    newest: tuple[str, Processor | None] = "", None

    def __post_init__(self) -> None:
        for gone in self.ids.withdrawn:
            self.history.drop(gone)
        if self.engine.snapshots is not None:
            self.trail = self.engine.snapshots.follow(
                Followed(
                    session=self.session,
                    turns=lambda: self.history.turns,
                    new_id=self.ids.part,
                    change=self.writer.change,
                    found=self.calls.found,
                )
            )

    def view(self, agent: Agent, model: Model) -> SessionView:
        """Return the session's current state in the form that plugins receive."""
        return make_view(
            self.engine,
            self.session,
            agent,
            model,
            depth=len(self.ancestors),
            parents=self.parent_rulesets,
            turns=self.history.view(),
        )

    def last_answer(self) -> Turn | None:
        """Return the model's newest message with all its parts, or None without any message."""
        turns = reversed(self.history.turns)
        turn = next((turn for turn in turns if isinstance(turn.info, AssistantMessage)), None)
        begun, processor = self.newest
        if turn is None or processor is None or begun != turn.info.id:
            return turn
        return replace(turn, parts=tuple(processor.parts.values()))

    def compactable(self) -> bool:
        """Return whether the session may be compacted: the settings and a plugin must allow it.

        After a compaction the model must answer before the next compaction.
        """
        engine = self.engine
        if not engine.config.compaction.auto or not engine.hooks.has(apphooks.register_compactors):
            return False
        infos = (turn.info for turn in reversed(self.history.turns))
        answers = (each for each in infos if isinstance(each, AssistantMessage))
        last = next((each for each in answers if each.summary or each.finish is not None), None)
        return last is not None and not last.summary

    def new_answer(
        self,
        parent_id: str,
        agent: str,
        model: Model | ModelChoice,
        **fields: Any,  # noqa: ANN401 - of the message
    ) -> AssistantMessage:
        """Return an empty answer of an agent to the message `parent_id`."""
        place = self.engine.workspace
        rest = {"time": MessageTime(created=self.engine.now()), **fields}
        return AssistantMessage(
            id=self.ids.message(),
            session_id=self.session.id,
            parent_id=parent_id,
            model_id=model.id if isinstance(model, Model) else model.model_id,
            provider_id=model.provider_id,
            mode=agent,
            agent=agent,
            path=MessagePath(cwd=str(place.directory), root=str(place.worktree)),
            cost=0.0,
            tokens=Tokens(),
            **rest,
        )

    def begin(self, message: AssistantMessage) -> Processor:
        """Store and publish an empty assistant message, and return the processor for its parts."""
        processor = Processor(message, sink=self.writer, new_id=self.ids.part, now=self.engine.now)
        self.newest = message.id, processor
        self.writer.change(PutMessage(message))
        self.writer.dirty = processor.dirty
        self.put(Turn(info=message, parts=()))  # its place among prompts that come meanwhile
        return processor

    def end(self, message: AssistantMessage, processor: Processor) -> Turn:
        """Store the complete assistant message and return its turn."""
        time = replace(message.time, completed=self.engine.now())
        turn = Turn(info=replace(message, time=time), parts=tuple(processor.parts.values()))
        self.writer.change(PutMessage(turn.info))
        self.writer.dirty = tuple
        self.put(turn)
        return turn

    def put(self, turn: Turn) -> None:
        """Add a turn to the history or replace it, unless its message was withdrawn."""
        if turn.info.id not in self.ids.withdrawn:
            self.history.put(turn)

    def say(self, status: SessionStatus) -> None:
        """Set the status of the session, and publish it for clients."""
        self.status = status
        self.engine.say_status(self.session.id, status)

    def charge(self, spent: Spent) -> None:
        """Add the cost of a request, which is stored with the session's next change."""
        self.owed = self.owed.plus(spent)

    def take_subagent(self, *, resumed: bool = False) -> None:
        """Check the nesting of a new subagent, and count it against the run's budget.

        A `resumed` subagent, which continues an existing session, is not counted again.

        :raises ToolError: when it would be nested too deeply, or exceeds the number of subagents.
        """
        if len(self.ancestors) + 1 > MAX_DEPTH:
            raise ToolError(f"subagents may be nested {MAX_DEPTH} deep at the most")
        if not resumed:
            self.budget.take_subagent()

    def touch(self, agent: Agent, model: Model) -> None:
        """Store the agent, the model and the time of the session's last use."""
        self.change(
            updated=self.engine.now(),
            agent=agent.name,
            model=SessionModel(id=model.id, provider_id=model.provider_id),
        )

    def settle(self) -> None:
        """Store the cost and the tokens of the session that are not stored yet."""
        if self.owed != Spent():
            self.change()

    def change(self, **fields: Any) -> None:  # noqa: ANN401 - the fields of a `ChangeSession`
        """Store fields of the session, with the cost and tokens that are not stored yet.

        The same transaction adds the cost to all ancestor sessions. Thus the caller of a subagent
        is charged however the caller ends.
        """
        owed = asdict(self.owed) if self.owed != Spent() else {}
        payers = self.ancestors if owed else ()
        self.writer.change(
            ChangeSession(session_id=self.session.id, **owed, **fields),
            *(ChangeSession(session_id=each, **owed) for each in payers),
        )
        self.owed = Spent()
