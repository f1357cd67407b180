"""What is sent: bodies, headers, and the form that is kept with each message."""

import json
import sys
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard.engine.modelentry import overridden
from pegboard.http.encoding import snake_case
from pegboard.providers import Call, Media, ModelMessage, Reasoning, Result, Text
from pegboard.schema.model import Model, ModelApi
from pegboard_plugins.openai_compatible.quirks import Quirks
from pegboard_plugins.openai_compatible.request import Dialect, encode_request
from support.models import model_server as ms
from support.models.provider_run import READ, events_of, provider_at, request_for, user
from support.tools.media_files import media, pdf, png

IMAGE = media("image/png", png(), "a.png")
PDF = media("application/pdf", pdf())
SOUND = Media(mime="audio/wav", url="data:audio/wav;base64,aGk=")


def _model(**facts: Any) -> Model:
    bare = Model(id="m", provider_id="test", name="m", api=ModelApi(id="m"))
    return overridden(bare, facts)


def _seeing() -> Model:
    return _model(modalities={"input": ["text", "image", "pdf", "audio"], "output": ["text"]})


async def _sent(model: Model, *messages: ModelMessage, **facts: Any) -> dict[str, Any]:
    options = facts.pop("request", {})
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url, **facts)
        await events_of(provider, request_for(model, *messages, **options))
        await provider.aclose()
        return server.requests[0]


def _assistant(*content: Any) -> ModelMessage:
    return ModelMessage(role="assistant", content=content)


def _results(*content: Any) -> ModelMessage:
    return ModelMessage(role="tool", content=content)


async def test_a_whole_request() -> None:
    sent = await _sent(
        _model(),
        user("Hello"),
        _assistant(
            Reasoning(text="Hm."), Text(text="I read."), Call(id="c", name="read", input={"a": 1})
        ),
        _results(Result(id="c", name="read", output="content")),
        request={"temperature": 0.0, "max_output_tokens": 9, "options": {"reasoningEffort": "low"}},
    )

    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}}
    function = {"name": "read", "description": READ.description, "parameters": {"type": "object"}}
    assert sent == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": function}],
        "temperature": 0.0,
        "max_tokens": 9,
        "reasoning_effort": "low",
        "messages": [
            {"role": "system", "content": "You are a test."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "I read.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "content"},
        ],
    }


async def test_the_system_prompt_is_one_message() -> None:
    request = replace(request_for(_model(), user("Hello")), system=("One.", "", "Two."))

    body = json.loads(encode_request(request, Dialect()))

    assert body["messages"][0] == {"role": "system", "content": "One.\n\nTwo."}
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


async def test_a_message_is_encoded_once() -> None:
    message = user("Hello")
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url)
        await events_of(provider, request_for(_model(), message))
        kept = dict(message.encoded)
        await events_of(provider, request_for(_model(), message))
        await provider.aclose()

    assert list(kept.values()) == [b'{"role":"user","content":"Hello"}']
    assert all(message.encoded[key] is value for key, value in kept.items())


def calls_of_an_encoding(messages: int, *, dialect: Dialect) -> int:
    """The functions of Python that a request calls all of whose messages are kept."""
    request = request_for(_model(), *(user(str(number)) for number in range(messages)))
    encode_request(request, replace(dialect))
    calls = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        encode_request(request, dialect)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("short_ids", [False, True])
def test_a_kept_message_costs_no_call(*, short_ids: bool) -> None:
    few, many = (Dialect(quirks=Quirks(short_ids=short_ids)) for _ in range(2))

    assert calls_of_an_encoding(2, dialect=few) == calls_of_an_encoding(1000, dialect=many)


async def test_models_with_other_rules_keep_forms_of_their_own() -> None:
    message = ModelMessage(role="user", content=(IMAGE,))

    await _sent(_model(), message)
    sent = await _sent(_seeing(), message)

    assert sent["messages"][1]["content"][0]["type"] == "image_url"
    assert len(message.encoded) == 2


async def test_media_that_a_model_takes() -> None:
    message = ModelMessage(role="user", content=(Text(text="Look"), IMAGE, PDF, SOUND))

    sent = await _sent(_seeing(), message)

    file = {"filename": "document.pdf", "file_data": PDF.url}
    assert sent["messages"][1]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": IMAGE.url}},
        {"type": "file", "file": file},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    ]


