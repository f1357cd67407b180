"""A provider made from a function that is an async generator of text and events."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from pegboard.errors import ProviderError
from pegboard.providers import (
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from pegboard.schema.model import Model, ModelApi

Answer = Callable[[ModelRequest], AsyncIterator[str | StreamEvent]]


class FunctionProvider:
    """A provider whose answers come from an async generator; made by `@provider`."""

    def __init__(
        self,
        function: Answer,
        id: str,  # noqa: A002 - the field's name
        models: Sequence[Model | str],
        env: Sequence[str],
    ) -> None:
        self.id = self.name = id
        self.env = tuple(env)
        self.function = function
        self._takes_any = not models
        listed = (self._model(each) for each in models or (id,))
        self._models = {model.id: model for model in listed}
        self.__module__ = function.__module__

    def models(self) -> Sequence[Model]:
        """Return the models that were named, or else one model with the provider's own name."""
        return tuple(self._models.values())

    def resolve(self, model_id: str) -> Model | None:
        """Return the model with this id; without named models, every id is a model."""
        unnamed = self._model(model_id) if self._takes_any else None
        return self._models.get(model_id, unnamed)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Yield the answer as events, including the block starts and ends that the function omits.

        :raises ProviderError: for errors of the function, and for a value that is not an event.
        """
        pieces = _Pieces()
        try:
            async with aclosing(self.function(request)) as answer:  # type: ignore[type-var]  # a generator, as `provider` has checked
                async for piece in answer:
                    for event in pieces.events(piece):
                        yield event
                    if pieces.finished:
                        return
        except ProviderError as error:
            error.provider_id = error.provider_id or self.id
            raise
        for event in pieces.ending():
            yield event

    async def aclose(self) -> None:
        """Return at once, because nothing stays open between answers."""

    def _model(self, model: Model | str) -> Model:
        if isinstance(model, Model):
            return model
        return Model(id=model, provider_id=self.id, name=model, api=ModelApi(id=model))


class _Pieces:
    """The state of a function's answer: the open block, if any, and the calls yielded so far."""

    def __init__(self) -> None:
        self.finished = False
        self._end: TextEnd | ReasoningEnd | None = None
        self._begun = set[str]()
        self._blocks = 0
        self._called = False

    def events(self, piece: object) -> Iterator[StreamEvent]:
        """Yield the events of a value that the function yielded."""
        if not isinstance(piece, str | StreamEvent):
            kind = type(piece).__name__
            raise ProviderError(f"it yielded {kind}: yield str, or an event of pegboard.providers")
        match piece:
            case str():
                yield from self._opened(TextEnd)
                assert self._end is not None
                yield TextDelta(self._end.id, piece)
                return
            case ReasoningDelta() if piece.id not in self._begun:
                yield from self._opened(ReasoningEnd)
                assert self._end is not None
                yield ReasoningDelta(self._end.id, piece.text, piece.metadata)
                return
            case ReasoningStart() | ToolInputStart():
                self._begun.add(piece.id)
            case ToolCall():
                self._called = True
            case StreamFinish():
                self.finished = True
        yield from self._closed()
        if isinstance(piece, ToolCall) and piece.id not in self._begun:
            yield ToolInputStart(piece.id, piece.name)
            yield ToolInputDelta(piece.id, piece.input)
            yield ToolInputEnd(piece.id)
        yield piece

    def ending(self) -> Iterator[StreamEvent]:
        """Yield the events that are still missing at the end of the answer."""
        yield from self._closed()
        yield StreamFinish("tool-calls" if self._called else "stop")

    def _opened(self, kind: type[TextEnd | ReasoningEnd]) -> Iterator[StreamEvent]:
        if isinstance(self._end, kind):
            return
        yield from self._closed()
        self._blocks += 1
        self._end = kind(f"block_{self._blocks}")
        start = TextStart if kind is TextEnd else ReasoningStart
        yield start(self._end.id)

    def _closed(self) -> Iterator[StreamEvent]:
        if self._end is not None:
            yield self._end
        self._end = None


def provider(
    id: str,  # noqa: A002 - the field's name
    *,
    models: Sequence[Model | str] = (),
    env: Sequence[str] = (),
) -> Callable[[Callable[[ModelRequest], Any]], FunctionProvider]:
    """Make a provider of an async generator: `@provider("echo")`.

    The generator yields text as `str`, or events of `pegboard.providers`. Starts and ends of
    blocks, the input events of a `ToolCall` and the `StreamFinish` are added if missing. It may
    raise `ProviderAuthError`, `ContextOverflowError` or `ProviderError`; the page "Write a
    provider" explains them. Any other error ends the turn as a failure of the plugin.

    `models` are the models, by id or as `Model`; without any, every id is a model. `env` are the
    variables that may contain a key.

    :raises TypeError: for a function that is not an async generator.
    """

    def make(function: Callable[[ModelRequest], Any]) -> FunctionProvider:
        if not inspect.isasyncgenfunction(function):
            name = getattr(function, "__qualname__", function)
            text = "is not an async generator; write `async def` with a `yield` in it"
            raise TypeError(f"@provider({id!r}): {name} {text}")
        return FunctionProvider(function, id, models, env)

    return make
