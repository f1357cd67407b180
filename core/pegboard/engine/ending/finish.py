"""Why an answer ended, whether that is well, and whether another step follows.

Another step follows a step with tool calls, whatever its provider calls the end, and no other:

- A step without calls ends the turn. When its provider promised calls, a warning says so.
- A step that says nothing at all is asked for once more; then the turn fails.
- A step that breaks off behind a call keeps the call's result, and the next step is taken as
  the next attempt: `retry.attempts` such steps in a row end the turn with the failure.
- A call that the output limit cuts goes back to the model `CUT_ANSWERS` times in a turn.
- `FRUITLESS_STEPS` steps in a row of which no call could be made end the turn, or
  `DENIED_STEPS` when the newest of them was denied.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from pegboard.contract.providers import StreamFinish
from pegboard.schema.message import (
    AssistantMessage,
    CallsFailure,
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
MAY_BE_EMPTY = frozenset({"stop", "other", "unknown", "tool-calls"})
"""An answer that ended for one of these reasons, and says nothing, is a failed attempt."""
GOES_ON = "tool-calls"
"""Why a step is stored to have ended that another one follows."""
PROMISED = "The model's server said that calls follow, and sent none: the turn ends here."
FRUITLESS_STEPS = 3
"""A model that writes so many calls in a row which cannot be made does not learn from errors."""
DENIED_STEPS = 5
"""Where a call was denied there may be another way, which takes a model some tries."""
_REASON_LETTERS = 200


def ending(
    finish: StreamFinish, calls: Iterable[ToolPart], turns: Iterable[Turn]
) -> tuple[str, Failure | None]:
    """The reason that the message keeps, and the failure that it means.

    `calls` are the answer's, `turns` those of the same prompt. A call that was cut off goes
    back to the model; so do results, although some servers say "stop" behind a call, or a
    word of their own. Without a call nothing does, although some say "tool-calls".
    """
    states = [part.state for part in calls]
    cut = any(isinstance(state, Pending) for state in states)
    match finish.reason:
        case "length" if states and (not cut or _cuts(turns) < CUT_ANSWERS):
            return GOES_ON, None
        case "length":
            return "length", OutputLengthFailure(data=NoData())
        case "content-filter":
            return "content-filter", ContentFilterFailure(data=TextData(message=REFUSED))
        case reason:
            ended = "other" if reason in ("tool-calls", "unknown") else reason
            return (GOES_ON if states else ended), None


def goes_on(turn: Turn) -> bool:
    """Whether another step follows this one: its calls have results for the model."""
    return (
        isinstance(turn.info, AssistantMessage)
        and turn.info.error is None
        and turn.info.finish == GOES_ON
        and any(isinstance(part, ToolPart) for part in turn.parts)
    )


@dataclass(slots=True)
class Progress:
    """How many of a turn's newest steps got nowhere.

    `cuts` counts failed attempts behind whose calls the next step was taken, `fruitless` the
    steps of which no call could be made.
    """

    cuts: int = 0
    fruitless: int = 0

    def stalled(
        self, calls: Collection[ToolPart], *, made: bool, denied: bool, refusing: str
    ) -> CallsFailure | None:
        """Count a step with these calls; the failure, if the turn has to end with it.

        `made` says whether a tool got to work, `denied` whether a call was denied. `refusing`
        is the tool that answers what cannot be called.
        """
        if made or not calls:
            self.fruitless = 0
            return None
        self.fruitless += 1
        if self.fruitless < (DENIED_STEPS if denied else FRUITLESS_STEPS):
            return None
        advice = (
            "Allow what is needed (`pegboard explain` names the rule), or ask for another way."
            if denied
            else "Name the tools to use in a prompt, or choose another model."
        )
        told = dict.fromkeys(_refused(part, refusing) for part in calls)
        text = (
            f"No call of the last {self.fruitless} steps could be made, so the turn ends. "
            f"The last ones: {'; '.join(told)}. {advice}"
        )
        return CallsFailure(data=TextData(message=text))


def _refused(part: ToolPart, refusing: str) -> str:
    """A call that could not be made, and why; the tool `refusing` has both as its arguments."""
    error = part.state.error if isinstance(part.state, Failed) else part.state.input.get("error")
    name = part.state.input.get("tool", part.tool) if part.tool == refusing else part.tool
    reason = " ".join(str(error).split())
    cut = f"{reason[:_REASON_LETTERS]}…" if len(reason) > _REASON_LETTERS else reason
    return f"{name} ({cut})"


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
