"""Titles that a model writes, beside the work and never in its way."""

import asyncio
import re
from contextlib import suppress
from itertools import islice

from msgspec import UNSET

from pegboard.contract.changes import ChangeSession
from pegboard.contract.context import SessionView
from pegboard.contract.providers import StreamEvent, StreamFinish, TextDelta, ToolCall
from pegboard.engine.history import is_compaction
from pegboard.engine.parts import Engine
from pegboard.engine.request import plain_request
from pegboard.engine.run import Run, make_view
from pegboard.engine.session.sessions import is_untitled, title_from
from pegboard.engine.spending.budget import Budget
from pegboard.engine.spending.usage import cost_of, tokens_of
from pegboard.engine.stream import run_step
from pegboard.errors import NotFoundError, PegboardError
from pegboard.kit.cancellation import shielded
from pegboard.policy.agents import agent_for
from pegboard.schema.agent import Agent
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.model import Model
from pegboard.schema.part import SubtaskPart, TextPart
from pegboard.schema.session import Session

LIMIT_S = 60.0
LENGTH = 100
"""A longer title is cut (opencode `session/prompt.ts`)."""
PROMPT_CHARS = 4_000
"""How much of the prompt a title is made from."""
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


class Titles:
    """The titles that are being written for the sessions of one App; it owns their tasks.

    A session is tried once.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, run: Run) -> None:
        """Have a title written, if the session still has the one that was made of its prompt."""
        session_id = run.session.id
        if session_id in self._tasks:
            return
        prompt = _prompt(run)
        if prompt is None or not is_wanted(run.engine):
            return
        task = asyncio.create_task(
            self._write(run.engine, run.session, run.budget, *prompt), name=f"title {session_id}"
        )
        self._tasks[session_id] = task

    async def aclose(self) -> None:
        """Stop what is being written; nobody waits for a title."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _write(
        self, engine: Engine, session: Session, budget: Budget, user: UserMessage, text: str
    ) -> None:
        agent = agent_for(engine.agents, "titles")
        assert agent is not None
        answer = _Answer()
        with suppress(PegboardError, TimeoutError):  # the session keeps the title that it has
            async with asyncio.timeout(LIMIT_S):
                model = await _model(engine, agent, user)
                view = make_view(engine, session, agent, model)
                try:
                    await _ask(engine, view, budget, text, answer)
                finally:
                    if answer.finish is not None:  # it is paid for, whatever comes now
                        await shielded(_store(engine, session, model, answer))


def is_wanted(engine: Engine) -> bool:
    """Whether the configuration names a model for titles, and there is an agent for them."""
    agent = agent_for(engine.agents, "titles")
    match engine.config.title:
        case "off":
            return False
        case "small":
            named = engine.config.small_model is not None
            return agent is not None and (named or agent.model is not None)
        case "model":
            return agent is not None


async def _model(engine: Engine, agent: Agent, user: UserMessage) -> Model:
    choice = agent.model or user.model
    name = f"{choice.provider_id}/{choice.model_id}"
    small = engine.config.small_model
    return await engine.resolve_model(small if small and agent.model is None else name)


def _prompt(run: Run) -> tuple[UserMessage, str] | None:
    """The one prompt of a session that is titled by it, None for any other session."""
    prompts = (turn for _, turn in run.history.users() if not is_compaction(turn))
    turns = list(islice(prompts, 2))
    if run.session.parent_id is not None or len(turns) != 1:
        return None
    [turn] = turns
    text = "\n".join(_texts(turn))
    if not text or not (is_untitled(run.session) or run.session.title == title_from(text)):
        return None
    assert isinstance(turn.info, UserMessage)
    return turn.info, text[:PROMPT_CHARS]


def _texts(turn: Turn) -> list[str]:
    typed = [part.text for part in turn.parts if isinstance(part, TextPart) and not part.synthetic]
    return typed or [part.prompt for part in turn.parts if isinstance(part, SubtaskPart)]


async def _ask(
    engine: Engine, view: SessionView, budget: Budget, text: str, answer: "_Answer"
) -> None:
    """Have the model answer, which is not part of the conversation."""
    request = await plain_request(engine, view, f"Write a title for what begins with:\n\n{text}")
    await run_step(
        await budget.answer(engine.providers[view.model.provider_id], request),
        on_event=answer.take,
        run_tool=_not_run,
        idle_timeout_s=request.idle_timeout_s,
    )


class _Answer:
    """What the model has said so far, and its end once it was heard."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.finish: StreamFinish | None = None

    def take(self, event: StreamEvent) -> None:
        """Hear an event of the answer."""
        if isinstance(event, TextDelta):
            self._pieces.append(event.text)
        elif isinstance(event, StreamFinish):
            self.finish = event

    @property
    def text(self) -> str:
        """All that was said."""
        return "".join(self._pieces)


async def _store(engine: Engine, session: Session, model: Model, answer: _Answer) -> None:
    """Give the session its title, and count what it has cost."""
    assert answer.finish is not None
    tokens = tokens_of(answer.finish.usage)
    change = ChangeSession(
        session_id=session.id,
        title=cleaned(answer.text) or UNSET,
        title_was=session.title,
        cost=cost_of(tokens, model.cost),
        tokens=tokens,
    )
    with suppress(NotFoundError):  # the session was deleted meanwhile
        await engine.storage.commit(change)


async def _not_run(_: ToolCall) -> None:
    """No tool is offered, so a call means nothing."""


def cleaned(said: str) -> str:
    """The first line of an answer that has text, without thoughts, quotes and a full stop."""
    lines = (line.strip(" \t#*\"'`") for line in _THOUGHT.sub("", said).splitlines())
    line = next((line for line in lines if line), "").removesuffix(".")
    return line if len(line) <= LENGTH else line[: LENGTH - 3] + "..."
