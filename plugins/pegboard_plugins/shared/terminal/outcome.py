"""The exit code of a turn, and how costs are added and formatted."""

from collections.abc import Iterable, Mapping

from pegboard.cli import Exit
from pegboard.schema.message import (
    AbortedFailure,
    APIFailure,
    AssistantMessage,
    BudgetFailure,
    CallsFailure,
    ContextOverflowFailure,
    Failure,
    Message,
    PluginFailure,
    ProviderAuthFailure,
    StoppedFailure,
    StructuredOutputFailure,
)
from pegboard.schema.model import format_usd
from pegboard.schema.part import Failed, ToolPart

CUT: Mapping[str, str] = {
    "length": "the answer is cut off at the model's output limit; `pegboard run -c` goes on",
    "content-filter": "the provider's content filter stopped the answer",
}
"""The reasons to finish that leave an answer incomplete, with their texts for the user."""

UNKNOWN_COST = "unknown"


_EXITS: Mapping[type[Failure], Exit] = {
    ProviderAuthFailure: Exit.PROVIDER,
    APIFailure: Exit.PROVIDER,
    ContextOverflowFailure: Exit.PROVIDER,
    BudgetFailure: Exit.BUDGET,
    PluginFailure: Exit.PLUGIN,
    StructuredOutputFailure: Exit.SCHEMA,
    AbortedFailure: Exit.INTERRUPTED,
    StoppedFailure: Exit.DENIED,
}


def exit_of_failure(failure: Failure) -> Exit:
    """Return the exit code of a turn that ended with this failure."""
    return _EXITS.get(type(failure), Exit.FAILED)


def exit_of_answer(answer: Message, *, denied: bool) -> Exit:
    """Return the exit code of a prompt with this last answer.

    `denied` means that a call was denied, and that the agent has made no call since.
    """
    if isinstance(answer, AssistantMessage):
        if isinstance(answer.error, CallsFailure) and denied:
            return Exit.DENIED
        if answer.error is not None:
            return exit_of_failure(answer.error)
        if answer.finish in CUT:
            return Exit.FAILED
    return Exit.DENIED if denied else Exit.DONE


def denial_of(part: ToolPart) -> str:
    """Return why a rule, a plugin or the user denied this call; "" if the call was not denied."""
    match part.state:
        case Failed(error=error, metadata={"denied": True} as facts):
            from pegboard.unstable import user_words  # few calls are denied

            words, advice = user_words(error), (facts or {}).get("advice")
            return f"{words.rstrip('.')}; {advice}" if isinstance(advice, str) else words
        case _:
            return ""


def cost_text(known: float, *, is_whole: bool) -> str:
    """Return a cost in US dollars; an unknown part is "unknown" and never a number."""
    if is_whole:
        return format_usd(known)
    return f"{format_usd(known)} + {UNKNOWN_COST}" if known else UNKNOWN_COST


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the costs, or None if a cost is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
