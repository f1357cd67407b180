"""The trigger of compactions: it detects a history that is too long, and requests its compaction.

A compaction is a user message with a compaction part, answered by the summary. The model then sees
only the turns from there on; earlier turns stay in the database. Old tool output is cleared without
a compaction.
"""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from pegboard.engine.engine import Engine
from pegboard.engine.history import History, kept_ids
from pegboard.engine.input.usermessage import model_for
from pegboard.engine.request import MAX_OUTPUT_TOKENS
from pegboard.engine.run import Run
from pegboard.engine.sessions import SessionIds
from pegboard.policy.agents import default_agent
from pegboard.providers.spending import CHARS_PER_TOKEN, message_tokens, total_tokens
from pegboard.schema.message import AssistantMessage, MessageTime, Turn, UserMessage
from pegboard.schema.model import Model
from pegboard.schema.part import CompactionPart, Completed, ModelChoice, Part, ToolPart
from pegboard.schema.session import Session
from pegboard.storage.changes import PutMessage, PutPart


def usable(model: Model) -> int | None:
    """Return the tokens that a request may have, or None if the model's window is unknown.

    Part of the window stays free for the answer, but never more than half.
    """
    limit = model.limit
    if limit.input:
        return limit.input
    if not limit.context:
        return None
    output = min(limit.output or MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS, limit.context // 2)
    return limit.context - output


def next_request(history: History, model: Model, turns: Sequence[Turn]) -> int:
    """Estimate the tokens of the next request with these turns.

    The estimate is the provider's count for the last answer, plus an estimate for later additions.
    Without such a count, everything is estimated.
    """
    summary = history.summary()
    old = kept_ids(summary.info) if summary is not None else ()
    for place in range(len(turns) - 1, -1, -1):
        info = turns[place].info
        if info.id in old:
            break  # what it used was the history before the summary
        if isinstance(info, AssistantMessage) and not info.summary and total_tokens(info.tokens):
            since = [m for turn in turns[place:] for m in history.converted(model, turn)]
            added = message_tokens(each for each in since if each.role != "assistant")
            return total_tokens(info.tokens) + added
    return message_tokens(history.messages(model, turns))


def is_too_long(run: Run, model: Model) -> bool:
    """Return whether the session must be compacted before the next request."""
    limit = usable(model)
    return limit is not None and next_request(run.history, model, run.history.view()) > limit


def request_compaction(run: Run, user: UserMessage) -> None:
    """Request a compaction in the middle of the answer to `user`."""
    turn = _requested(run.engine.now(), run.ids, user.agent, user.model, user.session_id, auto=True)
    run.put(turn)
    run.writer.change(PutMessage(turn.info), *(PutPart(part) for part in turn.parts))


def requested_by_user(engine: Engine, session: Session, ids: SessionIds, model: str | None) -> Turn:
    """Return a new user message that requests a compaction; the caller stores it."""
    agent = session.agent or default_agent(engine.config, engine.agents).name
    return _requested(
        engine.now(), ids, agent, model_for(engine, session, model, agent), session.id, auto=False
    )


def _requested(  # noqa: PLR0913 - the fields of the message
    now: int, ids: SessionIds, agent: str, model: ModelChoice, session_id: str, *, auto: bool
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


PROTECTED_TOKENS = 40_000
"""The newest output of this size stays (opencode `session/compaction.ts`, as the next ones)."""
MINIMUM_TOKENS = 20_000
"""The fewest tokens for whose removal the provider should read the history again."""
PROTECTED_PROMPTS = 2


def prune(run: Run) -> None:
    """Clear old tool output from future requests of this session, if the user's settings allow."""
    if not run.engine.config.compaction.prune:
        return
    lasting = {tool.id for tool in run.engine.tools.values() if tool.lasting}
    old = set(prunable(run.history.view(), lasting))
    if not old:
        return
    for turn in tuple(run.history.turns):
        parts = tuple(_cleared(part, old, run.engine.now()) for part in turn.parts)
        if parts != turn.parts:
            run.put(Turn(info=turn.info, parts=parts))
            run.writer.change(*(PutPart(part) for part in parts if part.id in old))


def prunable(turns: Sequence[Turn], lasting: Collection[str] = ()) -> tuple[str, ...]:
    """Return the part ids of calls whose old output to clear, or () if this saves too little.

    The newest output stays. `lasting` are the ids of tools whose output always stays.
    """
    seen, found, size = 0, list[str](), 0
    for part_id, output in _outputs(turns, lasting):
        tokens = round(len(output) / CHARS_PER_TOKEN)
        seen += tokens
        if seen > PROTECTED_TOKENS:
            found.append(part_id)
            size += tokens
    return tuple(found) if size > MINIMUM_TOKENS else ()


def _outputs(turns: Sequence[Turn], lasting: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield part id and output of calls, newest first, up to the first cleared output."""
    prompts = 0
    for turn in reversed(turns):
        prompts += isinstance(turn.info, UserMessage)
        if prompts < PROTECTED_PROMPTS:
            continue
        if isinstance(turn.info, AssistantMessage) and turn.info.summary:
            return
        for part in reversed(turn.parts):
            match part:
                case ToolPart(state=Completed() as state) if part.tool not in lasting:
                    if state.time.compacted:
                        return
                    yield part.id, state.output
                case _:
                    pass


def _cleared(part: Part, old: Collection[str], now: int) -> Part:
    match part:
        case ToolPart(id=name, state=Completed() as state) if name in old:
            time = replace(state.time, compacted=now)
            return replace(part, state=replace(state, time=time))
        case _:
            return part
