"""One request to a provider, and what came of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pegboard.engine.modelentry import overridden
from pegboard.errors import ProviderError
from pegboard.http.httpprovider import HttpProvider
from pegboard.http.wireformat import Endpoint
from pegboard.providers import (
    ModelMessage,
    ModelRequest,
    Provider,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    ToolCall,
    ToolDefinition,
)
from pegboard.schema.config import Config, ProviderConfig
from pegboard.schema.model import Model
from pegboard_plugins.openai_compatible import provider as chat_provider
from pegboard_plugins.openai_compatible.quirks import Quirks
from support.models import model_server as ms
from support.models.keyed import keys_of

READ = ToolDefinition(
    name="read", description="Reads a file.", parameters={"type": "object"}, permission="read"
)


def user(text: str) -> ModelMessage:
    """What the user says."""
    return ModelMessage(role="user", content=(Text(text=text),))


def request_for(
    model: Model | None, *messages: ModelMessage, idle_timeout_s: float = 5, **facts: Any
) -> ModelRequest:
    """A request to a model, with one tool, that says hello unless given otherwise."""
    assert model
    return ModelRequest(
        model=model,
        system=("You are a test.",),
        messages=messages or (user("Hello"),),
        idle_timeout_s=idle_timeout_s,
        **{"tools": (READ,), **facts},
    )


def model_of(provider: Provider, **said: Any) -> Model:
    """Its model "m", of which a configuration says this."""
    model = provider.resolve("m")
    assert model
    return overridden(model, said)


async def events_of(provider: Provider, request: ModelRequest) -> list[StreamEvent]:
    """All events of the answer."""
    return [event async for event in provider.stream(request)]


def text_of(events: Sequence[StreamEvent]) -> str:
    """The text of an answer."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def provider_at(
    url: str, environ: Mapping[str, str] | None = None, *, key: str = "", **facts: Any
) -> HttpProvider:
    """A provider of one server of chat completions, in an environment of its own."""
    quirks = Quirks(**{name: facts.pop(name) for name in Quirks.__struct_fields__ if name in facts})
    endpoint = Endpoint(id="test", name="Test", url=url, **facts)
    config = Config(provider={"test": ProviderConfig(options={"apiKey": key} if key else {})})
    env = environ or {}
    return chat_provider(endpoint, quirks, environ=env, keys=keys_of(config.provider, env))


async def failure_of(*answer: ms.Answer, idle_timeout_s: float = 5, **facts: Any) -> ProviderError:
    """The error of one request, which no call may come before."""
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url, **facts)
        request = request_for(provider.resolve("m"), idle_timeout_s=idle_timeout_s)
        events = []
        try:
            async for event in provider.stream(request):
                events.append(event)  # noqa: PERF401 - what came before the error is looked at
        except ProviderError as error:
            assert not any(isinstance(event, ToolCall | StreamFinish) for event in events)
            return error
        finally:
            await provider.aclose()
    pytest.fail(f"no error, but {events}")
