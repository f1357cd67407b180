"""What the end of a turn means for the exit code."""

import pytest

from pegboard.cli import Exit
from pegboard.schema.message import (
    AbortedFailure,
    APIData,
    APIFailure,
    AssistantMessage,
    AuthData,
    BudgetFailure,
    CallsFailure,
    ContentFilterFailure,
    ContextOverflowFailure,
    Failure,
    MessagePath,
    MessageTime,
    NoData,
    OutputLengthFailure,
    OverflowData,
    ProviderAuthFailure,
    StoppedFailure,
    TextData,
    UnknownFailure,
)
from pegboard.schema.part import Failed, TimeSpan, ToolPart
from pegboard.schema.session import Tokens
from pegboard.unstable import exit_of
from pegboard_plugins.shared.terminal import denial_of, exit_of_answer


def answer(error: Failure | None = None) -> AssistantMessage:
    return AssistantMessage(
        id="msg_2",
        session_id="ses_1",
        parent_id="msg_1",
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=MessagePath(cwd="/w", root="/w"),
        cost=0.0,
        tokens=Tokens(),
        time=MessageTime(created=1),
        error=error,
    )


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (ProviderAuthFailure(data=AuthData(provider_id="p", message="key")), Exit.PROVIDER),
        (APIFailure(data=APIData(message="500", is_retryable=True)), Exit.PROVIDER),
        (AbortedFailure(data=TextData(message="aborted")), Exit.INTERRUPTED),
        (StoppedFailure(data=TextData(message="a hook stopped the turn")), Exit.DENIED),
        (OutputLengthFailure(data=NoData()), Exit.FAILED),
        (ContentFilterFailure(data=TextData(message="refused")), Exit.FAILED),
        (ContextOverflowFailure(data=OverflowData(message="too long")), Exit.PROVIDER),
        (BudgetFailure(data=TextData(message="spent")), Exit.BUDGET),
        (CallsFailure(data=TextData(message="no such tool")), Exit.FAILED),
        (UnknownFailure(data=TextData(message="?")), Exit.FAILED),
    ],
)
def test_each_failure_has_its_code(error: Failure, meaning: Exit) -> None:
    assert exit_of_answer(answer(error), denied=False) is meaning


def test_calls_that_were_denied_end_a_turn_with_the_code_of_a_denial() -> None:
    failed = answer(CallsFailure(data=TextData(message="denied")))

    assert exit_of_answer(failed, denied=True) is Exit.DENIED


def test_a_denial_that_the_agent_could_not_get_round_counts() -> None:
    assert exit_of_answer(answer(), denied=True) is Exit.DENIED
    assert exit_of_answer(answer(), denied=False) is Exit.DONE


def test_a_denied_call_is_told_from_a_failed_one() -> None:
    def call(metadata: dict[str, object] | None) -> ToolPart:
        state = Failed(input={}, error="no", time=TimeSpan(start=1, end=2), metadata=metadata)
        return ToolPart(
            id="p", session_id="s", message_id="m", call_id="c", tool="bash", state=state
        )

    assert denial_of(call({"denied": True})) == "no"
    assert denial_of(call({})) == ""
    assert denial_of(call(None)) == ""


def test_an_unknown_code_is_a_failure() -> None:
    assert exit_of(6) is Exit.BUDGET
    assert exit_of(77) is Exit.FAILED
