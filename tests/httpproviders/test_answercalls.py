"""Calls whose pieces share an index or an id, or come without."""

import pytest

from pegboard.http import AnswerCalls
from pegboard.providers import ToolCall, ToolInputDelta, ToolInputStart

Piece = tuple[int | None, str, str, str]


def made(*pieces: Piece) -> list[tuple[str, str, str]]:
    """The calls of these pieces; the events before them say the same."""
    calls = AnswerCalls()
    begun = [event for piece in pieces for event in calls.add(*piece)]
    ended = [*calls.end()]
    found = [event for event in ended if isinstance(event, ToolCall)]
    for call in found:
        deltas = [e.text for e in begun if isinstance(e, ToolInputDelta) and e.id == call.id]
        starts = [e for e in [*begun, *ended] if isinstance(e, ToolInputStart) and e.id == call.id]
        assert starts == [ToolInputStart(call.id, call.name)]
        assert not call.name or ("".join(deltas) or "{}") == call.input
    assert len({call.id for call in found}) == len(found)
    return [(call.id, call.name, call.input) for call in found]


TWO = [("a", "read", '{"x": 1}'), ("call_1", "grep", '{"y": 2}')]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        pytest.param(
            [(0, "a", "read", '{"x": 1}'), (0, "a", "grep", '{"y": 2}')],
            TWO,
            id="one index and one id",
        ),
        pytest.param(
            [
                *[(0, "a", "read", ""), (0, "", "", '{"x":'), (0, "", "", " 1}")],
                *[(0, "a", "grep", ""), (0, "", "", '{"y": 2}')],
            ],
            TWO,
            id="one index and one id, in pieces",
        ),
        pytest.param(
            [(0, "read", "read", '{"x": 1}'), (0, "read", "read", '{"x": 2}')],
            [("read", "read", '{"x": 1}'), ("call_1", "read", '{"x": 2}')],
            id="the name as the id",
        ),
        pytest.param(
            [
                *[(0, "read", "read", ""), (0, "", "", '{"x": 1}')],
                *[(0, "read", "read", ""), (0, "", "", '{"x": 2}')],
            ],
            [("read", "read", '{"x": 1}'), ("call_1", "read", '{"x": 2}')],
            id="the name as the id, in pieces",
        ),
        pytest.param(
            [(0, "0", "read", '{"x": 1}'), (1, "0", "grep", '{"y": 2}')],
            [("0", "read", '{"x": 1}'), ("call_1", "grep", '{"y": 2}')],
            id="the id 0 for each",
        ),
        pytest.param(
            [(None, "", "read", ""), (None, "", "grep", "")],
            [("call_0", "read", "{}"), ("call_1", "grep", "{}")],
            id="no index, no id, no arguments",
        ),
        pytest.param(
            [(0, "a", "", '{"x":'), (0, "a", "", " 1}"), (0, "a", "read", "")],
            [("a", "read", '{"x": 1}')],
            id="the name behind the arguments",
        ),
        pytest.param(
            [(0, "", "", '{"x": 1}'), (0, "a", "read", "")],
            [("call_0", "read", '{"x": 1}')],
            id="id and name behind the arguments",
        ),
        pytest.param(
            [(0, "a", "read", '{"x"'), (1, "a", "", ": 1"), (2, "a", "", "}")],
            [("a", "read", '{"x": 1}')],
            id="an index for each piece",
        ),
        pytest.param(
            [(0, "a", "read", '{"x"'), (1, "", "", ": 1}")],
            [("a", "read", '{"x": 1}')],
            id="an index for each piece, without id",
        ),
        pytest.param(
            [(0, "a", "read", '{"x": 1}'), (0, "a", "read", "")],
            [("a", "read", '{"x": 1}')],
            id="id and name again at the end",
        ),
        pytest.param(
            [(0, "a", "read", '{"x": {'), (0, "a", "read", '"y": 1}'), (0, "a", "read", "}")],
            [("a", "read", '{"x": {"y": 1}}')],
            id="id and name with each piece",
        ),
        pytest.param([(0, "a", "", "{}")], [("a", "", "{}")], id="no name at all"),
    ],
)
def test_pieces_find_their_call(pieces: list[Piece], calls: list[tuple[str, str, str]]) -> None:
    assert made(*pieces) == calls
