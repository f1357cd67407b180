"""Answers in lines of JSON: what a line is, however the stream is cut, and when there are lines."""

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ProviderError
from pegboard.http import Endpoint, HttpProvider, Post, WireFormat, decode_json, eventstream
from pegboard.http.wireformat import Framing
from pegboard.providers import ModelMessage, ModelRequest, StreamEvent, StreamFinish, Text
from pegboard.testing import ScriptedServer


def _parsed(*pieces: bytes) -> list[bytes]:
    parser = eventstream.LineParser()
    return [line for piece in pieces for line in parser.feed(piece)] + parser.rest()


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b"1\n2\n", [b"1", b"2"]),
        (b"1\r\n\r\n2\r\n", [b"1", b"2"]),
        (b"\n\n1\n\n2", [b"1", b"2"]),
        (b"\x1e1\n\x1e2\n", [b"1", b"2"]),
        (b"\xef\xbb\xbf1\n2\n", [b"1", b"2"]),
        ('"\u2028 é"\n'.encode(), ['"\u2028 é"'.encode()]),
        (b"", []),
    ],
)
def test_the_forms_of_a_line(stream: bytes, lines: list[bytes]) -> None:
    assert _parsed(stream) == lines
    assert _parsed(*(stream[place : place + 1] for place in range(len(stream)))) == lines


@given(
    lines=st.lists(st.sampled_from(["{}\n", "\n", '"é😀"\r\n', " 7 \n", "[1"]), max_size=30),
    cuts=st.lists(st.integers(0, 300)),
)
def test_any_cut_of_a_stream_gives_the_same_lines(lines: list[str], cuts: list[int]) -> None:
    stream = "".join(lines).encode()
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})

    assert _parsed(*(stream[start:end] for start, end in pairwise(places))) == _parsed(stream)


def test_a_line_over_16_mb_is_refused() -> None:
    parser = eventstream.LineParser()
    for _ in range(16):
        assert parser.feed(b"x" * (1 << 20)) == []

    with pytest.raises(eventstream.LineTooLongError):
        parser.feed(b"x")


class Keeping:
    """Keeps the frames; the last one is true, or a whole body."""

    def __init__(self) -> None:
        self.finished = False
        self.frames: list[object] = []

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        self.frames.append(decode_json(frame))
        self.finished = self.frames[-1] in (True, [0, True])
        return iter(())

    def end(self) -> Iterator[StreamEvent]:
        yield StreamFinish("stop")


async def frames_of(server: str, framing: Framing) -> list[object]:
    reader = Keeping()
    wire = WireFormat(
        encode=lambda request, endpoint, key: Post(endpoint.at("a"), {}, b"{}"),
        reader=lambda request: reader,
        framing=framing,
    )

    async def find(provider_id: str, env: tuple[str, ...] = ()) -> None:
        return None

    provider = HttpProvider(
        Endpoint(id="p", name="P", url=server),
        lambda model: wire,
        environ={},
        keys=SimpleNamespace(find=find),  # type: ignore[arg-type]  # a part of Keys
    )
    model = provider.resolve("m")
    assert model is not None
    hello = ModelMessage(role="user", content=(Text(text="hello"),))
    try:
        async for _ in provider.stream(ModelRequest(model=model, system=(), messages=(hello,))):
            pass
    finally:
        await provider.aclose()
    return reader.frames


@pytest.mark.parametrize(
    ("framing", "content_type", "body", "frames"),
    [
        ("events", "application/x-ndjson", b"0\ntrue\n", [0, True]),
        ("events", "application/jsonl; charset=utf-8", b"0\ntrue", [0, True]),
        ("lines", "application/json", b"0\ntrue\n", [0, True]),
        ("lines", "text/plain", b"0\ntrue\n", [0, True]),
        ("lines", "text/event-stream", b"data: 0\n\ndata: true\n\n", [0, True]),
        ("events", "text/plain", b"data: 0\n\ndata: true\n\n", [0, True]),
        ("events", "application/json", b"[0,\n true]\n", [[0, True]]),
    ],
)
async def test_the_type_of_content_says_what_parts_the_frames(
    framing: Framing, content_type: str, body: bytes, frames: list[object]
) -> None:
    async with ScriptedServer((body,), content_type=content_type) as server:
        assert await frames_of(server.url, framing) == frames


async def test_an_answer_in_lines_that_ends_before_the_model_has_is_a_failure() -> None:
    async with ScriptedServer((b"0\n",), content_type="application/x-ndjson") as server:
        with pytest.raises(ProviderError, match="broke off before its end") as failed:
            await frames_of(server.url, "events")

    assert failed.value.retryable
