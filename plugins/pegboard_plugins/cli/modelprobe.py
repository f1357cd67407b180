"""A test of a model's abilities by requests to it."""

import asyncio
import json
import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pegboard.errors import ProviderError
from pegboard.providers import (
    Media,
    ModelMessage,
    ModelRequest,
    StreamFinish,
    Text,
    TextDelta,
    ToolCall,
    ToolDefinition,
)

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.providers import StreamEvent
    from pegboard.schema.model import Model

LIMIT_S = 120.0
"""How long an answer may take."""
_ANSWER_TOKENS = 2_000
"""The maximum length of an answer, with room for reasoning."""
_RED = (255, 0, 0)
_SIDE = 32


class ProbeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check: `fails` means unusable, `warns` means usable with restrictions."""

    what: str
    state: Literal["ok", "warns", "fails"]
    text: str


async def probe(app: "App", name: str) -> tuple[ProbeFinding, ...]:
    """Ask the model for a text, a tool call and the colour of a picture; check its known facts.

    :raises ModelNotFoundError: when no provider serves the model.
    :raises ProviderError: when the model cannot be asked at all.
    """
    model = await app.resolve_model(name)
    findings = [await _probe_text(app, model), await _call(app, model), await _picture(app, model)]
    return (*findings, *_list_facts(model))


async def _probe_text(app: "App", model: "Model") -> ProbeFinding:
    began = monotonic()
    events = await _ask(app, model, "Answer with the one word: ready")
    text, usage = _answer_text(events), _usage(events)
    seconds = monotonic() - began
    if not text:
        return ProbeFinding(what="text", state="fails", text="the answer has no text")
    told = "" if usage else "; it does not say how many tokens it used, so they are estimated"
    state: Literal["ok", "warns"] = "ok" if usage else "warns"
    return ProbeFinding(what="text", state=state, text=f"answered in {seconds:.1f} s{told}")


async def _call(app: "App", model: "Model") -> ProbeFinding:

    numbers = {name: {"type": "integer"} for name in ("a", "b")}
    tool = ToolDefinition(
        name="add",
        description="Add two numbers.",
        parameters={"type": "object", "properties": numbers, "required": ["a", "b"]},
        permission="add",
    )
    question = "Call the tool `add` with a = 2 and b = 3. Do not work it out yourself."
    try:
        events = await _ask(app, model, question, tools=(tool,))
    except ProviderError as error:
        return ProbeFinding(what="tools", state="fails", text=f"refused with tools: {error}")
    calls = [event for event in events if isinstance(event, ToolCall)]
    if not calls:
        text = "it called no tool, so it can answer and do nothing else"
        return ProbeFinding(what="tools", state="fails", text=text)
    if calls[0].name != "add" or _object(calls[0].input) != {"a": 2, "b": 3}:
        text = f"it called {calls[0].name} with {calls[0].input:.80}"
        return ProbeFinding(what="tools", state="warns", text=text)
    return ProbeFinding(what="tools", state="ok", text="called a tool with the right arguments")


async def _picture(app: "App", model: "Model") -> ProbeFinding:

    if not model.capabilities.input.image:
        text = "it may not take pictures: a note replaces each of them"
        return ProbeFinding(what="pictures", state="warns", text=text)
    url = f"data:image/png;base64,{b64encode(_square()).decode()}"
    media = Media(mime="image/png", url=url, filename="square.png")
    question = "Which colour is the square? Answer with one word."
    try:
        text = _answer_text(await _ask(app, model, question, media=(media,)))
    except ProviderError as error:
        return ProbeFinding(what="pictures", state="fails", text=f"refused with a picture: {error}")
    if "red" not in text.lower():
        return ProbeFinding(what="pictures", state="warns", text=f"it took red for {text:.40}")
    return ProbeFinding(what="pictures", state="ok", text="saw the colour of a square")


def _list_facts(model: "Model") -> Iterator[ProbeFinding]:
    limit = model.limit
    window = limit.input or limit.context
    if window is None:
        text = "unknown: a session is compacted only once a request was too long"
        yield ProbeFinding(what="window", state="warns", text=text)
    else:
        yield ProbeFinding(what="window", state="ok", text=f"{window:,} tokens")
    if model.cost is None:
        text = "unknown: costs are not counted, and a budget in dollars refuses it"
        yield ProbeFinding(what="price", state="warns", text=text)
    else:
        text = f"${model.cost.input:g} in, ${model.cost.output:g} out for a million tokens"
        yield ProbeFinding(what="price", state="ok", text=text)
    if model.status == "deprecated":
        yield ProbeFinding(what="status", state="warns", text="its provider will take it away")


async def _ask(app: "App", model: "Model", text: str, **more: Any) -> "list[StreamEvent]":  # noqa: ANN401 - tools or media
    """Send the text to the model, and return the events of the model's answer.

    :raises ProviderError: when there is no answer.
    """
    content = (Text(text=text), *more.pop("media", ()))
    request: ModelRequest = ModelRequest(
        model=model,
        system=("You are asked whether you work. Do what you are told, in few words.",),
        messages=(ModelMessage(role="user", content=content),),
        max_output_tokens=min(model.limit.output or _ANSWER_TOKENS, _ANSWER_TOKENS),
        options=model.options,
        headers=model.headers,
        session_id="doctor",
        **more,
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            return [event async for event in app.providers[model.provider_id].stream(request)]
    except TimeoutError as error:
        raise ProviderError(
            f"no answer within {LIMIT_S:g} s", provider_id=model.provider_id
        ) from error


def _answer_text(events: "list[StreamEvent]") -> str:

    return "".join(event.text for event in events if isinstance(event, TextDelta)).strip()


def _usage(events: "list[StreamEvent]") -> bool:

    return any(isinstance(event, StreamFinish) and event.usage is not None for event in events)


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _square() -> bytes:
    """Return a red square as a PNG."""
    line = b"\0" + bytes(_RED) * _SIDE
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    pieces = ((b"IHDR", header), (b"IDAT", zlib.compress(line * _SIDE)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*piece) for piece in pieces)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check
