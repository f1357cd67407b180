"""One compaction: it calls the compactor, then stores or refuses the result."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from typing import Any

from msgspec.structs import replace

from pegboard.contract import apphooks, modelhooks
from pegboard.contract.context import SessionView
from pegboard.contract.host import Compaction, CompactionRequest
from pegboard.contract.tools import serving
from pegboard.engine.compaction.trigger import next_request, usable
from pegboard.engine.finish import failure_of
from pegboard.engine.history import COMPACTION, History, compaction_of, is_aside, is_compaction
from pegboard.engine.request import seen_by_model
from pegboard.engine.run import Run
from pegboard.engine.sidecall import plain_request, question_of
from pegboard.engine.step import Step
from pegboard.errors import ContextOverflowError, PegboardError, ProviderError
from pegboard.hooks.isolation import blaming
from pegboard.providers.spending import fixed_tokens, message_tokens
from pegboard.schema.config import Agent
from pegboard.schema.event import SessionCompacted, SessionFailed
from pegboard.schema.message import (
    AssistantMessage,
    ContextOverflowFailure,
    Failure,
    MessageTime,
    OverflowData,
    TextData,
    Turn,
    UnknownFailure,
    UserMessage,
)
from pegboard.schema.part import Part, TextPart
from pegboard.schema.session import Rule
from pegboard.storage.changes import PublishEvent, PutMessage, PutPart

LIMIT_S = 600.0
"""How long a compactor may take, its requests to the model included."""
SHRINK = 0.8
"""A compaction that leaves more than this share is refused: it would only be asked again."""
KEPT_SHARE = 0.4
KEPT_TOKENS = 20_000
OVERHEAD_TOKENS = 2_000
"""The rest of a summary's request: the agent's prompt and the question."""
PROMPT = """\
Write the summary from which this work will be continued by somebody who sees nothing else of \
the conversation. Say, each under a heading of its own: what the user asked for and every wish \
and limit that they stated; what has been done, with the files and names that matter; what was \
decided and why; what was tried and did not work; what is being done right now; what comes \
next. Be exact about names, paths, commands and figures. Leave out pleasantries. Answer with \
the summary alone."""
_FALLBACK = Agent(
    name="summaries",
    mode="primary",
    permission=(Rule(permission="*", pattern="*", action="deny"),),
    options={},
    hidden=True,
    native=True,
    prompt="You are an assistant for summarizing conversations.",
)


def summariser(agents: Mapping[str, Agent]) -> Agent:
    """Return the agent that writes summaries: a plugin's, or else a default agent."""
    return serving(agents.values(), "summaries") or _FALLBACK


async def compact(run: Run, user: UserMessage) -> None:
    """Run a compaction; a failure of the compactor is stored in the summary's `error`.

    :raises ModelNotFoundError: when no provider serves the model for summaries.
    """
    run.change(compacting=run.engine.now())
    try:
        await (await Compacting.begun(run, user)).run_to_its_end()
    except (PegboardError, asyncio.CancelledError) as error:
        answered = [getattr(turn.info, "parent_id", None) for turn in run.history.turns]
        if user.id not in answered:  # else the next prompt would request the same again
            _refuse(run, user, error)
        raise
    finally:
        run.change(compacting=None)


def _refuse(run: Run, user: UserMessage, error: BaseException) -> None:
    """Store an empty summary with the failure, so that the request counts as answered."""
    now, name = run.engine.now(), summariser(run.engine.agents).name
    info = run.new_answer(
        user.id,
        name,
        user.model,
        time=MessageTime(created=now, completed=now),
        error=failure_of(error),
        summary=True,
    )
    run.put(Turn(info=info, parts=()))
    run.writer.change(PutMessage(info))


