"""Faults of a provider's server, each over a real socket, with the outcome that is required.

The faults are the same for every HTTP provider; each wire format has frames of its own.
"""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.providers import ModelMessage, ModelRequest, Provider, Text, ToolDefinition
from pegboard.testing.finding import Finding, Rule, broken, must
from pegboard.testing.outcome import Check, Outcome, answers, fails
from pegboard.testing.scriptedserver import Disconnect, Pause, Play, ScriptedServer, Status
from pegboard.testing.wireframes import (
    BROKEN_FRAMES,
    CONTENT_TYPES,
    IDLE_FRAMES,
    End,
    Framing,
    Refusal,
    ServerFrames,
)

IDLE_S = 0.4
"""The silence that a request allows; `make` gives the provider as little for the first byte."""
_LEAVING_S = 5.0
Make = Callable[[str], Provider]
"""A function that makes a provider whose server is at this URL. It waits less than a second for the
head of an answer, and does not retry by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of a server, with the check of the outcome that the provider must reach."""

    name: str
    play: Play
    check: Check


async def check_provider_faults(
    make: Make, wire: ServerFrames, *, model: str, framing: Framing = "events"
) -> tuple[Finding, ...]:
    """Return what the provider does wrong with failing and unusual servers; () if nothing.

    `model` is a model id that the provider resolves. `framing` is the format in which `wire` writes
    frames: server-sent events, or lines of JSON.
    """
    place = _FaultPlace(make, model, CONTENT_TYPES[framing])
    rules: dict[str, Rule] = {
        fault.name: partial(_row, place, fault) for fault in faults(wire, framing)
    }
    rules |= {
        "a refused connection": partial(_refused, place),
        "a connection that was closed behind an answer": partial(_reused, place, wire),
        "a reader who goes away": partial(_left, place, wire),
        "a redirect": partial(_redirected, place, wire),
    }
    return await broken("provider", rules)


@dataclass(frozen=True, slots=True)
class _FaultPlace:
    """How a check makes its requests: the provider, the model, and the server's content type."""

    make: Make
    model: str
    content_type: str

    def server(self, *plays: Play) -> ScriptedServer:
        return ScriptedServer(*plays, content_type=self.content_type)


def faults(wire: ServerFrames, framing: Framing = "events") -> Iterator[Fault]:
    """Yield the faults for which a single server and a single request are enough."""
    yield from _refusals(wire)
    yield from _breaks(wire, framing)
    yield from _odd_bytes(wire, framing)
    yield from _odd_answers(wire)
    yield from _mid_stream(wire)


def _answer_with(wire: ServerFrames, text: str = "hi", *, end: End = "stop") -> bytes:
    return wire.start() + wire.text(text) + wire.end(end)


def _refusals(wire: ServerFrames) -> Iterator[Fault]:
    """Yield faults where the server sends an error instead of an answer."""

    def refused(name: str, code: int, refusal: Refusal, check: Check, **headers: str) -> Fault:
        body = wire.error(refusal, f"scripted: {name}")
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        head = Status(code=code, headers={"content-type": "application/json", **given})
        return Fault(name=name, play=(head, body), check=check)

    again, final = fails(retry=True), fails(retry=False)
    delayed = fails(retry=True, headers=["retry-after", "x-ratelimit-reset-requests"], wait_s=2)
    limits = {"retry_after": "2", "x_ratelimit_reset_requests": "1m30s"}
    yield refused("429 with retry-after", 429, "overloaded", delayed, **limits)
    in_ms = fails(retry=True, headers=["retry-after-ms"], wait_s=0.35)
    yield refused("429 with retry-after-ms", 429, "overloaded", in_ms, retry_after_ms="350")
    wait = "429, please try again in 20.5s"
    if wait.encode() in wire.error("overloaded", wait):  # some formats have no text of an error
        yield refused(wait, 429, "overloaded", fails(retry=True, wait_s=20.5))
    tokens = "too many tokens, please wait before trying again"  # no overflow
    yield refused(f"503, {tokens}", 503, "overloaded", fails(retry=True))
    yield refused("429 for a used up quota", 429, "quota", final)
    for code in (408, 500, 502, 503, 504, 529):
        yield refused(f"{code}", code, "overloaded", again)
    yield refused("500 for its content policy", 500, "policy", final)
    for code in (400, 422):
        yield refused(f"{code}", code, "invalid", final)
    yield refused("404", 404, "invalid", fails())  # of some a model may be only just there
    for code in (401, 403):
        yield refused(f"{code}", code, "auth", fails(retry=False, kind=ProviderAuthError))
    too_long = fails(retry=False, kind=ContextOverflowError)
    yield refused("400 for a request that is too long", 400, "overflow", too_long)
    yield refused("413", 413, "invalid", too_long)
    page = b"<!DOCTYPE html><html><title>Bad Gateway</title><body>long</body></html>"
    html = Status(code=502, headers={"content-type": "text/html"})
    yield Fault(name="502 as HTML", play=(html, page), check=fails(retry=True, hides="<body>"))


