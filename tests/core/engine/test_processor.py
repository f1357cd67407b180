"""Events of a step become parts."""

from collections.abc import Iterator
from itertools import chain, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.contract.results import ToolResult
from pegboard.engine.processor import PROGRESS_BYTES_S, Processor
from pegboard.providers import (
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    TextStart,
    ToolInputStart,
)
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime
from pegboard.schema.part import Completed, Failed, Part, Pending, Running, TextPart, ToolPart
from pegboard.schema.session import Tokens
from pegboard.schema.wire import encode_checked

MESSAGE = AssistantMessage(
    id="msg_1",
    session_id="ses_1",
    parent_id="msg_0",
    model_id="m",
    provider_id="p",
    mode="build",
    agent="build",
    path=MessagePath(cwd="/", root="/"),
    cost=0,
    tokens=Tokens(),
    time=MessageTime(created=0),
)
ORDER = {"pending": 0, "running": 1, "completed": 2, "error": 2}


class Record:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.deltas: list[str] = []
        self.touches = 0

    def put(self, part: Part) -> None:
        self.parts.append(part)

    def delta(self, part: Part, text: str) -> None:
        assert any(known.id == part.id for known in self.parts), "announced before its deltas"
        self.deltas.append(text)

    def touch(self) -> None:
        self.touches += 1


def processor(clock: Iterator[int] | None = None) -> tuple[Processor, Record]:
    record, numbers, instants = Record(), count(1), clock or count(1000)
    made = Processor(
        MESSAGE,
        sink=record,
        new_id=lambda: f"prt_{next(numbers):03}",
        now=lambda: next(instants),
    )
    return made, record


@given(st.text(max_size=60), st.data())
def test_any_split_of_a_text_gives_the_same_part(said: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=6)))
    pieces = [said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True)]
    made, record = processor()

    made.take(TextStart("a"))
    for piece in pieces:
        made.take(TextDelta("a", piece))
    whole = made.text("a")
    assert whole is not None
    made.text_end("a", whole.text)

    assert "".join(record.deltas) == said
    [part] = made.parts.values()
    assert isinstance(part, TextPart)
    assert part.text == said.rstrip()
    assert part.time is not None
    assert part.time.start == 1000


def test_blocks_that_interleave_stay_apart() -> None:
    made, _ = processor()
    for event in (TextDelta("a", "one "), TextDelta("b", "uno "), TextDelta("a", "two")):
        made.take(event)
    made.take(ReasoningDelta("a", "hm"))
    made.take(ReasoningEnd("a", {"signature": "s"}))
    made.close("end")

    assert [part.text for part in made.parts.values()] == ["one two", "uno", "hm"]
    assert list(made.parts.values())[2].metadata == {"signature": "s"}


def test_a_call_goes_from_pending_to_completed() -> None:
    made, record = processor()
    made.take(ToolInputStart("c", "Bash"))
    made.tool_running("c", "bash", {"command": "ls"})
    made.tool_progress("c", "listing", {"output": "a"})
    made.tool_done("c", ToolResult(output="a\n", title="ls", metadata={"exit": 0}))

    states = [part.state for part in record.parts if isinstance(part, ToolPart)]
    assert [type(state) for state in states] == [Pending, Running, Running, Completed]
    last = states[-1]
    assert isinstance(last, Completed)
    assert (last.output, last.title) == ("a\n", "ls")
    assert last.metadata == {"output": "a", "exit": 0}
    assert last.time.start == 1000


def test_progress_after_the_first_waits_for_the_next_storing() -> None:
    made, record = processor(count(1000, 250))
    made.tool_running("c", "bash", {})
    for number in range(100):
        made.tool_progress("c", None, {"output": str(number)})

    assert len(record.parts) == 3  # pending, running, the first progress
    [waiting] = made.dirty()
    assert isinstance(waiting, ToolPart)
    assert isinstance(waiting.state, Running)
    assert waiting.state.metadata == {"output": "99"}
    assert made.dirty() == ()


@pytest.mark.parametrize("size", [400, 4_000, 40_000])
def test_progress_waits_the_longer_the_more_there_is_of_it(size: int) -> None:
    made, record = processor(count(0, 250))
    made.tool_running("c", "bash", {})
    made.tool_progress("c", "begins", None)
    put = 0
    rounds = 400
    for number in range(rounds):
        output = f"{number:06}" + "x" * size
        made.tool_progress("c", None, {"output": output})
        touches = record.touches
        due = made.dirty()
        put += sum(len(encode_checked(part)) for part in due)
        assert due or record.touches > touches, "what waits is asked for again"

    most_s = 2 * 250 * (rounds + 10) / 1000  # each look and each putting are a tick
    assert size < put <= PROGRESS_BYTES_S * most_s


def test_a_clock_that_is_set_back_delays_no_progress() -> None:
    made, _ = processor(chain([1_000_000] * 5, count(5)))
    made.tool_running("c", "bash", {})
    for number in range(2):
        output = f"{number}" + "x" * 100_000
        made.tool_progress("c", None, {"output": output})

    assert [made.dirty() == () for _ in range(5)].count(False) == 1


def test_closing_leaves_nothing_pending_or_running_and_keeps_text() -> None:
    made, _ = processor()
    made.take(TextDelta("a", "half a sen"))
    made.take(ToolInputStart("c", "bash"))
    made.tool_running("d", "read", {"filePath": "x"})

    made.close("stopped")

    text, first, second = made.parts.values()
    assert isinstance(text, TextPart)
    assert text.text == "half a sen"
    for part in (first, second):
        assert isinstance(part, ToolPart)
        assert isinstance(part.state, Failed)
        assert part.state.error == "stopped"


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["start", "running", "progress", "done", "failed", "close"]),
        st.sampled_from(["a", "b"]),
    ),
    max_size=20,
)


@given(EVENTS)
def test_states_never_go_backwards(events: list[tuple[str, str]]) -> None:
    made, record = processor()
    acts = {
        "start": lambda c: (
            made.take(ToolInputStart(c, "t"))
            if c not in {part.call_id for part in made.calls()}
            else None
        ),
        "running": lambda c: made.tool_running(c, "t", {}),
        "progress": lambda c: made.tool_progress(c, "x", None),
        "done": lambda c: made.tool_done(c, ToolResult(output="")),
        "failed": lambda c: made.tool_failed(c, "no"),
        "close": lambda _: made.close("end"),
    }
    for name, call_id in events:
        acts[name](call_id)
        made.dirty()

    seen: dict[str, int] = {}
    for part in record.parts:
        assert isinstance(part, ToolPart)
        rank = ORDER[part.state.__struct_config__.tag]
        assert rank >= seen.get(part.id, 0)
        assert rank < 2 or seen.get(part.id, 0) < 2, "an end is final"
        seen[part.id] = rank
