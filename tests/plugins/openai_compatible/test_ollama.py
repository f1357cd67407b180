"""Ollama reads what its window holds: a longer request is told of, and not cut off in silence."""

import json
from typing import Any

import pytest

from pegboard.errors import ContextOverflowError
from support.models import model_server as ms
from support.models.provider_run import events_of, provider_at, request_for, text_of, user

LONG = user("word " * 4000)


def _script(loaded: list[dict[str, Any]] | None) -> ms.Script:
    """Ollama, with these models loaded; None is a server that does not say."""

    def script(body: ms.Body) -> ms.Answer:
        if body:
            return ms.say("hi")
        content = json.dumps({"models": loaded}).encode()
        head = {"content-type": "application/json", "content-length": str(len(content))}
        return [ms.Status(code=200 if loaded is not None else 404, headers=head), content]

    return script


async def _said(loaded: list[dict[str, Any]] | None) -> str:
    async with ms.ModelServer(_script(loaded)) as server:
        provider = provider_at(server.url, silent_window=True)
        try:
            events = await events_of(provider, request_for(provider.resolve("qwen3"), LONG))
        finally:
            await provider.aclose()
        assert server.paths == ["/api/ps", "/v1/chat/completions"]
        assert server.connections == 1
    return text_of(events)


@pytest.mark.parametrize(
    "loaded",
    [
        None,
        [],
        [{"name": "qwen3:latest", "context_length": 32_768}],
        [{"name": "other", "context_length": 512}],
        [{"name": "qwen3"}],
    ],
    ids=["no answer", "not loaded", "wide enough", "another model", "of old"],
)
async def test_a_request_that_fits_or_may_fit_is_sent(loaded: list[dict[str, Any]] | None) -> None:
    assert await _said(loaded) == "hi"


async def test_a_request_that_would_be_cut_off_is_too_long() -> None:
    loaded = [{"name": "qwen3:latest", "context_length": 4096}]

    with pytest.raises(ContextOverflowError, match=r"reads 4,096 tokens.*OLLAMA_CONTEXT_LENGTH"):
        await _said(loaded)
