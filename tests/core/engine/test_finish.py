"""Why an answer ended, and what follows."""

import pytest

from pegboard.engine.finish import CUT_ANSWERS, GOES_ON, TOO_LONG, ending
from pegboard.providers import StreamFinish
from pegboard.schema.message import ContentFilterFailure, OutputLengthFailure, Turn
from pegboard.schema.part import Completed, CompletedSpan, Failed, Pending, TimeSpan, ToolState
from support.storage import rows

DONE = Completed(input={}, output="x", title="", metadata={}, time=CompletedSpan(start=1, end=2))
CUT = Pending(input={}, raw="")
TOLD = Turn(
    info=rows.answer(completed=2),
    parts=(rows.call(state=Failed(input={}, error=TOO_LONG, time=TimeSpan(start=1, end=2))),),
)


@pytest.mark.parametrize(
    ("reason", "state", "goes_on", "failure"),
    [
        ("tool-calls", DONE, True, None),
        ("stop", DONE, True, None),  # some servers say so behind a call
        ("other", DONE, True, None),
        ("unknown", DONE, True, None),
        ("stop", None, False, None),
        ("tool-calls", None, False, None),  # some servers say so and send no call
        ("unknown", None, False, None),
        ("other", None, False, None),
        ("length", None, False, OutputLengthFailure),
        ("length", DONE, True, None),
        ("length", CUT, True, None),  # the model is told to split it
        ("content-filter", None, False, ContentFilterFailure),
        ("content-filter", DONE, False, ContentFilterFailure),
    ],
)
def test_results_go_back_to_the_model_and_a_cut_or_refused_text_does_not(
    reason: str, state: ToolState | None, *, goes_on: bool, failure: type | None
) -> None:
    calls = () if state is None else (rows.call(state=state),)

    said, failed = ending(StreamFinish(reason), calls, ())

    assert (said == GOES_ON) is goes_on
    assert said != "unknown", "clients take it for a step that another one follows"
    assert type(failed) is (failure or type(None))


def test_a_model_whose_calls_are_too_long_is_told_so_only_so_often() -> None:
    cut = (rows.call(state=CUT),)

    assert ending(StreamFinish("length"), cut, [TOLD] * (CUT_ANSWERS - 1))[1] is None
    assert ending(StreamFinish("length"), cut, [TOLD] * CUT_ANSWERS)[0] == "length"
