"""One request to a provider, and what came of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.contract.providers import (
    ModelMessage,
    ModelRequest,
    Provider,
    StreamEvent,
    Text,
    TextDelta,
    ToolDefinition,
)
from pegboard.schema.model import Model
from pegboard_plugins.openai_compatible.provider import Endpoint, OpenAICompatible

READ = ToolDefinition(
    name="read", description="Reads a file.", parameters={"type": "object"}, permission="read"
)


def user(text: str) -> ModelMessage:
    """What the user says."""
    return ModelMessage(role="user", content=(Text(text=text),))


def request_for(
    model: Model | None, *messages: ModelMessage, idle_timeout_s: float = 5, **facts: Any
) -> ModelRequest:
    """A request to a model, with one tool, that says hello unless told otherwise."""
    assert model
    return ModelRequest(
        model=model,
        system=("You are a test.",),
        messages=messages or (user("Hello"),),
        tools=(READ,),
        idle_timeout_s=idle_timeout_s,
        **facts,
    )


async def events_of(provider: Provider, request: ModelRequest) -> list[StreamEvent]:
    """All events of the answer."""
    return [event async for event in provider.stream(request)]


def text_of(events: Sequence[StreamEvent]) -> str:
    """The text of an answer."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def provider_at(
    url: str, environ: Mapping[str, str] | None = None, **facts: Any
) -> OpenAICompatible:
    """A provider of one server, in an environment of its own."""
    return OpenAICompatible(Endpoint(id="test", name="Test", url=url, **facts), environ or {})
