"""Server-sent events: what a stream of bytes means, however it is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.http import eventstream


def _parsed(*pieces: bytes) -> list[bytes]:
    parser = eventstream.EventParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.rest()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b": ping\n\ndata: a\n\n: ping\n\n", [b"a"]),
        (b"event: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
        (b"\n\n\ndata: a\n\n\n\n", [b"a"]),
        (b"data\n\nother: a\n\n", []),
        (b"data: a\n\ndata: b", [b"a", b"b"]),
    ],
)
def test_the_forms_of_an_event(stream: bytes, events: list[bytes]) -> None:
    assert _parsed(stream) == events
    assert _parsed(*(stream[place : place + 1] for place in range(len(stream)))) == events


_LINE = st.sampled_from(["data: é😀", "data:x", ": c", "event: e", "data", "id: 7"])
_END = st.sampled_from(["\n", "\r\n", "\r"])


@given(
    lines=st.lists(st.tuples(_LINE | st.just(""), _END), max_size=30),
    cuts=st.lists(st.integers(0, 400)),
)
def test_any_cut_of_a_stream_gives_the_same_events(
    lines: list[tuple[str, str]], cuts: list[int]
) -> None:
    stream = "".join(line + end for line, end in lines).encode()
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(places)]

    assert _parsed(*pieces) == _parsed(stream)


def test_an_event_over_16_mb_is_refused() -> None:
    parser = eventstream.EventParser()
    for _ in range(16):
        assert parser.feed(b"x" * (1 << 20)) == []

    with pytest.raises(eventstream.LineTooLongError):
        parser.feed(b"x")
