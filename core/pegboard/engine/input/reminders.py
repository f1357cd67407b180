"""Reminders: notes for the model at a prompt, on a change of agent or a prompt during an answer.

A reminder is stored with the prompt, once. Every later request then repeats the same bytes, so
that the provider's prompt cache still fits.
"""

from collections.abc import Mapping, Sequence

from pegboard.contract.changes import PutPart
from pegboard.engine.ending.finish import goes_on
from pegboard.engine.history import is_compaction
from pegboard.engine.run import Run
from pegboard.schema.config import Agent
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import TextPart

MARK = "reminder"
"""The name under which a reminder's kind is in the metadata of its part."""
QUEUED = "queued"
MEANWHILE = (
    "The user sent this while you were working. Take it into account now, and go on with what you "
    "were doing unless it says otherwise."
)


def remind(run: Run) -> None:
    """Store the reminders of the prompts that are answered next."""
    for place, kind, text in due(run.history.turns, run.engine.agents):
        turn = run.history.turns[place]
        part = TextPart(
            id=run.ids.part(),
            session_id=turn.info.session_id,
            message_id=turn.info.id,
            text=reminder(turn.info.session_id, text),
            synthetic=True,
            metadata={MARK: kind},
        )
        run.put(Turn(info=turn.info, parts=(*turn.parts, part)))
        run.writer.change(PutPart(part))


def reminder(session_id: str, text: str) -> str:
    """The text in tags with the session's id, which other texts cannot imitate."""
    return f'<system-reminder session="{session_id}">\n{text}\n</system-reminder>'


def due(turns: Sequence[Turn], agents: Mapping[str, Agent]) -> list[tuple[int, str, str]]:
    """The missing reminders of the newest prompts: the prompt's place, the kind and the text.

    The kind is the name of the agent that takes over, or `QUEUED`.
    """
    waiting, last = _waiting(turns)
    found: list[tuple[int, str, str]] = []
    for place in waiting:
        if place == waiting[-1] and (text := _switch(turns, place, agents)):
            found.append((place, turns[place].info.agent, text))
        if last is not None and _came_meanwhile(turns[place], last):
            found.append((place, QUEUED, MEANWHILE))
    return [each for each in found if not _has(turns[each[0]], each[1])]


def _came_meanwhile(prompt: Turn, last: Turn) -> bool:
    """Whether a person, not a tool, sent the prompt while the model worked."""
    typed = any(not (isinstance(part, TextPart) and part.synthetic) for part in prompt.parts)
    return typed and goes_on(last)


def _waiting(turns: Sequence[Turn]) -> tuple[list[int], Turn | None]:
    """The places of the prompts after the last answer, and that answer."""
    places: list[int] = []
    for place in range(len(turns) - 1, -1, -1):
        info = turns[place].info
        if isinstance(info, AssistantMessage) and not info.summary:
            return places[::-1], turns[place]
        if isinstance(info, UserMessage) and not is_compaction(turns[place]):
            places.append(place)
    return places[::-1], None


def _switch(turns: Sequence[Turn], place: int, agents: Mapping[str, Agent]) -> str:
    """The note for a prompt with another agent than the last answer's; "" for most agents."""
    before = next((turn.info.agent for turn in reversed(turns[:place]) if _is_answer(turn)), None)
    agent = turns[place].info.agent
    if before is None or before == agent:
        return ""
    left, entered = agents.get(before), agents.get(agent)
    said = (left.on_leave if left else None, entered.on_enter if entered else None)
    return " ".join(filter(None, said))


def _is_answer(turn: Turn) -> bool:
    return isinstance(turn.info, AssistantMessage) and not turn.info.summary


def _has(turn: Turn, kind: str) -> bool:
    return any(
        isinstance(part, TextPart) and (part.metadata or {}).get(MARK) == kind
        for part in turn.parts
    )
