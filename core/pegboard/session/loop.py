"""The agent on one screen: decide, ask the model, run the tools, repeat."""

from dataclasses import dataclass

from pegboard.agents import find_agent
from pegboard.context import SessionView
from pegboard.providers import ToolDefinition
from pegboard.schema.message import AssistantMessage, UserMessage
from pegboard.session.request import build_request, offered_tools
from pegboard.session.run import Run
from pegboard.session.step import Step

GOES_ON = frozenset({"tool-calls", "unknown"})
"""A step that ended for one of these reasons is followed by another."""


async def answer(run: Run) -> None:
    """Answer every prompt of the session, those that come meanwhile included."""
    turn: _Turn | None = None
    while (user := unanswered(run)) is not None:
        if turn is None or turn.user.id != user.id:
            turn = await _begin(run, user)
        await _step(run, turn)


def unanswered(run: Run) -> UserMessage | None:
    """The newest prompt, if its answer is not complete; order is the database's, not the ids'."""
    found = run.history.last_user()
    if found is None:
        return None
    place, user = found
    for turn in reversed(run.history.turns[place + 1 :]):
        info = turn.info
        if isinstance(info, AssistantMessage) and info.parent_id == user.id:
            ended = info.error is not None or run.blocked or info.finish not in GOES_ON
            return None if ended else user
    return user


@dataclass(slots=True)
class _Turn:
    """What stays the same from step to step of one prompt."""

    user: UserMessage
    view: SessionView
    tools: tuple[ToolDefinition, ...]
    steps: int = 0

    @property
    def last_step(self) -> bool:
        limit = self.view.agent.steps
        return limit is not None and self.steps >= limit


async def _begin(run: Run, user: UserMessage) -> _Turn:
    engine = run.engine
    agent = find_agent(engine.agents, user.agent)
    model = await engine.resolve_model(f"{user.model.provider_id}/{user.model.model_id}")
    run.blocked = False
    run.calls.clear()
    view = run.view(agent, model)
    return _Turn(user=user, view=view, tools=await offered_tools(engine, view, user))


async def _step(run: Run, turn: _Turn) -> None:
    turn.steps += 1
    turn.view = run.view(turn.view.agent, turn.view.model)
    step = Step(run, turn.view, turn.user)
    request = await build_request(
        run,
        turn.view,
        turn.user,
        tools=turn.tools,
        last_step=turn.last_step,
    )
    await step.play(request)
    run.blocked = run.blocked or turn.last_step
