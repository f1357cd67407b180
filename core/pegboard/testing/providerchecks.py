"""Checks that a provider keeps the provider protocol: its facts, and the order of its events."""

import inspect
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial

import msgspec

from pegboard.errors import ProviderError
from pegboard.providers import (
    ModelMessage,
    ModelRequest,
    Provider,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from pegboard.schema.model import Model
from pegboard.testing.finding import BrokenRuleError, Finding, Rule, broken, must

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ENV = re.compile(r"[A-Z][A-Z0-9_]*")
_STARTS = {TextStart: "text", ReasoningStart: "reasoning", ToolInputStart: "call"}
_DELTAS = {TextDelta: "text", ReasoningDelta: "reasoning", ToolInputDelta: "call"}
_ENDS = {TextEnd: "text", ReasoningEnd: "reasoning", ToolInputEnd: "call"}


async def check_provider(
    provider: Provider, *requests: ModelRequest, models: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return the faults found in a provider, or () for a faultless provider.

    Each request is sent, and its answer is checked. Without `requests` the first known model is
    asked to say hello, so let the provider use a server of the test. `models` are ids that
    `resolve` must know in addition to those of `models()`. `check_provider_faults` tests the
    provider with servers that fail.
    """
    rules: dict[str, Rule] = {
        "id": partial(_id, provider),
        "env": partial(_env, provider),
        "models": partial(_models, provider),
        "resolve": partial(_resolve, provider, models),
    }
    listed = [*provider.models(), *filter(None, map(provider.resolve, models))]
    asked = requests or tuple(_hello(model) for model in listed[:1])
    for number, request in enumerate(asked):
        ending = f" {number}" if number else ""
        rules[f"stream{ending}"] = partial(_stream, provider, request)
        rules[f"request{ending}"] = partial(_request, provider, request, _bytes_of(request))
        rules[f"close{ending}"] = partial(_close, provider, request)
    return await broken(provider.id, rules)


def check_answer(events: Sequence[StreamEvent], subject: str = "answer") -> tuple[Finding, ...]:
    """Return the faults in the events of an answer; each text names the event."""
    return tuple(Finding(subject=subject, rule="stream", text=text) for text in _flaws(events))


def _hello(model: Model) -> ModelRequest:
    hello = ModelMessage(role="user", content=(Text(text="Say hello."),))
    return ModelRequest(model=model, system=("You are a test.",), messages=(hello,))


async def _id(provider: Provider) -> None:
    known = _ID.fullmatch(provider.id)
    must(known, f"{provider.id!r} cannot stand before the slash of a model's name")
    must(provider.name.strip(), "it has no name for people")


async def _env(provider: Provider) -> None:
    must(not isinstance(provider.env, str), "`env` is one text, not a row of names")
    strange = [name for name in provider.env if not _ENV.fullmatch(name)]
    must(not strange, f"no names of environment variables: {', '.join(map(repr, strange))}")


async def _models(provider: Provider) -> None:
    models = provider.models()
    must(not inspect.isawaitable(models), "`models` must not be async")
    foreign = [each.id for each in models if each.provider_id != provider.id]
    must(not foreign, f"models of another provider: {', '.join(foreign)}")
    ids = [each.id for each in models]
    must(len(ids) == len(set(ids)), "two models have one id")
    must(list(provider.models()) == list(models), "a second look gives other models")


async def _resolve(provider: Provider, more: Sequence[str]) -> None:
    for model_id in (*(each.id for each in provider.models()), *more):
        found = provider.resolve(model_id)
        must(not inspect.isawaitable(found), "`resolve` must not be async")
        must(found is not None, f"the model {model_id} is not known")
        assert found is not None
        must(found.id == model_id, f"{model_id} is answered with the model {found.id}")
        must(found.provider_id == provider.id, f"{model_id} is a model of {found.provider_id}")


async def _stream(provider: Provider, request: ModelRequest) -> None:
    stream = provider.stream(request)
    must(isinstance(stream, AsyncIterator), "`stream` is not an async generator")
    try:
        events = [event async for event in stream]
    except ProviderError as error:
        must(error.provider_id == provider.id, "the error does not name the provider by its id")
        raise BrokenRuleError(f"the request fails: {error}") from error
    flaws = [*_flaws(events)]
    must(not flaws, "; ".join(flaws))


async def _request(provider: Provider, request: ModelRequest, before: bytes) -> None:
    async for _ in provider.stream(request):
        pass
    must(before == _bytes_of(request), "the request is changed while it is sent")


def _bytes_of(request: ModelRequest) -> bytes:
    return msgspec.json.encode((request.options, request.headers, request.system))


async def _close(provider: Provider, request: ModelRequest) -> None:
    """Check that closing a stream ends the request at once, and that the next request works."""
    stream = provider.stream(request)
    await anext(stream)
    close = getattr(stream, "aclose", None)
    must(close is not None, "`stream` cannot be closed: write it as an async generator")
    assert close is not None
    await close()
    events = [event async for event in provider.stream(request)]
    must(events, "after an answer that was closed the next one is empty")


def _flaws(events: Sequence[StreamEvent]) -> Iterator[str]:
    finish = [place for place, event in enumerate(events) if isinstance(event, StreamFinish)]
    if not finish:
        yield "it ends without StreamFinish, so it counts as broken off"
    elif len(finish) > 1:
        yield "it has more than one StreamFinish"
    elif finish[0] != len(events) - 1:
        yield f"{type(events[finish[0] + 1]).__name__} comes after StreamFinish"
    yield from _block_flaws(events)
    yield from _call_flaws(events)
    for event in events:
        if isinstance(event, StreamFinish) and event.usage is not None:
            negative = [
                name for name, count in msgspec.structs.asdict(event.usage).items() if count < 0
            ]
            if negative:
                yield f"usage below zero: {', '.join(negative)}"


def _block_flaws(events: Sequence[StreamEvent]) -> Iterator[str]:
    """Yield the faults of blocks: each block must start once and must end."""
    open_, seen = set[tuple[str, str]](), set[tuple[str, str]]()
    for event in events:
        name = type(event).__name__
        if (kind := _STARTS.get(type(event))) is not None:
            block = (kind, event.id)  # type: ignore[union-attr]  # all but the finish have one
            if block in seen:
                yield f"{name} starts {block[1]!r} a second time"
            open_.add(block)
            seen.add(block)
        elif (kind := _DELTAS.get(type(event)) or _ENDS.get(type(event))) is not None:
            block = (kind, event.id)  # type: ignore[union-attr]  # likewise
            if block not in open_:
                yield f"{name} of {block[1]!r}, which is not open"
            if type(event) in _ENDS:
                open_.discard(block)
    yield from (f"{kind} {name!r} is not ended" for kind, name in sorted(open_))


def _call_flaws(events: Sequence[StreamEvent]) -> Iterator[str]:
    """Yield the faults of tool calls: each must be complete, unique and match its deltas."""
    written: dict[str, str] = {}
    open_, called = set[str](), set[str]()
    for event in events:
        match event:
            case ToolInputStart():
                open_.add(event.id)
                written.setdefault(event.id, "")
            case ToolInputDelta():
                written[event.id] = written.get(event.id, "") + event.text
            case ToolInputEnd():
                open_.discard(event.id)
            case ToolCall():
                yield from _one_call(event, written.get(event.id), open_, called)
                called.add(event.id)
            case StreamFinish(reason="length" | "content-filter") if called:
                yield f"calls in an answer that was cut off ({event.reason})"
            case StreamFinish(reason="tool-calls") if not called:
                yield "it ends with tool-calls, without a ToolCall"


def _one_call(
    call: ToolCall, written: str | None, open_: set[str], called: set[str]
) -> Iterator[str]:
    if not call.id or not call.name:
        yield f"a call without {'an id' if not call.id else 'a name'}"
    if call.id in open_:
        yield f"ToolCall {call.id!r} comes before its ToolInputEnd"
    if call.id in called:
        yield f"two calls have the id {call.id!r}"
    if written and written != call.input:
        yield f"ToolCall {call.id!r} says other arguments than its pieces"
