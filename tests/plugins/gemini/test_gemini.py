"""Gemini's own API: what is sent, and what comes of an answer."""

import json
from base64 import b64encode
from typing import Any

import pytest

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.http.httpprovider import HttpProvider
from pegboard.providers import (
    Call,
    Heartbeat,
    ModelMessage,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Result,
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
    Usage,
)
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.gemini import register_providers
from support.models import gemini_frames as frames
from support.models import model_server as ms
from support.models.keyed import keys_of
from support.models.provider_run import READ, events_of, request_for, text_of, user
from support.models.vendor_types import check_gemini
from support.tools.media_files import media, png

OLD, NEW = "gemini-2.5-pro", "gemini-3-pro-preview"
IMAGE = media("image/png", png(), "a.png")
COUNTS = Usage(input=10, output=7, reasoning=4, cache_read=20)
SIGNED = {"gemini": {"signature": frames.SIGNATURE}}


async def _asked(
    answer: ms.Answer, *messages: ModelMessage, model: str = OLD, **facts: Any
) -> tuple[list[StreamEvent], ms.ModelServer]:
    async with ms.ModelServer(ms.in_order(answer)) as server:
        options = {"baseURL": server.url, "apiKey": "AIza-test-key", **facts.pop("options", {})}
        config = Config(provider={"gemini": ProviderConfig(options=options)})
        provider, _ = await register_providers(config, {}, keys_of(config.provider))
        assert isinstance(provider, HttpProvider)
        try:
            events = await events_of(
                provider, request_for(provider.resolve(model), *messages, **facts)
            )
        finally:
            await provider.aclose()
    check_gemini(server.requests[0])
    return events, server


async def _events(answer: ms.Answer) -> list[StreamEvent]:
    return (await _asked(answer))[0]


async def _sent(*messages: ModelMessage, **facts: Any) -> dict[str, Any]:
    return (await _asked(frames.say("hi"), *messages, **facts))[1].requests[0]


def _said(*content: Any) -> ModelMessage:
    return ModelMessage(role="assistant", content=content)


def _results(*content: Any) -> ModelMessage:
    return ModelMessage(role="tool", content=content)


async def test_a_whole_request() -> None:
    body = await _sent(
        user("Hello"),
        _said(
            Reasoning(text="Hm."),
            Text(text="I read.", metadata={"gemini": {"signature": "dGV4dA=="}}),
            Call(id="c", name="read", input={"a": 1}, metadata=SIGNED),
        ),
        _results(Result(id="c", name="read", output="content")),
        model=NEW,
        temperature=0.5,
        max_output_tokens=900,
        options={"reasoningEffort": "low", "topK": 4},
    )

    declaration = {
        "name": "read",
        "description": READ.description,
        "parametersJsonSchema": {"type": "object"},
    }
    assert body == {
        "systemInstruction": {"parts": [{"text": "You are a test."}]},
        "tools": [{"functionDeclarations": [declaration]}],
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 900,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
            "topK": 4,
        },
        "contents": [
            {"role": "user", "parts": [{"text": "Hello"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I read.", "thoughtSignature": "dGV4dA=="},
                    {
                        "functionCall": {"name": "read", "args": {"a": 1}},
                        "thoughtSignature": frames.SIGNATURE,
                    },
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "read", "response": {"output": "content"}}}
                ],
            },
        ],
    }


async def test_the_model_is_in_the_path_and_the_key_in_a_header() -> None:
    _, server = await _asked(frames.say("hi"))

    assert server.paths == [f"/v1/models/{OLD}:streamGenerateContent?alt=sse"]
    assert server.headers[0]["x-goog-api-key"] == "AIza-test-key"


async def test_the_first_call_that_another_model_made_is_excused_from_its_signature() -> None:
    calls = [Call(id=name, name="read", input={}) for name in ("a", "b")]
    results = [Result(id=name, name="read", output="x") for name in ("a", "b")]

    new = await _sent(user("Hi"), _said(*calls), _results(*results), model=NEW)
    old = await _sent(user("Hi"), _said(*calls), _results(*results), model=OLD)

    signatures = [part.get("thoughtSignature") for part in new["contents"][1]["parts"]]
    assert signatures == ["skip_thought_signature_validator", None]
    assert "thoughtSignature" not in str(old)