@pytest.mark.parametrize(
    ("media", "reason"),
    [
        (IMAGE, '"a.png" was left out, because this model does not read image input'),
        (SOUND, "a file of type audio/wav was left out"),
    ],
)
async def test_media_that_a_model_does_not_take_become_a_note(media: Media, reason: str) -> None:
    sent = await _sent(_model(), ModelMessage(role="user", content=(media,)))

    assert reason in sent["messages"][1]["content"]
    assert "Tell the user" in sent["messages"][1]["content"]


async def test_an_empty_image_becomes_a_note() -> None:
    empty = Media(mime="image/png", url="data:image/png;base64,")

    sent = await _sent(_seeing(), ModelMessage(role="user", content=(empty,)))

    assert "empty or damaged" in sent["messages"][1]["content"]


async def test_media_of_a_tool_follow_as_the_user_s() -> None:
    sent = await _sent(
        _seeing(),
        user("Hello"),
        _assistant(Call(id="c", name="read", input={})),
        _results(Result(id="c", name="read", output="an image", media=(IMAGE,))),
    )

    *_, result, attached = sent["messages"]
    assert result == {"role": "tool", "tool_call_id": "c", "content": "an image"}
    assert attached["role"] == "user"
    assert attached["content"][1] == {"type": "image_url", "image_url": {"url": IMAGE.url}}


async def test_mistral_s_rules_for_ids_and_order() -> None:
    sent = await _sent(
        _model(),
        user("Hello"),
        _assistant(Call(id="call_read_0", name="read", input={})),
        _results(Result(id="call_read_0", name="read", output="x")),
        user("And?"),
        short_ids=True,
    )

    _, _, call, result, filler, _ = sent["messages"]
    given = call["tool_calls"][0]["id"]
    assert result["tool_call_id"] == given
    assert (len(given), given.isalnum()) == (9, True)
    assert filler["role"] == "assistant"


async def test_reasoning_goes_back_where_a_model_wants_it() -> None:
    model = _model(interleaved={"field": "reasoning_content"})

    sent = await _sent(model, user("Hi"), _assistant(Reasoning(text="Hm."), Text(text="Yes.")))

    assert sent["messages"][2] == {
        "role": "assistant",
        "content": "Yes.",
        "reasoning_content": "Hm.",
    }


async def test_a_model_without_a_temperature_gets_none() -> None:
    sent = await _sent(_model(temperature=False), request={"temperature": 0.5, "top_p": 0.9})

    assert "temperature" not in sent
    assert "top_p" not in sent


async def test_options_of_the_request_win_over_the_provider_s() -> None:
    sent = await _sent(_model(), options={"seed": 1, "topK": 5}, request={"options": {"seed": 2}})

    assert (sent["seed"], sent["top_k"]) == (2, 5)


async def test_openai_s_own_spelling_and_cache() -> None:
    sent = await _sent(
        _model(),
        limit_field="max_completion_tokens",
        cache_key=True,
        usage_option=False,
        request={"max_output_tokens": 7, "session_id": "ses_1"},
    )

    assert (sent["max_completion_tokens"], sent["prompt_cache_key"]) == (7, "ses_1")
    assert "stream_options" not in sent


async def test_headers_and_the_order_in_which_they_win() -> None:
    model = _model(headers={"X-Two": "model", "X-Three": "model"})
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(
            server.url,
            {"TEST_KEY": "sk-1"},
            env=("TEST_KEY",),
            headers={"X-One": "1", "X-Two": "2"},
        )
        await events_of(provider, request_for(model, headers={"x-three": "request"}))
        await provider.aclose()
        sent = server.headers[0]

    assert sent["authorization"] == "Bearer sk-1"
    assert (sent["x-one"], sent["x-two"], sent["x-three"]) == ("1", "model", "request")
    assert server.paths == ["/v1/chat/completions"]


async def test_a_query_of_the_base_url_stays_at_the_end() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(f"{server.url}/deployments/d/?api-version=1")
        await events_of(provider, request_for(_model()))
        await provider.aclose()

    assert server.paths == ["/v1/deployments/d/chat/completions?api-version=1"]


@pytest.mark.parametrize(
    ("name", "spelt"),
    [("reasoningEffort", "reasoning_effort"), ("top_k", "top_k"), ("topK", "top_k")],
)
def test_options_are_spelt_as_the_server_does(name: str, spelt: str) -> None:
    assert snake_case(name) == spelt
