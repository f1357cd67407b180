"""One step: a request to the model and the tool calls of its answer, stored as one message."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from pegboard.contract import modelhooks
from pegboard.contract.context import SessionView
from pegboard.contract.results import Activity
from pegboard.engine.engine import BUDGET_KEY
from pegboard.engine.finish import (
    CUT_OFF,
    GOES_ON,
    MAY_BE_EMPTY,
    PROMISED,
    TOO_LONG,
    EmptyAnswerError,
    answers_to,
    ending,
    failure_of,
)
from pegboard.engine.prefix import PREFIX_LOSS
from pegboard.engine.run import Run
from pegboard.engine.stream import run_step, within_bounds
from pegboard.engine.toolcall import STOPPED, Caller
from pegboard.errors import (
    BudgetError,
    ContextOverflowError,
    PegboardError,
    ProviderError,
    RequiredHookError,
)
from pegboard.kit.threads import shield
from pegboard.providers import (
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    ToolInputDelta,
    ToolInputStart,
)
from pegboard.providers.spending import Spent, can_be_shortened, sizes_of, spent_on
from pegboard.schema.event import SessionFailed, SessionWarned
from pegboard.schema.message import APIFailure, Failure, UserMessage
from pegboard.schema.part import Instant, RetryPart, StepFinishPart, StepStartPart
from pegboard.schema.session import Busy, Retry, Tokens
from pegboard.schema.wire import to_json
from pegboard.storage.changes import DropMessage, DropPart, PublishEvent, PutMessage, PutState

if TYPE_CHECKING:
    from pegboard.engine.retry import RetryAttempts

MakeRequest = Callable[[SessionView], Awaitable[ModelRequest]]
Outcome = Literal["ended", "overflow"]
"""`overflow`: the request was too long for the model; nothing of the step is left."""


class Step:
    """A step of a turn, with its message; the constructor stores and publishes the empty message.

    With `summary` the model writes a summary of the session, instead of an answer to a prompt.
    """

    def __init__(
        self, run: Run, view: SessionView, user: UserMessage, *, summary: bool = False
    ) -> None:
        self._run = run
        self._view = view
        self._said = False
        self._shown = False
        self._heard: StreamFinish | None = None
        self._written = 0
        self._spent = Spent()
        self._tokens = Tokens()
        self.message = run.new_answer(
            user.id, view.agent.name, view.model, variant=user.variant, summary=summary
        )
        self._processor = run.begin(self.message)
        self._processor.put(
            StepStartPart(
                id=run.ids.part(),
                session_id=run.session.id,
                message_id=self.message.id,
                snapshot=run.trail.snapshot_of(user.id),
            )
        )

    async def play(self, request: MakeRequest, *, may_overflow: bool = False) -> Outcome:
        """Send the request that `request` builds, run the answer's calls and store the outcome.

        With `may_overflow`, a request that is too long for the model leaves no message, and
        "overflow" is returned. The caller then shortens the history. Without it, the step fails.
        """
        try:
            self._run.trail.begin(self.message, self._processor)
            for warning in self._run.budget.take_step():
                self._warn(warning)
            async with self._run.budget.in_time():
                return await self._ask(request, may_overflow=may_overflow)
        except BudgetError as error:
            await shield(self._end(failure_of(error), STOPPED))
            return "ended"
        except BaseException as error:  # after an abort or an error of a plugin, too
            await shield(self._end(failure_of(error), STOPPED))
            if isinstance(error, PegboardError):
                error.told = True
            raise

    def _warn(self, text: str) -> None:
        session_id = self.message.session_id
        self._run.writer.change(PublishEvent(SessionWarned(session_id=session_id, message=text)))

    async def _ask(self, make: MakeRequest, *, may_overflow: bool) -> Outcome:
        """Ask the model, then each fallback model at most once."""
        model = self._view.model
        tried = {f"{model.provider_id}/{model.id}"}
        while True:
            outcome = await self._ask_one(await make(self._view), tried, may_overflow=may_overflow)
            if outcome is not None:
                return outcome

    async def _ask_one(
        self, request: ModelRequest, tried: set[str], *, may_overflow: bool
    ) -> Outcome | None:
        """Ask one model, with retries; return None if another model must be asked instead.

        There is no retry within the step after a call, because no tool may run twice. The next step
        then counts as the retry.
        """
        attempts: RetryAttempts | None = None
        offered = {tool.name: tool for tool in (*request.tools, *request.deferred)}
        caller = Caller(self._run, self._view, self._processor, offered=offered)
        while (error := await self._attempt(request, caller)) is not None:
            attempts = attempts or self._attempts()
            decision = attempts.failed(error)
            if isinstance(error, ContextOverflowError):
                if may_overflow and can_be_shortened(request) and not caller.started:
                    return self._overflowed()
                decision = replace(decision, note=sizes_of(request))
            seen = self._shown or caller.started
            if not seen and await self._fall_back(error, tried, hopeless=decision.hopeless):
                return None
            if decision.wait_s is None:
                await self._end(failure_of(error, decision.note), CUT_OFF)
                break
            if not caller.started:
                await self._take_back()
            await self._wait(error, attempts.made, decision.wait_s)
            if caller.started:
                self._run.progress.cuts = attempts.made
                await self._finish(StreamFinish("error"), caller)
                break
        return "ended"

    def _attempts(self) -> "RetryAttempts":
        from pegboard.engine.retry import RetryAttempts  # nothing of it where nothing fails

        return RetryAttempts(self._run.engine.config, made=self._run.progress.cuts)

    async def _fall_back(self, error: ProviderError, tried: set[str], *, hopeless: bool) -> bool:
        """Prepare another attempt after a failure; return whether another attempt follows.

        If the provider refused tools or the schema of the answer, the next request does not have
        them. Otherwise, if the model is `hopeless` (it cannot answer soon), a fallback model is
        asked.
        """
        from pegboard.engine.retry import leave_out, next_model

        run, before = self._run, self._view.model
        if warning := leave_out(run.engine, error, run.sent):
            self._warn(warning)
            return True
        if not hopeless:
            return False
        model = await next_model(run.engine.config, run.engine.models, before, tried)
        if model is None:
            return False
        self._warn(
            f"{before.provider_id}/{before.id} does not answer ({error}): "
            f"{model.provider_id}/{model.id} is asked instead"
        )
        await self._take_back()
        taken = self._view.turns  # what came since is for the next step
        view = run.view(self._view.agent, model)
        self._view = replace(view, turns=taken, purpose=self._view.purpose)
        self.message = replace(self.message, model_id=model.id, provider_id=model.provider_id)
        run.writer.change(PutMessage(self.message))
        return True

    async def _attempt(self, request: ModelRequest, caller: Caller) -> ProviderError | None:
        """Ask the model once; return the failure, or None if the answer arrived completely."""
        self._said, self._shown, self._heard, self._written = False, False, None, 0
        model = request.model
        if self._run.stored is not None:  # what the request contains outlives a kill
            await self._run.writer.passed(self._run.stored)
        self._asking = Activity("model", self._view.id, self.message.id, model.id, request)
        try:
            async with self._run.engine.hooks.around(self._asking):
                with self._blaming(request):
                    provider = self._run.engine.providers[model.provider_id]
                    answer = await self._run.budget.answer(provider, request)
                finish = await run_step(
                    within_bounds(answer, caller.refuse, self._blaming(request)),
                    on_event=self._take,
                    run_tool=caller,
                    idle_timeout_s=request.idle_timeout_s,
                )
        except ProviderError as error:
            return error
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            self._pay(request)
        if finish.reason == "error":
            text = finish.note or "the provider ended the answer with an error"
            return ProviderError(f"{provider.id}: {text}", provider_id=provider.id, retryable=True)
        if finish.reason in MAY_BE_EMPTY and not (self._said or self._processor.calls()):
            return EmptyAnswerError("the model's answer was empty", retryable=True)
        if not self.message.summary:
            self._run.progress.cuts = 0
        await self._finish(finish, caller)
        return None

    def _blaming(self, request: ModelRequest) -> AbstractContextManager[None]:
        """Return a context manager in which errors of the provider's code are reported to the user.

        An OSError is not reported: it is a failure of the connection.
        """
        engine, name = self._run.engine, request.model.provider_id
        what = f"the provider {name}"
        return engine.hooks.blaming(engine.providers[name], what, passing=(OSError,))

    async def _take_back(self) -> None:
        """Remove the message parts of a failed attempt."""
        run, message = self._run, self.message
        await run.writer.barrier()  # else a delta would be published behind its part's removal
        gone = self._processor.drop()
        run.writer.change(*(DropPart(message.session_id, message.id, part_id) for part_id in gone))

    async def _wait(self, error: ProviderError, attempt: int, wait_s: float) -> None:
        """Store the failed attempt as a part of the message, and wait before the next attempt."""
        run, message = self._run, self.message
        failure = failure_of(error)
        now = run.engine.now()
        if isinstance(failure, APIFailure):
            self._processor.put(
                RetryPart(
                    id=run.ids.part(),
                    session_id=message.session_id,
                    message_id=message.id,
                    attempt=attempt,
                    error=to_json(failure),
                    time=Instant(created=now),
                )
            )
        await run.writer.barrier()
        run.say(Retry(attempt=attempt, message=str(error), next=now + round(wait_s * 1000)))
        await asyncio.sleep(wait_s)
        run.say(Busy())

    def _overflowed(self) -> Outcome:
        run, message = self._run, self.message
        self._processor.close(CUT_OFF)
        run.writer.dirty = tuple
        run.writer.change(DropMessage(message.session_id, message.id))
        run.history.drop(message.id)
        return "overflow"

    def _take(self, event: StreamEvent) -> Awaitable[None] | None:
        if isinstance(event, TextEnd):
            return self._text_end(event)
        self._shown = self._shown or isinstance(event, TextDelta | ReasoningDelta | ToolInputStart)
        if isinstance(event, TextDelta | ReasoningDelta | ToolInputDelta):
            self._written += len(event.text)
            self._asking.chunks_ns.append(time.time_ns())
        if isinstance(event, TextDelta):
            self._said = self._said or not event.text.isspace()
        elif isinstance(event, StreamFinish):
            self._heard = self._asking.outcome = event
            self._asking.last_ns = time.time_ns()
        self._processor.take(event)
        return None

    async def _text_end(self, event: TextEnd) -> None:
        part = self._processor.text(event.id)
        if part is None:
            return
        try:
            text = await self._run.engine.hooks.fold(
                modelhooks.text_complete, session=self._view, part=part, text=part.text
            )
        except RequiredHookError:
            self._processor.text_end(event.id, "", event.metadata)  # nobody has filtered it
            raise
        self._processor.text_end(event.id, text, event.metadata)

    async def _finish(self, finish: StreamFinish, caller: Caller) -> None:
        for block_id in self._processor.open_texts():  # which the provider left open
            await self._text_end(TextEnd(block_id))
        answers = answers_to(self._run.history.turns, self.message.parent_id)
        reason, failure = ending(finish, self._processor.calls(), answers)
        self._processor.close(TOO_LONG if finish.reason == "length" else CUT_OFF)
        calls = self._processor.calls()
        promised = PROMISED if finish.reason == "tool-calls" and not calls else ""
        lost = self._run.loss.warning if self._run.loss else ""
        for warning in filter(None, (finish.note or promised, lost)):
            self._warn(warning)
        if failure is None and not self._run.blocked:
            failure = self._run.progress.stalled(
                calls,
                made=bool(caller.made),
                denied=caller.denied,
                refusing=self._run.engine.called("refused_calls"),
            )
        self._processor.put(
            StepFinishPart(
                id=self._run.ids.part(),
                session_id=self.message.session_id,
                message_id=self.message.id,
                reason=reason,
                cost=self._spent.total_cost,
                tokens=self._tokens,
                snapshot=self._run.trail.snapshot_of(self.message.parent_id),
            )
        )
        metadata = finish.metadata
        if (loss := self._run.loss) is not None:
            metadata = {**(metadata or {}), PREFIX_LOSS: to_json(loss)}
        await self._store(failure, finish=reason, metadata=metadata)

    def _pay(self, request: ModelRequest) -> None:
        """Charge an attempt to the message and the session, if any of the answer has arrived."""
        if self._heard or self._shown:
            spent = spent_on(request, self._heard.usage if self._heard else None, self._written)
            self._spent, self._tokens = self._spent.plus(spent), spent.tokens
            self._run.charge(spent)

    async def _end(self, failure: Failure, reason: str) -> None:
        while texts := self._processor.open_texts():
            with suppress(RequiredHookError):  # the text is left out, and the step ends anyway
                await self._text_end(TextEnd(texts[0]))
        self._processor.close(reason)
        await self._store(failure)

    async def _store(
        self,
        failure: Failure | None,
        **fields: Any,  # noqa: ANN401 - of the message
    ) -> None:
        run, message = self._run, self.message
        if failure is not None:
            run.writer.change(
                PublishEvent(SessionFailed(session_id=message.session_id, error=failure))
            )
        paid = {"cost": self._spent.total_cost, "tokens": self._tokens}
        run.end(replace(message, error=failure, **paid, **fields), self._processor)
        if counts := run.budget.counts():
            run.writer.change(PutState(run.session.id, BUDGET_KEY, counts))
        if message.summary:
            run.settle()  # the agent and the model of a summary are not the session's
        else:
            run.touch(self._view.agent, run.chosen or self._view.model)
        if failure is None and fields.get("finish") == GOES_ON:
            run.stored = run.writer.mark()
            await asyncio.sleep(0)  # it is written while the next step builds its request
        else:
            await run.writer.barrier()
