"""The table of faults that every HTTP provider is held to, with the frames of OpenAI."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from pegboard.errors import ProviderError
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from pegboard.schema.model import Model, ModelApi
from pegboard.testing import check_provider, check_provider_faults
from pegboard.testing.provider_faults import IDLE_S, faults
from pegboard.testing.scriptedserver import ScriptedServer
from pegboard.testing.wireframes import End, Refusal
from support.models.provider_run import provider_at

_ENDS = {"tool-calls": "tool_calls", "content-filter": "content_filter"}
_CODES: dict[Refusal, str | int] = {
    "auth": 401,
    "overflow": "context_length_exceeded",
    "quota": "insufficient_quota",
    "policy": "content_policy_violation",
    "overloaded": 503,
    "invalid": 400,
}


class OpenAIFrames:
    """Chat completions, as their servers write them."""

    def start(self) -> bytes:
        return _event({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})

    def text(self, text: str) -> bytes:
        return _event({"choices": [{"index": 0, "delta": {"content": text}}]})

    def call(self, call_id: str, name: str, arguments: str, *, index: int = 0) -> bytes:
        function = {"name": name, "arguments": arguments}
        called = {"index": index, "id": call_id, "type": "function", "function": function}
        return _event({"choices": [{"index": 0, "delta": {"tool_calls": [called]}}]})

    def cut_call(self, call_id: str, name: str, arguments: str) -> bytes:
        return self.call(call_id, name, arguments)

    def end(self, reason: End, *, usage: tuple[int, int] | None = (10, 5)) -> bytes:
        finish = _ENDS.get(reason, reason)
        ended = _event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        counts = b""
        if usage is not None:
            names = ("prompt_tokens", "completion_tokens")
            counts = _event({"choices": [], "usage": dict(zip(names, usage, strict=True))})
        return ended + counts + b"data: [DONE]\n\n"

    def error(self, refusal: Refusal, message: str) -> bytes:
        return json.dumps({"error": {"message": message, "code": _CODES[refusal]}}).encode()

    def error_event(self, refusal: Refusal, message: str) -> bytes:
        return b"data: " + self.error(refusal, message) + b"\n\n"

    def stray(self) -> bytes:
        return b'event: weather\ndata: {"sunny": true}\n\n'


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def test_the_table_has_forty_faults() -> None:
    names = [each.name for each in faults(OpenAIFrames())]

    assert len(names) == len(set(names))
    assert len(names) + 4 >= 40


async def test_the_provider_holds_the_table() -> None:
    def make(url: str) -> Any:
        return provider_at(url, timeout_s=IDLE_S, key="sk-secret")

    assert await check_provider_faults(make, OpenAIFrames(), model="m") == ()


class Naive:
    """A provider as a first draft of one is: it reads what comes, and calls every error one."""

    id, name, env = "test", "Naive", ()

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(
            base_url=url, timeout=IDLE_S, follow_redirects=True, verify=False
        )

    def models(self) -> tuple[Model, ...]:
        return (Model(id="m", provider_id="test", name="M", api=ModelApi(id="m")),)

    def resolve(self, model_id: str) -> Model:
        return self.models()[0]

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        try:
            async with self._client.stream("POST", "/chat/completions", json={}) as answer:
                answer.raise_for_status()
                yield TextStart("0")
                async for line in answer.aiter_lines():
                    if line.startswith("data: {"):
                        delta = json.loads(line[6:])["choices"][0]["delta"]
                        yield TextDelta("0", delta.get("content", ""))
                        for each in delta.get("tool_calls", ()):
                            called = each["function"]
                            yield ToolCall(each["id"], called["name"], called["arguments"])
                yield TextEnd("0")
                yield StreamFinish("stop")
        except httpx.HTTPError as error:
            raise ProviderError(str(error), provider_id="test", retryable=True) from error

    async def aclose(self) -> None:
        await self._client.aclose()


MISSED = {
    "429 with retry-after",
    "429 for a used up quota",
    "400",
    "401",
    "413",
    "400 for a request that is too long",
    "500 for its content policy",
    "an end without a last event, in the text",
    "an end without a last event, in a call",
    "a cut in a call's arguments",
    "broken JSON in an event",
    "a call that was cut for its length",
    "a text that was cut for its length",
    "a login page",
    "an error in the stream: overloaded",
    "a gzip bomb",
    "two calls",
    "a redirect",
}


@pytest.mark.long
async def test_a_first_draft_of_a_provider_is_told_what_it_misses() -> None:
    found = await check_provider_faults(Naive, OpenAIFrames(), model="m")

    assert MISSED - {each.rule for each in found} == set()
    assert "one byte at a time" not in {each.rule for each in found if "HTTP" in each.text}


async def test_the_provider_conforms() -> None:
    wire = OpenAIFrames()
    whole = wire.start() + wire.text("hi") + wire.end("stop")
    async with ScriptedServer((whole,)) as server:
        provider = provider_at(server.url, key="sk-secret")

        assert await check_provider(provider, models=["m"]) == ()

        await provider.aclose()
