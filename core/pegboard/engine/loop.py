"""The agent's loop on one screen: decide, ask the model, run the tools, repeat."""

from functools import partial

import msgspec
from msgspec.structs import replace

from pegboard.contract import modelhooks
from pegboard.contract.context import SessionView
from pegboard.engine.finish import StalledSteps, goes_on, was_interrupted
from pegboard.engine.history import compaction_of
from pegboard.engine.input.usermessage import queue_again, remind
from pegboard.engine.preloading import load_beside
from pegboard.engine.request import build_request, offered_tools
from pegboard.engine.run import Run
from pegboard.engine.step import Step
from pegboard.errors import InvalidInputError
from pegboard.policy.agents import find_agent
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.message import AssistantMessage, Turn, UserMessage

MOST_CONTINUED = 8
"""How often in a row plugins can have a turn go on."""


async def answer(run: Run) -> None:
    """Answer every prompt of the session, including prompts that arrive during the run."""
    turn: _LoopTurn | None = None
    if run.session.time.compacting is not None:
        run.change(compacting=None)  # that of a process that has died
    while (user := unanswered(run)) is not None:
        if compaction_of(run.history.get(user.id)) is not None:
            from pegboard.engine.compaction.summary import compact  # few sessions need it

            await compact(run, user)
            continue
        if turn is None or turn.user.id != user.id:
            turn = await _begin(run, user)
            continue  # a prompt that arrived meanwhile is already in the history: answer that one
        if (task := run.history.next_subtask(user.id)) is not None:
            from pegboard.engine.input.usercall import run_subtask  # few prompts have one

            await run_subtask(run, turn.view, user, task)
            continue
        if _shortened(run, turn):
            continue
        await _step(run, turn)
        turn = await _after_step(run, turn)
    if run.history.prompts > 1:
        from pegboard.engine.compaction.trigger import prune  # a first answer needs nothing of it

        prune(run)


def _shortened(run: Run, turn: "_LoopTurn") -> bool:
    """Request a compaction if the history is too long; return whether this was necessary."""
    if not run.compactable():
        return False
    from pegboard.engine.compaction.trigger import is_too_long, request_compaction

    if not is_too_long(run, turn.view.model):
        return False
    request_compaction(run, turn.user)
    return True


async def reopen(run: Run) -> None:
    """Make the run continue answers that were interrupted.

    :raises InvalidInputError: when the session has no prompt.
    """
    if not (turns := run.history.turns):
        raise InvalidInputError(f"session {run.session.id} has no prompt to answer; send one")
    run.reopened = frozenset(turn.info.id for turn in turns if was_interrupted(turn))


def unanswered(run: Run) -> UserMessage | None:
    """Return the newest prompt without a complete answer, or None.

    Prompts are ordered as stored, not by id. A request for a compaction counts as a prompt; if
    several unanswered requests follow each other, the first of them is returned. After a compaction
    that the engine requested during an answer, the answer's prompt is returned again. An answer
    that the run has reopened is not complete.
    """
    for place, turn in run.history.users():
        assert isinstance(turn.info, UserMessage)
        answer = _answer_to(run, place)
        if answer is None:
            return _earlier_request(run, place) or turn.info
        compaction = compaction_of(turn)
        if answer.info.id in run.reopened:
            return turn.info
        if compaction is None:
            return turn.info if goes_on(answer) and not run.blocked else None
        assert isinstance(answer.info, AssistantMessage)
        if not compaction.auto or answer.info.error is not None:
            return None
    return None


def _earlier_request(run: Run, place: int) -> UserMessage | None:
    """Return the first of the unanswered compaction requests just before index `place`, or None."""
    first = None
    for at in range(place - 1, -1, -1):
        turn = run.history.turns[at]
        if not isinstance(turn.info, UserMessage):
            break
        if compaction_of(turn) is not None and _answer_to(run, at) is None:
            first = turn.info
    return first


