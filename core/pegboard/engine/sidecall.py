"""A question to a model outside the conversation, charged to the conversation's session."""

from contextlib import suppress

from msgspec.structs import asdict, replace

from pegboard.contract import modelhooks
from pegboard.contract.context import SessionView
from pegboard.contract.host import ModelQuestion
from pegboard.contract.results import Activity
from pegboard.engine.engine import Engine
from pegboard.engine.history import History
from pegboard.engine.input.usermessage import model_for
from pegboard.engine.request import bare_request, seen_by_model
from pegboard.engine.sessions import ancestors_of, make_view
from pegboard.engine.stream import run_step
from pegboard.errors import NotFoundError
from pegboard.kit.threads import shield
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta, ToolCall
from pegboard.providers.spending import Budget, spent_on
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.part import ModelChoice, TextPart
from pegboard.storage.changes import ChangeSession


class SideCall:
    """A question to a model outside of the conversation, and the model's answer so far."""

    def __init__(self, engine: Engine, session_id: str, question: ModelQuestion) -> None:
        self._engine = engine
        self._session_id = session_id
        self._question = question
        self._pieces: list[str] = []
        self._finish: StreamFinish | None = None
        self._payers: tuple[str, ...] = ()

    async def answer(self, budget: Budget | None) -> str:
        """Ask the model and return its answer; `budget` is that of the session's run, if any."""
        engine, agent = self._engine, self._question.agent
        session = await engine.storage.session(self._session_id)
        choice = agent.model or model_for(engine, session, None, agent.name)
        model = await engine.models.find(f"{choice.provider_id}/{choice.model_id}")
        view = make_view(engine, session, agent, model)
        question = question_of(engine, view, self._question.text)
        ancestors = await ancestors_of(engine.storage, session)
        self._payers = (session.id, *(each.id for each in ancestors))
        view = replace(view, turns=(question,), purpose=agent.serves or "aside")
        request = await plain_request(engine, view, question)
        budget = budget or await engine.budget(session, None)
        answer = ""
        asking = Activity("model", session.id, question.info.id, model.id, request)
        try:
            async with engine.hooks.around(asking):
                await run_step(
                    await budget.answer(engine.providers[model.provider_id], request),
                    on_event=self._take,
                    run_tool=_not_run,
                    idle_timeout_s=request.idle_timeout_s,
                )
                asking.outcome = self._finish
        finally:
            if self._pieces or self._finish:  # it is paid for, whatever comes now
                await shield(self._charge(request))
            if self._finish:
                answer = await shield(self._end(view))
        return answer

    def _take(self, event: StreamEvent) -> None:
        if isinstance(event, TextDelta):
            self._pieces.append(event.text)
        elif isinstance(event, StreamFinish):
            self._finish = event

    async def _end(self, view: SessionView) -> str:
        """Pass the answer through the plugins' hooks and then to `on_answer`, and return it."""
        [question] = view.turns
        said = "".join(self._pieces)
        part = TextPart(
            id=self._engine.ids.new("part"),
            session_id=view.id,
            message_id=question.info.id,
            text=said,
        )
        answer = await self._engine.hooks.fold(
            modelhooks.text_complete, session=view, part=part, text=said
        )
        if self._question.on_answer is not None:
            await self._question.on_answer(answer)
        return answer

    async def _charge(self, request: ModelRequest) -> None:
        usage = self._finish.usage if self._finish else None
        spent = asdict(spent_on(request, usage, sum(map(len, self._pieces))))
        with suppress(NotFoundError):  # the session was deleted meanwhile
            await self._engine.storage.commit(
                *(ChangeSession(session_id=each, **spent) for each in self._payers)
            )


async def _not_run(_: ToolCall) -> None:
    """Ignore a tool call of the model, because no tool was offered."""


async def plain_request(engine: Engine, view: SessionView, question: Turn) -> ModelRequest:
    """Build a request outside of the conversation: the agent's prompt and one text, no tools."""
    turns = await seen_by_model(engine, view, (question,))
    request = await bare_request(engine, view, History(()).messages(view.model, turns))
    return await engine.hooks.fold(modelhooks.chat_params, session=view, request=request)


def question_of(engine: Engine, view: SessionView, text: str) -> Turn:
    """Return a question to a model as a prompt that is not stored, for plugins' hooks."""
    info = UserMessage(
        id=engine.ids.new("message"),
        session_id=view.id,
        time=MessageTime(created=engine.now()),
        agent=view.agent.name,
        model=ModelChoice(provider_id=view.model.provider_id, model_id=view.model.id),
    )
    part = TextPart(id=engine.ids.new("part"), session_id=view.id, message_id=info.id, text=text)
    return Turn(info=info, parts=(part,))
