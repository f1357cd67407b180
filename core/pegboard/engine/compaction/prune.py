"""Old output of tools is cleared from the model's view; in the database it stays."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from pegboard.contract.changes import PutPart
from pegboard.engine.compaction.window import CHARS_PER_TOKEN
from pegboard.engine.run import Run
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import Completed, Part, ToolPart

PROTECTED_TOKENS = 40_000
"""The newest output of this size stays (opencode `session/compaction.ts`, as the next ones)."""
MINIMUM_TOKENS = 20_000
"""Less is not worth that the provider has to read the history anew."""
PROTECTED_PROMPTS = 2


def prune(run: Run) -> None:
    """Clear what is old from the next requests of this session."""
    if not run.engine.config.compaction.prune:
        return
    lasting = {tool.id for tool in run.engine.tools.values() if tool.lasting}
    old = {part.id for part in prunable(run.history.view(), lasting)}
    if not old:
        return
    for turn in tuple(run.history.turns):
        parts = tuple(_cleared(part, old, run.engine.now()) for part in turn.parts)
        if parts != turn.parts:
            run.put(Turn(info=turn.info, parts=parts))
            run.writer.change(*(PutPart(part) for part in parts if part.id in old))


def prunable(turns: Sequence[Turn], lasting: Collection[str] = ()) -> tuple[ToolPart, ...]:
    """The calls whose output is old: all but the newest, if that is worth it.

    `lasting` are the ids of tools whose output stays.
    """
    seen, found, size = 0, list[ToolPart](), 0
    for part in _outputs(turns, lasting):
        tokens = _tokens(part)
        seen += tokens
        if seen > PROTECTED_TOKENS:
            found.append(part)
            size += tokens
    return tuple(found) if size > MINIMUM_TOKENS else ()


def _outputs(turns: Sequence[Turn], lasting: Collection[str]) -> Iterator[ToolPart]:
    """Calls with an output, newest first, down to the first that is cleared already."""
    prompts = 0
    for turn in reversed(turns):
        prompts += isinstance(turn.info, UserMessage)
        if prompts < PROTECTED_PROMPTS:
            continue
        if isinstance(turn.info, AssistantMessage) and turn.info.summary:
            return
        for part in _completed(reversed(turn.parts), lasting):
            assert isinstance(part.state, Completed)
            if part.state.time.compacted:
                return
            yield part


def _completed(parts: Iterable[Part], lasting: Collection[str]) -> Iterator[ToolPart]:
    for part in parts:
        if (
            isinstance(part, ToolPart)
            and isinstance(part.state, Completed)
            and part.tool not in lasting
        ):
            yield part


def _tokens(part: ToolPart) -> int:
    assert isinstance(part.state, Completed)
    return round(len(part.state.output) / CHARS_PER_TOKEN)


def _cleared(part: Part, old: set[str], now: int) -> Part:
    if part.id not in old:
        return part
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, Completed)
    time = replace(part.state.time, compacted=now)
    return replace(part, state=replace(part.state, time=time))
