"""A question to a model beside a conversation, which is no part of it and is paid by it."""

from contextlib import suppress

from pegboard.contract.changes import ChangeSession
from pegboard.contract.host import SideQuestion
from pegboard.contract.providers import StreamEvent, StreamFinish, TextDelta, ToolCall
from pegboard.engine.engine import Engine
from pegboard.engine.input.usermessage import model_for
from pegboard.engine.request import plain_request
from pegboard.engine.session.views import make_view
from pegboard.engine.spending.accounts import open_budget
from pegboard.engine.spending.budget import Budget
from pegboard.engine.spending.usage import cost_of, tokens_of
from pegboard.engine.stream import run_step
from pegboard.errors import NotFoundError
from pegboard.kit.cancellation import shielded
from pegboard.schema.model import Model


class SideCall:
    """A question for a session, and its answer as far as it has come."""

    def __init__(self, engine: Engine, session_id: str, question: SideQuestion) -> None:
        self._engine = engine
        self._session_id = session_id
        self._question = question
        self._pieces: list[str] = []
        self._finish: StreamFinish | None = None

    async def answer(self, budget: Budget | None) -> str:
        """The answer; `budget` is that of the session's run, None while it rests."""
        engine, agent = self._engine, self._question.agent
        session = await engine.storage.session(self._session_id)
        choice = agent.model or model_for(engine, session, None, agent.name)
        model = await engine.models.find(f"{choice.provider_id}/{choice.model_id}")
        view = make_view(engine, session, agent, model)
        request = await plain_request(engine.hooks, view, self._question.text)
        budget = budget or await open_budget(engine.storage, engine.config.budget, session, None)
        try:
            await run_step(
                await budget.answer(engine.providers[model.provider_id], request),
                on_event=self._take,
                run_tool=_not_run,
                idle_timeout_s=request.idle_timeout_s,
            )
        finally:
            if self._finish is not None:  # it is paid for, whatever comes now
                await shielded(self._charge(model, self._finish))
        return "".join(self._pieces)

    def _take(self, event: StreamEvent) -> None:
        if isinstance(event, TextDelta):
            self._pieces.append(event.text)
        elif isinstance(event, StreamFinish):
            self._finish = event
        if self._question.on_event is not None:
            self._question.on_event(event)

    async def _charge(self, model: Model, finish: StreamFinish) -> None:
        tokens = tokens_of(finish.usage)
        cost = cost_of(tokens, model.cost) or 0.0
        with suppress(NotFoundError):  # the session was deleted meanwhile
            await self._engine.storage.commit(
                ChangeSession(session_id=self._session_id, cost=cost, tokens=tokens)
            )


async def _not_run(_: ToolCall) -> None:
    """No tool is offered, so a call means nothing."""