def _breaks(wire: ServerFrames, framing: Framing) -> Iterator[Fault]:
    """Yield the faults in which the server breaks off its answer."""
    again = fails(retry=True)
    half = wire.start() + wire.text("Hel")
    begun = wire.start() + wire.cut_call("call_1", "look", '{"filePath": "a')
    idle = IDLE_FRAMES[framing]
    rows: dict[str, Play] = {
        "no head of an answer": (Pause(),),
        "a cut before the first event": (b"", Disconnect()),
        "a cut in the text": (half, Disconnect()),
        "a cut in a call's arguments": (begun, Disconnect()),
        "an end without a last event, in the text": (half,),
        "an end without a last event, in a call": (begun,),
        "silence in the middle": (half, Pause()),
        "silence with comments": (half, *(idle, Pause(0.05)) * 20, Pause()),
        "broken JSON in an event": (half, BROKEN_FRAMES[framing], wire.end("stop")),
    }
    yield from (Fault(name=name, play=play, check=again) for name, play in rows.items())


def _odd_bytes(wire: ServerFrames, framing: Framing) -> Iterator[Fault]:
    """Yield faults where the same answer arrives in unusual or invalid bytes."""
    whole, odd = _answer_with(wire), "ünï 🧡 \u2028 \u0000"
    single = [whole[place : place + 1] for place in range(len(whole))]
    spoken = _answer_with(wire, odd)
    packed = gzip.compress(whole)
    zipped = Status(headers={"content-encoding": "gzip"})
    bomb = gzip.compress(b"\n" * (64 << 20))
    right = answers("hi", reason="stop")
    yield Fault(name="one byte at a time", play=single, check=right)
    split = [spoken[place : place + 1] for place in range(len(spoken))]
    yield Fault(name="letters in pieces", play=split, check=answers(odd))
    yield Fault(name="lines that end in CRLF", play=(whole.replace(b"\n", b"\r\n"),), check=right)
    signs = (*(IDLE_FRAMES[framing], Pause(0.05)) * 20, whole)
    yield Fault(name="comments before the first event", play=signs, check=right)
    yield Fault(name="comments between events", play=(IDLE_FRAMES[framing] + whole,), check=right)
    yield Fault(
        name="an unknown event", play=(wire.start() + wire.stray() + _rest(wire),), check=right
    )
    yield Fault(name="gzip", play=(zipped, packed[:9], packed[9:]), check=right)
    yield Fault(name="gzip that is none", play=(zipped, whole), check=fails(retry=True))
    yield Fault(name="a gzip bomb", play=(zipped, bomb), check=fails())
    long = (BROKEN_FRAMES[framing].rstrip(), *[b"x" * (1 << 20)] * 18, b"\n\n")
    yield Fault(name="a line over 16 MB", play=long, check=fails())
    bad = wire.start() + wire.text("aXb").replace(b"X", b"\xff") + wire.end("stop")
    yield Fault(name="bytes that are no UTF-8", play=(bad,), check=answers("a\ufffdb"))
    many = wire.start() + b"".join(wire.text("x") for _ in range(2000)) + wire.end("stop")
    yield Fault(name="2,000 pieces of text", play=(many,), check=answers("x" * 2000))


def _rest(wire: ServerFrames) -> bytes:
    return wire.text("hi") + wire.end("stop")


def _odd_answers(wire: ServerFrames) -> Iterator[Fault]:
    """Yield faults where a complete answer ends in an unusual way."""
    start, args = wire.start(), '{"filePath": "a.txt"}'
    first = wire.call("call_1", "look", args)
    second = wire.call("call_2", "look", '{"filePath": "b.txt"}', index=1)
    both = answers(calls=[args, '{"filePath": "b.txt"}'], reason="tool-calls")
    yield Fault(
        name="two calls", play=(start + first + second + wire.end("tool-calls"),), check=both
    )
    again = wire.call("call_1", "look", '{"filePath": "b.txt"}', index=1)
    same = (start + first + again + wire.end("tool-calls"),)
    yield Fault(name="two calls with one id", play=same, check=both)
    cut = start + wire.cut_call("call_1", "look", '{"filePath": "a') + wire.end("length")
    yield Fault(name="a call that was cut for its length", play=(cut,), check=_never_called)
    long = _answer_with(wire, end="length")
    yield Fault(
        name="a text that was cut for its length",
        play=(long,),
        check=answers("hi", reason="length"),
    )
    filtered = _answer_with(wire, end="content-filter")
    filtered_answer = answers("hi", reason="content-filter")
    yield Fault(name="a refusal of the model", play=(filtered,), check=filtered_answer)
    for name, usage in {"no usage": None, "huge usage": (10**12, 10**12)}.items():
        play = (start + wire.text("hi") + wire.end("stop", usage=usage),)
        yield Fault(name=name, play=play, check=answers("hi"))
    below = (start + wire.text("hi") + wire.end("stop", usage=(-5, -5)),)
    yield Fault(name="usage below zero", play=below, check=answers("hi"))
    more = (_answer_with(wire) + _rest(wire),)
    yield Fault(name="bytes behind the end", play=more, check=answers("hi", reason="stop"))
    html = Status(headers={"content-type": "text/html"})
    login = (html, b"<html><title>Log in</title></html>")
    yield Fault(name="a login page", play=login, check=fails(retry=False))
    other = (Status(headers={"content-type": "application/json"}), b'{"message": "welcome"}')
    yield Fault(name="JSON that is not an answer", play=other, check=fails())


