"""The trigger of compactions: when one is needed, and the message that requests it.

A compaction is a user message with a compaction part, and the summary as its answer. The model's
view then begins there; everything before stays in the database.
"""

import asyncio

from pegboard.contract import hookspecs
from pegboard.contract.changes import PutMessage, PutPart
from pegboard.engine.compaction.window import next_request, usable
from pegboard.engine.ending.failures import failure_of
from pegboard.engine.engine import Engine
from pegboard.engine.input.usermessage import model_for
from pegboard.engine.run import Run
from pegboard.engine.session.sessions import SessionIds
from pegboard.errors import PegboardError
from pegboard.policy.agents import default_agent
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime, Turn, UserMessage
from pegboard.schema.model import Model
from pegboard.schema.part import CompactionPart, ModelChoice
from pegboard.schema.session import Session, Tokens


def is_needed(run: Run, model: Model) -> bool:
    """Whether the session has to be compacted before the next request."""
    limit = usable(model)
    if limit is None or not is_possible(run):
        return False
    return next_request(run.history, model, run.history.view()) > limit


def is_possible(run: Run) -> bool:
    """Whether the engine may compact by itself: never twice without an answer in between."""
    engine = run.engine
    if not engine.config.compaction.auto or not engine.hooks.has(hookspecs.register_compactors):
        return False
    for turn in reversed(run.history.turns):
        match turn.info:
            case AssistantMessage(summary=True):
                return False
            case AssistantMessage(finish=finish) if finish is not None:
                return True
    return False


def request_compaction(run: Run, user: UserMessage) -> None:
    """Request a compaction in the middle of the answer to `user`."""
    turn = _requested(run.engine.now(), run.ids, user.agent, user.model, user.session_id, auto=True)
    run.put(turn)
    run.writer.change(PutMessage(turn.info), *(PutPart(part) for part in turn.parts))


def requested_by_user(engine: Engine, session: Session, ids: SessionIds, model: str | None) -> Turn:
    """The user message that requests a compaction; the caller stores it."""
    agent = session.agent or default_agent(engine.config, engine.agents).name
    return _requested(
        engine.now(), ids, agent, model_for(engine, session, model, agent), session.id, auto=False
    )


def _requested(  # noqa: PLR0913 - the fields of the message
    now: int,
    ids: SessionIds,
    agent: str,
    model: ModelChoice,
    session_id: str,
    *,
    auto: bool,
) -> Turn:
    info = UserMessage(
        id=ids.message(),
        session_id=session_id,
        time=MessageTime(created=now),
        agent=agent,
        model=model,
    )
    part = CompactionPart(id=ids.part(), session_id=session_id, message_id=info.id, auto=auto)
    return Turn(info=info, parts=(part,))


async def compact(run: Run, user: UserMessage) -> None:
    """Answer a request for a compaction; a failure is in the summary's `error`.

    :raises ModelNotFoundError: when no provider serves the model for summaries.
    """
    from pegboard.engine.compaction.summary import Compacting  # only a long session needs it

    _mark(run, since=run.engine.now())
    try:
        await (await Compacting.begun(run, user)).run_to_its_end()
    except (PegboardError, asyncio.CancelledError) as error:
        if not _is_answered(run, user):  # else the next prompt would request the same again
            _refuse(run, user, error)
        raise
    finally:
        _mark(run, since=None)


def _is_answered(run: Run, user: UserMessage) -> bool:
    return any(getattr(turn.info, "parent_id", None) == user.id for turn in run.history.turns)


def _refuse(run: Run, user: UserMessage, error: BaseException) -> None:
    """Store an empty summary with the failure."""
    from pegboard.engine.compaction.summary import summariser

    now, name = run.engine.now(), summariser(run.engine.agents).name
    workspace = run.engine.workspace
    info = AssistantMessage(
        id=run.ids.message(),
        session_id=user.session_id,
        parent_id=user.id,
        model_id=user.model.model_id,
        provider_id=user.model.provider_id,
        mode=name,
        agent=name,
        path=MessagePath(cwd=str(workspace.directory), root=str(workspace.worktree)),
        cost=0.0,
        tokens=Tokens(),
        time=MessageTime(created=now, completed=now),
        error=failure_of(error),
        summary=True,
    )
    run.put(Turn(info=info, parts=()))
    run.writer.change(PutMessage(info))


def unmark(run: Run) -> None:
    """Undo the unfinished compaction of a process that has died."""
    if run.session.time.compacting is not None:
        _mark(run, since=None)


def _mark(run: Run, *, since: int | None) -> None:
    run.change(compacting=since)