@dataclass(slots=True)
class Compacting:
    """A running compaction: its input, and the id of the last message that it `made`.

    `before` are the turns to be shortened. `tokens` is their size by the provider's count and
    `estimated` by Pegboard's. `answering` are the ids of prompts that still wait for an answer.
    """

    run: Run
    request: Turn
    auto: bool
    before: tuple[Turn, ...]
    view: SessionView
    tokens: int
    estimated: int
    answering: tuple[str, ...]
    made: str | None = None

    @classmethod
    async def begun(cls, run: Run, user: UserMessage) -> "Compacting":
        """Start the compaction that the message `user` requests.

        :raises ModelNotFoundError: when no provider serves the model for summaries.
        """
        request = run.history.get(user.id)
        part = compaction_of(request)
        assert part is not None
        agent = summariser(run.engine.agents)
        choice = agent.model or user.model
        model = await run.engine.models.find(f"{choice.provider_id}/{choice.model_id}")
        before = run.history.view()
        return cls(
            run=run,
            request=request,
            auto=part.auto,
            before=before,
            view=replace(run.view(agent, model), purpose="summaries"),
            tokens=next_request(run.history, model, before),
            estimated=message_tokens(run.history.messages(model, before)),
            answering=(_answering(before) if part.auto else _prompts_after(run.history, user.id)),
        )

    async def run_to_its_end(self) -> None:
        """Call the plugin's compactor, and store its summary or its failure."""
        outcome: object
        try:
            async with asyncio.timeout(LIMIT_S):
                [outcome] = await asyncio.gather(self._compacted(), return_exceptions=True)
        except TimeoutError as error:
            outcome = error
        match outcome:
            case Compaction():
                await self._settle(outcome)
            case TimeoutError():
                await self._fail(_unknown(f"the summary took longer than {LIMIT_S:g} s"))
            case Exception():
                await self._fail(failure_of(outcome))
            case _:
                await self._fail(_unknown(f"the compactor answered with {outcome!r:.80}"))

    async def _compacted(self) -> Compaction:
        run, engine = self.run, self.run.engine
        answers = await engine.hooks.collect(apphooks.register_compactors)
        if not answers:
            raise ProviderError("no plugin registers a compactor; the built-in one is `compact`")
        prompt = await engine.hooks.fold(
            modelhooks.session_compacting, session=self.view, prompt=PROMPT
        )
        users = (turn for turn in run.history.turns if isinstance(turn.info, UserMessage))
        first_prompt = islice((turn for turn in users if not is_aside(turn)), 1)
        first = await seen_by_model(engine, self.view, tuple(first_prompt))
        turns = await seen_by_model(engine, self.view, self.view.turns)
        request = CompactionRequest(
            session=replace(self.view, turns=turns),
            first=first[0] if first else None,
            answering=self.answering,
            todos=await engine.storage.todos(run.session.id),
            prompt=prompt,
            room_tokens=self._room(),
            keep_tokens=min(KEPT_TOKENS, int(self.estimated * KEPT_SHARE)),
            auto=self.auto,
            ask=self._ask,
        )
        with blaming(answers[-1].plugin, "the compactor"):
            return await answers[-1].value.compact(request)

    def _room(self) -> int:
        """Return the number of tokens that a text in a request for a summary may have.

        If the model's window is unknown, the number depends on the estimated size of the history:
        half of it for an automatic compaction, else twice as much.
        """
        limit = usable(self.view.model)
        if limit is None:
            return max(self.estimated // 2 if self.auto else self.estimated * 2, OVERHEAD_TOKENS)
        return max(limit - OVERHEAD_TOKENS, limit // 2)

    async def _ask(self, text: str) -> str:
        assert isinstance(self.request.info, UserMessage)
        step = Step(self.run, self.view, self.request.info, summary=True)
        question = question_of(self.run.engine, self.view, text)
        request = partial(plain_request, self.run.engine, question=question)
        outcome = await step.play(request, may_overflow=True)
        if outcome == "overflow":
            raise ContextOverflowError("the text to be summarised is too long for the model")
        self.made = step.message.id
        turn = self.run.history.get(step.message.id)
        assert isinstance(turn.info, AssistantMessage)
        if turn.info.error is not None:
            raise ProviderError(turn.info.error.data.message)
        return _join_texts(turn)

    async def _settle(self, made: Compaction) -> None:
        """Store the summary if the history gets short enough with it; otherwise store a failure."""
        if not made.summary.strip():
            await self._fail(_unknown("there is no text in the summary"))
            return
        turn = self._with_summary(made.summary)
        known = {each.info.id for each in self.before if not is_compaction(each)}
        kept = [name for name in (*made.kept, *self.answering) if name in known]
        request = self._pinned(made.pinned)
        seen = (request, turn, *(each for each in self.before if each.info.id in kept))
        after = message_tokens(self.run.history.messages(self.view.model, seen))
        left = self._scaled(after)
        limit = usable(self.view.model)
        if self.auto and (left > self.tokens * SHRINK or (limit is not None and left > limit)):
            await self._fail(_too_little(self.tokens, left, limit))
            return
        note = {"before": self.tokens, "after": left, "kept": list(dict.fromkeys(kept))}
        assert isinstance(turn.info, AssistantMessage)
        self._put(turn, metadata={**(turn.info.metadata or {}), COMPACTION: note})
        self._store(request, self.request.parts)
        self.run.writer.change(PublishEvent(SessionCompacted(session_id=self.run.session.id)))
        await self.run.writer.barrier()

    def _scaled(self, estimated: int) -> int:
        """Scale an estimate of tokens by the ratio of the provider's count to our estimate."""
        sent = self.run.sent
        fixed = fixed_tokens(sent) if sent is not None else 0
        ratio = self.tokens / max(self.estimated + fixed, 1)
        return round((estimated + fixed) * max(ratio, 1.0))

    def _with_summary(self, summary: str) -> Turn:
        """Return the message that contains this summary.

        If the compactor's last answer from the model has exactly this text, that message is the
        summary. Otherwise a new message is stored.
        """
        if self.made is not None and _join_texts(self.run.history.get(self.made)) == summary:
            return self.run.history.get(self.made)
        info = replace(self._message(), finish="stop")
        turn = Turn(info=info, parts=self._texts(info.id, summary))
        self._store(turn)
        return turn

    def _pinned(self, texts: tuple[str, ...]) -> Turn:
        """Return the request for the summary, with the pinned texts added to its parts."""
        pinned = self._texts(self.request.info.id, *texts, synthetic=True)
        return replace(self.request, parts=(*self.request.parts, *pinned))

    def _texts(self, message: str, *texts: str, synthetic: bool = False) -> tuple[TextPart, ...]:
        ids = self.run.ids
        of: dict[str, Any] = {"session_id": self.run.session.id, "message_id": message}
        return tuple(
            TextPart(id=ids.part(), text=text, synthetic=synthetic, **of) for text in texts
        )

    async def _fail(self, failure: Failure) -> None:
        """Store a failure on the message that the compactor made last."""
        turn = Turn(info=self._message(), parts=())
        if self.made is not None:
            turn = self.run.history.get(self.made)
        assert isinstance(turn.info, AssistantMessage)
        if turn.info.error is None:
            self._put(turn, error=failure)
            session_id = self.run.session.id
            self.run.writer.change(
                PublishEvent(SessionFailed(session_id=session_id, error=failure))
            )
        await self.run.writer.barrier()

    def _put(self, turn: Turn, **changes: Any) -> None:  # noqa: ANN401 - fields of the message
        self._store(Turn(info=replace(turn.info, **changes), parts=turn.parts), turn.parts)

    def _store(self, turn: Turn, known: Sequence[Part] = ()) -> None:
        """Store a turn with its parts, except the `known` parts, which are stored already."""
        self.run.put(turn)
        new = (PutPart(part) for part in turn.parts if part not in known)
        self.run.writer.change(PutMessage(turn.info), *new)

    def _message(self) -> AssistantMessage:
        now = self.run.engine.now()
        time = MessageTime(created=now, completed=now)
        parent, view = self.request.info.id, self.view
        return self.run.new_answer(parent, view.agent.name, view.model, time=time, summary=True)


def _answering(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the ids of the newest prompt and the prompts directly before it."""
    found: list[str] = []
    for turn in reversed(turns):
        if isinstance(turn.info, UserMessage) and not is_aside(turn):
            found.append(turn.info.id)
        elif found:
            break
    return tuple(found)


def _prompts_after(history: History, message_id: str) -> tuple[str, ...]:
    newest_first = (turn.info.id for _, turn in history.users())
    return tuple(takewhile(lambda each: each != message_id, newest_first))[::-1]


def _join_texts(turn: Turn) -> str:
    return "\n\n".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.text)


def _unknown(message: str) -> Failure:
    return UnknownFailure(data=TextData(message=f"The session was not compacted: {message}."))


def _too_little(before: int, after: int, limit: int | None) -> Failure:
    window = f" of {limit:,}" if limit else ""
    text = (
        f"The conversation is too long for the model and could not be made short enough: about "
        f"{after:,}{window} tokens would be left of {before:,}. Start a new session, or choose a "
        f"model with a larger window."
    )
    return ContextOverflowFailure(data=OverflowData(message=text))
