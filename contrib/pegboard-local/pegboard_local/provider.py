"""The provider of the models on this machine."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.errors import ContextOverflowError, ProviderError
from pegboard.http import count_in
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, Usage
from pegboard.schema.model import Capabilities, Model, ModelApi, ModelCost, ModelLimit
from pegboard.unstable import mapping_in
from pegboard_local.settings import ID, LocalOptions, is_tiny
from pegboard_local.weights import PACKAGES, packaged, read_head

if TYPE_CHECKING:
    from pegboard_local.process import Chunk, ModelProcess

CONTEXT_TOKENS = 16_384
"""The most that a window is given memory for unless the user says otherwise."""
ANSWER_SHARE = 16
"""An answer may have this part of the window: a small model goes round in circles until then."""
MOST_THREADS = 8
"""More do not make one answer faster: memory is what it waits for."""


class Local:
    """The provider of models that run on the CPU."""

    def __init__(self, options: LocalOptions) -> None:
        self._options = options
        self._found: dict[str, Model | None] = {}
        self._processes: dict[str, ModelProcess] = {}

    @property
    def id(self) -> str:
        """The provider's id in `provider/model`."""
        return ID

    @property
    def name(self) -> str:
        """The provider's display name."""
        return "On this machine"

    @property
    def env(self) -> Sequence[str]:
        """The environment variables with an API key: none, because local models need no key."""
        return ()

    def models(self) -> Sequence[Model]:
        """Return the models with installed weights, and the models in the plugin's options."""
        installed = [name for name in PACKAGES if packaged(name)]
        named = dict.fromkeys((*installed, *self._options.models))
        return tuple(model for name in named if (model := self.resolve(name)))

    def resolve(self, model_id: str) -> Model | None:
        """Return a packaged model, a model of the options or a model by path; else None."""
        if model_id not in self._found:
            self._found[model_id] = self._model(model_id)
        return self._found[model_id]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the model's answer; closing the iterator cancels the request.

        :raises ContextOverflowError: when the request is longer than the window.
        :raises ProviderError: when the model cannot be loaded, or its process fails.
        """
        from pegboard_local.answer import LocalAnswer
        from pegboard_local.dialogue import messages_of, schema_of

        tiny = is_tiny(request.model)
        schema = schema_of(request.tools, tiny=tiny)
        body = _body(request, messages_of(request, tiny=tiny), schema)
        answer, reason, usage = LocalAnswer(is_json=schema is not None), "", None
        chunks = self._process(request.model).ask(body, idle_timeout_s=request.idle_timeout_s)
        async with aclosing(chunks):
            async for chunk in chunks:
                _refuse(chunk)
                for choice in chunk.get("choices", ()):
                    reason = choice.get("finish_reason") or reason
                    if piece := choice["delta"].get("content"):
                        for event in answer.read(piece):
                            yield event
                usage = _usage(chunk) or usage
        cut = reason == "length"
        for event in answer.end(whole=not cut):
            yield event
        yield StreamFinish("length" if cut else "tool-calls" if answer.called else "stop", usage)

    async def aclose(self) -> None:
        """End the processes of all models."""
        for process in self._processes.values():
            await process.aclose()

    def _path(self, model_id: str) -> Path | None:
        """Return the path of a model's weights, or None if the model is unknown."""
        if named := self._options.models.get(model_id):
            return Path(named).expanduser()
        if model_id in PACKAGES:
            return packaged(model_id)
        path = Path(model_id).expanduser()
        return path if path.is_absolute() and path.suffix == ".gguf" else None

    def _model(self, model_id: str) -> Model | None:
        path = self._path(model_id)
        if path is None and model_id not in PACKAGES:
            return None
        name, context = model_id, None
        if path is not None:
            try:
                head = read_head(path)
            except (OSError, ValueError):
                head = None  # it is told when the model is asked
            if head is not None:
                name, context = head.name or model_id, self._window(head.context)
        return Model(
            id=model_id,
            provider_id=ID,
            name=name,
            api=ModelApi(id=model_id),
            capabilities=Capabilities(),
            cost=ModelCost(input=0, output=0),
            limit=ModelLimit(context=context, output=context and context // ANSWER_SHARE),
        )

    def _window(self, trained: int | None) -> int | None:
        """Return the context window to use, at most `trained`; None if `trained` is None."""
        return trained and min(trained, self._options.context or CONTEXT_TOKENS)

    def _process(self, model: Model) -> "ModelProcess":
        """Return the process for a model; the process starts with its first request.

        :raises ProviderError: when there are no weights.
        """
        from pegboard_local.process import ModelProcess

        if model.id not in self._processes:
            path = self._path(model.id)
            if path is None:
                install = PACKAGES[model.id].install
                text = f"local: the weights of {model.id} are not installed: `{install}`"
                raise ProviderError(text, provider_id=ID)
            try:
                head = read_head(path)
            except (OSError, ValueError) as error:
                raise ProviderError(f"local/{model.id}: {error}", provider_id=ID) from error
            self._processes[model.id] = ModelProcess(
                path,
                context=self._window(head.context) or self._options.context or CONTEXT_TOKENS,
                threads=self._options.threads or min(MOST_THREADS, os.cpu_count() or 1),
            )
        return self._processes[model.id]


def _body(
    request: ModelRequest, chat: list[dict[str, str]], schema: Mapping[str, Any] | None
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": chat,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "temperature": request.temperature or 0,
        "max_tokens": request.max_output_tokens or request.model.limit.output,
    }
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    return body


def _refuse(chunk: "Chunk") -> None:
    """Raise the error that a chunk contains, if any."""
    if "error" not in chunk:
        return
    error = chunk["error"]
    kind = ContextOverflowError if error.get("type") == _TOO_LONG else ProviderError
    raise kind(f"local: {error['message']}", provider_id=ID)


_TOO_LONG = "exceed_context_size_error"


def _usage(chunk: "Chunk") -> Usage | None:
    counts = mapping_in(chunk.get("usage"))
    if not counts:
        return None
    cached = count_in(mapping_in(counts.get("prompt_tokens_details")), "cached_tokens")
    return Usage(
        input=max(0, count_in(counts, "prompt_tokens") - cached),
        output=count_in(counts, "completion_tokens"),
        cache_read=cached,
    )
