"""Why an answer ended, and whether that is well."""

from collections.abc import Iterable, Iterator

from pegboard.providers import StreamFinish
from pegboard.schema.message import (
    AssistantMessage,
    ContentFilterFailure,
    Failure,
    NoData,
    OutputLengthFailure,
    TextData,
    Turn,
)
from pegboard.schema.part import Failed, Pending, ToolPart

CUT_OFF = "The answer broke off before the call was complete."
TOO_LONG = (
    "The answer reached the model's output limit before this call was complete, so the call did "
    "not run. Write less at once: split the work into several smaller calls."
)
CUT_ANSWERS = 2
"""How often in a turn a model is told that its call was too long; then the turn ends."""
REFUSED = "The provider's content filter, or the model itself, refused to go on with the answer."
MAY_BE_EMPTY = frozenset({"stop", "other", "unknown"})
"""An answer that ended for one of these reasons, and says nothing, is a failed attempt."""


def ending(
    finish: StreamFinish, calls: Iterable[ToolPart], turns: Iterable[Turn]
) -> tuple[str, Failure | None]:
    """The reason that the message keeps, and the failure that it means.

    `calls` are the answer's, `turns` those of the same prompt. A call that was cut off goes
    back to the model; so do results, although some servers say "stop" behind a call, or a
    word of their own.
    """
    states = [part.state for part in calls]
    cut = any(isinstance(state, Pending) for state in states)
    match finish.reason:
        case "stop" | "other" if states:
            return "tool-calls", None
        case "length" if states and (not cut or _cuts(turns) < CUT_ANSWERS):
            return "tool-calls", None
        case "length":
            return "length", OutputLengthFailure(data=NoData())
        case "content-filter":
            return "content-filter", ContentFilterFailure(data=TextData(message=REFUSED))
        case reason:
            return reason, None


def answers_to(turns: Iterable[Turn], user_id: str) -> Iterator[Turn]:
    """The model's messages that answer this prompt; looked up only where somebody asks."""
    return (
        turn
        for turn in turns
        if isinstance(turn.info, AssistantMessage) and turn.info.parent_id == user_id
    )


def _cuts(turns: Iterable[Turn]) -> int:
    return sum(
        any(
            isinstance(part, ToolPart)
            and isinstance(part.state, Failed)
            and part.state.error == TOO_LONG
            for part in turn.parts
        )
        for turn in turns
    )
