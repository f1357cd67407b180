"""A model that follows a script of a test.

A script is a list; each item is the model's answer to one request:

- `"done"`: a text.
- `("select", {"table": "ships"})`: a tool call. Arguments given as a text are sent unchanged,
  valid JSON or not.
- `["I look.", ("select", {...}), ("count", {...})]`: several of these in one answer, in order.
- `CANCEL`: the user stops the turn here; after calls, once these have begun their work.
- an exception, such as `ProviderError("busy", retryable=True)`: the request fails with it.
- a `StreamEvent`, such as `StreamFinish("length")`: it is sent unchanged.
- a function: it gets the `ModelRequest` and returns one of the above.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, get_args

from pegboard.errors import ProviderError
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from pegboard.schema.model import Capabilities, Modalities, Model, ModelApi, ModelLimit

PROVIDER = "test"
MODEL = Model(
    id="model",
    provider_id=PROVIDER,
    name="Scripted model of a test",
    api=ModelApi(id="model"),
    capabilities=Capabilities(attachment=True, input=Modalities(image=True, pdf=True)),
    limit=ModelLimit(context=200_000, output=32_000),
)
_USAGE = Usage(input=10, output=5)


class Cue(Enum):
    """An item of a script other than an answer: at `CANCEL`, the user stops the running turn."""

    CANCEL = "cancel"


CANCEL: Final = Cue.CANCEL
Piece = str | tuple[str, Mapping[str, Any] | str] | Cue | Exception | StreamEvent
Answer = Piece | list[Piece] | Callable[[ModelRequest], "Piece | list[Piece]"]
Script = Sequence[Answer]
Cancel = Callable[[str, Sequence[str]], Awaitable[None]]
"""Stops a session's turn, once the calls of these ids are at work."""


class ScriptedModel:
    """The provider `test`, with one model that follows a script: `test/model`.

    `requests` has the requests received. When the script has no answer left, a request fails with a
    text that says so.
    """

    id = PROVIDER
    name = "Scripted"
    env: tuple[str, ...] = ()

    def __init__(self, script: Script, *, cancel: Cancel | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self._script = tuple(script)
        self._cancel = cancel

    def models(self) -> tuple[Model, ...]:
        """Return the model that follows the script."""
        return (MODEL,)

    def resolve(self, model_id: str) -> Model | None:
        """Return the model that follows the script, or None for any other model id."""
        return MODEL if model_id == MODEL.id else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Yield the events of the script's next answer.

        :raises ProviderError: when the script has no answer left.
        """
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self._script):
            text = f"the script has {number} answers, and the model is asked once more"
            raise ProviderError(text, provider_id=PROVIDER)
        answer = self._script[number]
        if callable(answer):
            answer = answer(request)
        ended, called = False, list[str]()
        for place, piece in enumerate(answer if isinstance(answer, list) else [answer]):
            if isinstance(piece, Exception):
                raise piece
            if piece is CANCEL:
                await self._stop(request, called)
            for event in _events(piece, f"{number}_{place}"):
                ended = isinstance(event, StreamFinish)
                if isinstance(event, ToolCall):
                    called.append(event.id)
                yield event
        if not ended:
            yield StreamFinish("tool-calls" if called else "stop", _USAGE)

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    async def _stop(self, request: ModelRequest, called: Sequence[str]) -> None:
        if self._cancel is None:
            raise ProviderError("the script has no App that could cancel", provider_id=PROVIDER)
        await self._cancel(request.session_id, called)


def _events(piece: Piece, name: str) -> Iterator[StreamEvent]:
    match piece:
        case str():
            yield TextStart(name)
            yield TextDelta(name, piece)
            yield TextEnd(name)
        case (str(tool), arguments):
            written = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
            call_id = f"call_{name}"
            yield ToolInputStart(call_id, tool)
            yield ToolInputDelta(call_id, written)
            yield ToolInputEnd(call_id)
            yield ToolCall(call_id, tool, written)
        case _ if isinstance(piece, get_args(StreamEvent)):
            yield piece
        case _:
            raise TypeError(f"{piece!r} is nothing that a script can say")