def _answer_to(run: Run, place: int) -> Turn | None:
    """Return the newest answer to the prompt at the index `place`, or None without an answer."""
    turns = run.history.turns
    for at in range(len(turns) - 1, place, -1):
        info = turns[at].info
        if isinstance(info, AssistantMessage) and info.parent_id == turns[place].info.id:
            return turns[at]
    return None


class _LoopTurn(msgspec.Struct):
    """The state of the loop for one prompt: its message, the session's view, tools and counters.

    `steps` counts requests to the model, `repairs` requested corrections of the final answer, and
    `continued` prompts of plugins that continued the turn.
    """

    user: UserMessage
    view: SessionView
    tools: tuple[ToolDefinition, ...]
    steps: int = 0
    repairs: int = 0
    continued: int = 0

    @property
    def last_step(self) -> bool:
        limit = self.view.agent.steps
        return limit is not None and self.steps >= limit


async def _begin(run: Run, user: UserMessage) -> _LoopTurn:
    engine = run.engine
    agent = find_agent(engine.agents, user.agent)
    parts = run.history.get(user.id).parts  # before it can be withdrawn
    run.chosen = await engine.models.find(f"{user.model.provider_id}/{user.model.model_id}")
    model = await engine.models.seeing(parts, run.chosen)
    remind(run)
    run.blocked = False
    run.calls.clear()
    run.progress = StalledSteps()
    view = run.view(agent, model)
    tools = await offered_tools(engine.hooks, engine.tools, view, user.tools or {})
    return _LoopTurn(user=user, view=view, tools=tools)


async def _after_step(run: Run, turn: _LoopTurn) -> _LoopTurn:
    """Request a repair of the final answer, or its continuation by a plugin, if needed."""
    user, again = turn.user, None
    if user.format is not None:
        from pegboard.engine.output import settle  # few prompts ask for a form

        again = await settle(run, user, repairs=None if turn.last_step else turn.repairs)
        turn.repairs += again is not None
    if unanswered(run) is None and (text := await _text_to_go_on(run, turn)):
        again = await queue_again(run, user, text, output=run.engine.expected.get(user.id))
        turn.continued += 1
    if again is None:
        return turn
    begun = await _begin(run, again)
    return replace(turn, user=begun.user, view=begun.view, tools=begun.tools)


async def _text_to_go_on(run: Run, turn: _LoopTurn) -> str | None:
    """Return a plugin's prompt that continues the turn, or None if the turn ends."""
    last = run.last_answer()
    if last is None or run.blocked or turn.continued == MOST_CONTINUED:
        return None
    assert isinstance(last.info, AssistantMessage)
    if last.info.error is not None:
        return None
    view = run.view(turn.view.agent, turn.view.model)
    return await run.engine.hooks.first(modelhooks.turn_end, session=view, answer=last)


async def _step(run: Run, turn: _LoopTurn) -> None:
    turn.steps += 1
    turn.view = run.view(turn.view.agent, turn.view.model)

    async def request(view: SessionView) -> ModelRequest:
        turn.view = view  # another model's, where the one before could not answer
        run.sent = await build_request(
            run, view, turn.user, tools=turn.tools, last_step=turn.last_step
        )
        run.loss = await run.engine.prefixes.loss(run.engine.hooks, view, run.sent)
        return run.sent

    playing = Step(run, turn.view, turn.user).play(request, may_overflow=run.compactable())
    if turn.steps == 1:
        engine = run.engine
        offered = [engine.tools[each.name] for each in turn.tools]
        opening = (partial(engine.open_processes, engine.config.limits), engine.open_files)
        playing = load_beside(playing, offered, opening)
    outcome = await playing
    if outcome == "overflow":
        from pegboard.engine.compaction.trigger import request_compaction

        turn.steps -= 1
        request_compaction(run, turn.user)
        return
    run.blocked = run.blocked or turn.last_step