def _never_called(outcome: Outcome) -> None:
    must(not outcome.calls, f"a call that was cut off is made: {outcome.calls}")
    reason = outcome.finish.reason if outcome.finish else None
    must(outcome.error or reason == "length", f"it ends with {reason}")


def _mid_stream(wire: ServerFrames) -> Iterator[Fault]:
    """Yield the faults in which the HTTP status is 200, but an error follows in the stream."""
    kinds: dict[Refusal, Check] = {
        "overloaded": fails(retry=True),
        "invalid": fails(retry=False),
        "policy": fails(retry=False),
        "quota": fails(retry=False),
        "auth": fails(retry=False, kind=ProviderAuthError),
        "overflow": fails(retry=False, kind=ContextOverflowError),
    }
    for refusal, check in kinds.items():
        if frame := wire.error_event(refusal, f"scripted: {refusal}"):
            play = (wire.start() + wire.text("Hel"), frame)
            yield Fault(name=f"an error in the stream: {refusal}", play=play, check=check)
    tokens = "too many tokens, please wait before trying again"  # no overflow
    if frame := wire.error_event("overloaded", tokens):
        play = (wire.start(), frame)
        yield Fault(name=f"in the stream: {tokens}", play=play, check=fails(retry=True))


@asynccontextmanager
async def _open(place: _FaultPlace, url: str) -> AsyncIterator[Provider]:
    provider = place.make(url)
    try:
        yield provider
    finally:
        await provider.aclose()


async def _row(place: _FaultPlace, fault: Fault) -> None:
    async with place.server(fault.play) as server, _open(place, server.url) as provider:
        outcome = await _ask(provider, place.model)
        asked = len(server.requests)
    must(asked <= 1, f"the provider asks {asked} times by itself")
    fault.check(outcome)


async def _ask(provider: Provider, model: str) -> Outcome:
    outcome = Outcome()
    try:
        async for event in provider.stream(_request(provider, model)):
            outcome.events.append(event)
    except ProviderError as error:
        outcome.error = error
        must(error.provider_id == provider.id, "the error does not name the provider by its id")
    return outcome


def _request(provider: Provider, model: str) -> ModelRequest:
    found = provider.resolve(model)
    must(found is not None, f"the model {model} is not known")
    assert found is not None
    look = ToolDefinition(
        name="look", description="Looks.", parameters={"type": "object"}, permission="look"
    )
    hello = ModelMessage(role="user", content=(Text(text="hello"),))
    return ModelRequest(
        model=found, system=("Test.",), messages=(hello,), tools=(look,), idle_timeout_s=IDLE_S
    )


async def _refused(place: _FaultPlace) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and so nothing else listens there
        port = unused.getsockname()[1]
        async with _open(place, f"http://127.0.0.1:{port}") as provider:
            outcome = await _ask(provider, place.model)
    must(isinstance(outcome.error, ProviderError), f"{outcome.error!r} is not a ProviderError")
    must(str(port) in str(outcome.error), f"the error does not name the host: {outcome.error}")


async def _reused(place: _FaultPlace, wire: ServerFrames) -> None:
    """Check that no answer is lost if the server has closed an idle connection."""
    plays: tuple[Play, ...] = ((_answer_with(wire), Disconnect()), (_answer_with(wire),))
    async with place.server(*plays) as server, _open(place, server.url) as provider:
        await _ask(provider, place.model)
        answers("hi")(await _ask(provider, place.model))


async def _left(place: _FaultPlace, wire: ServerFrames) -> None:
    """Check that closing the stream of an answer ends the HTTP request at once."""
    play: Play = (wire.start() + wire.text("Hel"), Pause())
    async with place.server(play) as server, _open(place, server.url) as provider:
        stream = provider.stream(_request(provider, place.model))
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator's
        try:
            async with asyncio.timeout(_LEAVING_S):
                await server.left.wait()
        except TimeoutError:
            must(holds=False, text="the connection stays open after its reader has left")


async def _redirected(place: _FaultPlace, wire: ServerFrames) -> None:
    """Check that a redirect does not send the key to another server."""
    async with place.server((_answer_with(wire),)) as other:
        head = Status(code=307, headers={"location": f"{other.url}/elsewhere"})
        play: Play = (head, b"moved")
        async with place.server(play) as server, _open(place, server.url) as provider:
            outcome = await _ask(provider, place.model)
        must(not other.requests, "a redirect to another server is followed, with the key")
    fails(retry=False)(outcome)
