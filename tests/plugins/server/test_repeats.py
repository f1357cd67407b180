"""Streamed text is repeated whole for clients that know no deltas."""

import pytest

from pegboard.schema.event import Event, PartDelta, PartRemoved, PartUpdated, SessionIdle
from pegboard.schema.part import ReasoningPart, TextPart, TimeSpan
from pegboard_plugins.server.repeats import GROWTH, Repeats

PIECE = "seven. "


def updated(text: str = "", *, kind: type = TextPart, end: int | None = None) -> Event:
    part = kind(
        id="prt_1", session_id="s", message_id="m", text=text, time=TimeSpan(start=1, end=end)
    )
    return Event(properties=PartUpdated(session_id="s", part=part, time=1))


def added(text: str = PIECE) -> Event:
    told = PartDelta(session_id="s", message_id="m", part_id="prt_1", field="text", delta=text)
    return Event(properties=told)


def text_of(event: Event) -> str:
    assert isinstance(event.properties, PartUpdated)
    assert isinstance(event.properties.part, TextPart | ReasoningPart)
    return event.properties.part.text


@pytest.mark.parametrize("kind", [TextPart, ReasoningPart])
@pytest.mark.parametrize("kb", [4, 50, 400])
def test_repeats_have_the_text_so_far_and_are_bounded_by_its_length(kind: type, kb: int) -> None:
    repeats = Repeats()
    assert repeats.take(updated(kind=kind)) is None
    said, told = "", []
    for _ in range(kb * 1024 // len(PIECE)):
        said += PIECE
        repeated = repeats.take(added())
        if repeated is not None:
            assert text_of(repeated) == said
            told.append(len(said))

    assert sum(told) < GROWTH / (GROWTH - 1) * len(said)
    assert told[-1] > len(said) / GROWTH - len(PIECE)


@pytest.mark.parametrize(
    "end",
    [
        updated(end=2),
        Event(properties=PartRemoved(session_id="s", message_id="m", part_id="prt_1")),
        Event(properties=SessionIdle(session_id="s")),
    ],
)
def test_what_has_ended_is_repeated_no_more(end: Event) -> None:
    repeats = Repeats()
    repeats.take(updated())

    repeats.take(end)

    assert [repeats.take(added()) for _ in range(1000)] == [None] * 1000


def test_what_somebody_else_says_ends_nothing() -> None:
    repeats = Repeats()
    repeats.take(updated())

    repeats.take(Event(properties=SessionIdle(session_id="other")))
    typed = TextPart(id="prt_2", session_id="s", message_id="m", text="hello")
    repeats.take(Event(properties=PartUpdated(session_id="s", part=typed, time=1)))

    assert any(repeats.take(added()) for _ in range(1000))