@pytest.mark.parametrize(
    ("model", "options", "thinking"),
    [
        (OLD, {}, {"includeThoughts": True}),
        (OLD, {"effort": "medium"}, {"includeThoughts": True, "thinkingBudget": 8192}),
        (NEW, {"effort": "high"}, {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-2.0-flash", {"effort": "high"}, None),
        (
            OLD,
            {"thinkingConfig": {"thinkingBudget": 7, "includeThoughts": False}},
            {"thinkingBudget": 7, "includeThoughts": False},
        ),
        (
            NEW,
            {"thinkingConfig": {"thinkingBudget": 7}, "effort": "low"},
            {"includeThoughts": True, "thinkingLevel": "low"},
        ),
        (
            OLD,
            {"thinkingConfig": {"thinkingLevel": "low"}, "effort": "medium"},
            {"includeThoughts": True, "thinkingBudget": 8192},
        ),
    ],
)
async def test_how_much_a_model_is_to_think(
    model: str, options: dict[str, Any], thinking: dict[str, Any] | None
) -> None:
    body = await _sent(model=model, options=options)

    assert body.get("generationConfig", {}).get("thinkingConfig") == thinking


async def test_pictures_of_tools_are_inside_where_the_model_reads_them_there() -> None:
    result = Result(id="c", name="read", output="one", media=(IMAGE,))
    history = (user("Hi"), _said(Call(id="c", name="read", input={})), _results(result))
    picture = {"inlineData": {"mimeType": "image/png", "data": b64encode(png()).decode()}}

    new, old = await _sent(*history, model=NEW), await _sent(*history, model=OLD)

    (inside,) = new["contents"][2]["parts"]
    assert inside["functionResponse"]["parts"] == [picture]
    assert old["contents"][2]["parts"][1] == picture


async def test_a_picture_that_the_model_cannot_take_becomes_a_note() -> None:
    body = await _sent(ModelMessage(role="user", content=(IMAGE,)), model="gemma-3")

    assert '"a.png" was left out' in body["contents"][0]["parts"][0]["text"]


async def test_the_messages_of_the_request_before_are_sent_again_to_the_byte() -> None:
    call = Call(id="c", name="read", input={"a": 1}, metadata=SIGNED)
    history = (user("one"), _said(call), _results(Result(id="c", name="read", output="two")))
    first = await _sent(*history, model=NEW)

    second = await _sent(*history, _said(Text(text="three")), user("four"), model=NEW)

    texts = [json.dumps(body["contents"]) for body in (first, second)]
    assert texts[1].startswith(texts[0].removesuffix("]"))


async def test_a_failed_call_says_so() -> None:
    failed = Result(id="c", name="read", output="no such file", is_error=True)

    body = await _sent(user("Hi"), _said(Call(id="c", name="read", input={})), _results(failed))

    answered = body["contents"][2]["parts"][0]["functionResponse"]["response"]
    assert answered == {"error": "no such file"}


async def test_a_whole_answer() -> None:
    events = await _events(
        frames.answer(
            frames.thought("Hm."),
            frames.text("I "),
            frames.text("look."),
            frames.text("", signature="dGV4dA=="),
            frames.call("read", {"a": 1}, call_id="f1"),
        )
    )

    assert events == [
        ReasoningStart("reasoning-1"),
        ReasoningDelta("reasoning-1", "Hm."),
        ReasoningEnd("reasoning-1"),
        TextStart("text-2"),
        TextDelta("text-2", "I "),
        TextDelta("text-2", "look."),
        TextEnd("text-2", {"gemini": {"signature": "dGV4dA=="}}),
        ToolInputStart("f1", "read"),
        ToolInputDelta("f1", '{"a": 1}'),
        ToolInputEnd("f1"),
        ToolCall("f1", "read", '{"a": 1}', {"gemini": {"id": "f1", **SIGNED["gemini"]}}),
        StreamFinish("tool-calls", COUNTS),
    ]


async def test_calls_without_ids_get_ids_that_no_other_answer_has() -> None:
    answer = frames.answer(frames.call("read", {}), frames.call("read", {}, signature=""))

    events = [*await _events(answer), *await _events(answer)]

    calls = [event for event in events if isinstance(event, ToolCall)]
    assert len({call.id for call in calls}) == 4
    assert [call.metadata for call in calls] == [SIGNED, None] * 2


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("SOMETHING_NEW", "other"),
    ],
)
async def test_the_ends_of_an_answer(reason: str, finish: str) -> None:
    events = await _events(frames.answer(frames.text("x"), reason=reason))

    (end,) = (event for event in events if isinstance(event, StreamFinish))
    assert (end.reason, end.usage) == (finish, COUNTS)


async def test_a_prompt_that_is_blocked_ends_as_refused() -> None:
    events = await _events([{"promptFeedback": {"blockReason": "SAFETY"}}])

    said = [event for event in events if not isinstance(event, Heartbeat)]
    assert said == [StreamFinish("content-filter", None)]


async def test_an_answer_that_is_not_streamed_is_read() -> None:
    content = json.dumps(frames.say("Hi.")).encode()
    head = {"content-type": "application/json", "content-length": str(len(content))}

    assert text_of(await _events([ms.Status(headers=head), content])) == "Hi."


async def test_an_answer_that_breaks_off_makes_no_call() -> None:
    with pytest.raises(ProviderError, match="broke off") as caught:
        await _events(frames.answer(frames.call("read", {}), reason=None))

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("code", "message", "kind", "retryable"),
    [
        (400, "API key not valid. Please pass a valid API key.", ProviderAuthError, False),
        (
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1).",
            ContextOverflowError,
            False,
        ),
        (429, "You exceeded your current quota. Please retry in 34.5s.", ProviderError, True),
        (429, "You exceeded your current quota, check your plan.", ProviderError, False),
        (503, "The model is overloaded.", ProviderError, True),
    ],
)
async def test_statuses_and_what_they_mean(
    code: int, message: str, kind: type[ProviderError], *, retryable: bool
) -> None:
    content = json.dumps({"error": {"code": code, "message": message}}).encode()
    head = {"content-type": "application/json", "content-length": str(len(content))}

    with pytest.raises(ProviderError) as caught:
        await _events([ms.Status(code=code, headers=head), content])

    assert (type(caught.value), caught.value.retryable) == (kind, retryable)


async def test_a_wait_that_stands_in_the_text_is_kept() -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    error = {"code": 429, "message": "Resource exhausted.", "details": [detail]}
    content = json.dumps({"error": error}).encode()
    head = {"content-type": "application/json", "content-length": str(len(content))}

    with pytest.raises(ProviderError) as caught:
        await _events([ms.Status(code=429, headers=head), content])

    assert caught.value.wait_s == 34
