"""What is sent to Claude: blocks, marks for the prompt cache, thinking, headers."""

from base64 import b64encode
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard.http.httpprovider import HttpProvider
from pegboard.providers import (
    Call,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    Text,
)
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.anthropic import register_providers
from support.models import claude_frames as claude
from support.models import model_server as ms
from support.models.keyed import keys_of
from support.models.provider_run import READ, events_of, request_for, user
from support.models.vendor_types import check_claude
from support.tools.media_files import media, pdf, png

IMAGE = media("image/png", png(), "a.png")
PDF = media("application/pdf", pdf(), "a.pdf")
MARK = {"type": "ephemeral"}
OLD, NEW = "claude-sonnet-4-5-20250929", "claude-opus-4-6"


async def anthropic(url: str, **options: Any) -> HttpProvider:
    """The provider, with the server's address."""
    settings = ProviderConfig(options={"baseURL": url, "apiKey": "sk-ant-test", **options})
    config = Config(provider={"anthropic": settings})
    (found,) = await register_providers(config, {}, keys_of(config.provider))
    assert isinstance(found, HttpProvider)
    return found


async def sent(
    *messages: ModelMessage, model: str = OLD, options: dict[str, Any] | None = None, **facts: Any
) -> dict[str, Any]:
    """The body of one request, which is one by the vendor's types."""
    async with ms.ModelServer(ms.in_order(claude.say("hi"))) as server:
        provider = await anthropic(server.url, **(options or {}))
        await events_of(provider, request_for(provider.resolve(model), *messages, **facts))
        await provider.aclose()
    check_claude(server.requests[0])
    return server.requests[0]


def said(*content: Any) -> ModelMessage:
    return ModelMessage(role="assistant", content=content)


def results(*content: Any) -> ModelMessage:
    return ModelMessage(role="tool", content=content)


def a_call(call_id: str = "toolu_1") -> Call:
    return Call(id=call_id, name="read", input={"filePath": "a.txt"})


def a_result(call_id: str = "toolu_1", **facts: Any) -> Result:
    return Result(id=call_id, name="read", output="content", **facts)


async def test_a_whole_request() -> None:
    body = await sent(
        user("Hello"),
        said(Text(text="I read."), a_call()),
        results(a_result()),
        max_output_tokens=900,
        temperature=0.5,
    )

    tool = {
        "name": "read",
        "description": READ.description,
        "input_schema": {"type": "object"},
        "cache_control": MARK,
    }
    call = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "read",
        "input": {"filePath": "a.txt"},
    }
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "content"}
    assert body == {
        "model": OLD,
        "max_tokens": 900,
        "stream": True,
        "temperature": 0.5,
        "tools": [tool],
        "system": [{"type": "text", "text": "You are a test.", "cache_control": MARK}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": MARK}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I read."}, call]},
            {"role": "user", "content": [{**result, "cache_control": MARK}]},
        ],
    }


async def test_the_key_goes_in_a_header_of_its_own() -> None:
    async with ms.ModelServer(ms.in_order(claude.say("hi"))) as server:
        provider = await anthropic(server.url, headers={"anthropic-beta": "x"})
        await events_of(provider, request_for(provider.resolve(OLD)))
        await provider.aclose()

    (headers,) = server.headers
    assert server.paths == ["/v1/messages"]
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("sk-ant-test", "2023-06-01")
    assert headers["anthropic-beta"] == "x"
    assert "authorization" not in headers


async def test_the_last_two_turns_of_the_user_are_marked() -> None:
    body = await sent(
        user("one"), said(a_call("a")), results(a_result("a")), said(a_call("b")),
        results(a_result("b", media=(IMAGE,))),
    )  # fmt: skip

    marked = ["cache_control" in message["content"][-1] for message in body["messages"]]
    assert marked == [False, False, True, False, True]
    assert str(body).count("'cache_control'") == 4


async def test_a_mark_may_last_an_hour() -> None:
    body = await sent(options={"cacheTtl": "1h"})

    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cacheTtl" not in str(body)


async def test_kept_messages_are_sent_again_to_the_byte() -> None:
    history = (user("one"), said(Text(text="two")), user("three"))
    first = await sent(*history)
    kept = [dict(message.encoded) for message in history]

    second = await sent(*history, said(Text(text="four")), user("five"))

    assert [dict(message.encoded) for message in history] == kept
    plain = str(second["messages"]).replace(f", 'cache_control': {MARK}", "")
    assert plain.startswith(str(first["messages"]).replace(f", 'cache_control': {MARK}", "")[:-1])


async def test_what_the_model_thought_goes_back_to_the_letter() -> None:
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    body = await sent(
        user("Hello"),
        said(
            Reasoning(text="Hm.", metadata={"anthropic": {"signature": "s==", "tail": "\n "}}),
            Reasoning(text="", metadata={"anthropic": {"block": hidden}}),
            a_call(),
        ),
        results(a_result()),
    )

    assert body["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "Hm.\n ", "signature": "s=="},
        hidden,
    ]


async def test_thoughts_of_another_model_and_unsigned_ones_are_left_out() -> None:
    body = await sent(
        user("Hello"), said(Reasoning(text="Hm."), Text(text=" \n"), Text(text="Yes")), user("And?")
    )

    assert body["messages"][1]["content"] == [{"type": "text", "text": "Yes"}]


async def test_an_answer_with_nothing_to_send_is_left_out() -> None:
    body = await sent(user("Hello"), said(Reasoning(text="Hm.")), user("And?"))

    assert [message["role"] for message in body["messages"]] == ["user", "user"]


@pytest.mark.parametrize(
    ("model", "options", "thinking"),
    [
        (OLD, {}, None),
        (OLD, {"reasoningEffort": "low"}, {"type": "enabled", "budget_tokens": 4096}),
        (OLD, {"reasoningEffort": "max"}, {"type": "enabled", "budget_tokens": 31_999}),
        (
            OLD,
            {"thinking": {"type": "enabled", "budgetTokens": 2000}},
            {"type": "enabled", "budget_tokens": 2000},
        ),
        (NEW, {}, {"type": "adaptive", "display": "summarized"}),
        (NEW, {"reasoningEffort": "none"}, None),
        ("claude-3-5-haiku-20241022", {"reasoningEffort": "low"}, None),
    ],
)
async def test_how_much_a_model_is_to_think(
    model: str, options: dict[str, Any], thinking: dict[str, Any] | None
) -> None:
    body = await sent(model=model, options=options, max_output_tokens=32_000, temperature=0.2)

    assert body.get("thinking") == thinking
    assert ("temperature" in body) == (thinking is None and model != NEW)


@pytest.mark.parametrize(
    ("model", "options", "chosen", "drawn"),
    [
        (OLD, {}, {"temperature": 0.2}, {"temperature": 0.2}),
        (OLD, {}, {"top_p": 0.9}, {"top_p": 0.9}),
        (OLD, {}, {"temperature": 0.0, "top_p": 0.9}, {"temperature": 0.0}),
        (OLD, {"topP": 0.5, "topK": 4}, {"temperature": 0.2}, {"temperature": 0.2, "top_k": 4}),
        (OLD, {"topP": 0.5, "topK": 4}, {}, {"top_p": 0.5, "top_k": 4}),
        (OLD, {"effort": "low", "topK": 4, "temperature": 0.7}, {"top_p": 0.9}, {}),
        (NEW, {"effort": "none", "top_k": 4, "temperature": 0.7}, {"top_p": 0.9}, {}),
    ],
)
async def test_an_answer_is_drawn_by_a_temperature_or_by_top_p_and_a_thought_by_neither(
    model: str, options: dict[str, Any], chosen: dict[str, float], drawn: dict[str, float]
) -> None:
    body = await sent(model=model, options=options, max_output_tokens=32_000, **chosen)

    found = {name: body[name] for name in ("temperature", "top_p", "top_k") if name in body}
    assert found == drawn


async def test_a_model_that_decides_by_itself_is_held_by_a_word() -> None:
    body = await sent(model=NEW, options={"effort": "low"})

    assert body["output_config"] == {"effort": "low"}


async def test_no_budget_in_a_turn_whose_calls_another_model_made() -> None:
    history = (user("Hello"), said(a_call()), results(a_result()))
    options = {"reasoningEffort": "low"}

    amid = await sent(*history, options=options, max_output_tokens=32_000)
    after = await sent(*history, said(Text(text="x")), user("And?"), options=options,
                       max_output_tokens=32_000)  # fmt: skip

    assert ("thinking" in amid, "thinking" in after) == (False, True)


async def test_pictures_and_pdfs_also_inside_results() -> None:
    body = await sent(
        ModelMessage(role="user", content=(Text(text="Look"), IMAGE)),
        said(a_call()),
        results(a_result(media=(PDF,))),
    )

    source = {"type": "base64", "media_type": "image/png", "data": b64encode(png()).decode()}
    picture = body["messages"][0]["content"][1]
    assert (picture["type"], picture["source"]) == ("image", source)
    data = b64encode(pdf()).decode()
    assert body["messages"][2]["content"][0]["content"] == [
        {"type": "text", "text": "content"},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": data},
            "title": "a.pdf",
        },
    ]


@pytest.mark.parametrize("mime", ["image/bmp", "audio/wav"])
async def test_media_that_claude_does_not_take_become_a_note(mime: str) -> None:
    other = Media(mime=mime, url=f"data:{mime};base64,aGk=", filename="x")

    body = await sent(ModelMessage(role="user", content=(other,)))

    assert '"x" was left out' in body["messages"][0]["content"][0]["text"]


async def test_ids_that_claude_does_not_take_are_replaced_alike() -> None:
    given = "functions.read:0"
    body = await sent(user("Hello"), said(a_call(given)), results(a_result(given)))

    own = body["messages"][1]["content"][0]["id"]
    assert own != given
    assert body["messages"][2]["content"][0]["tool_use_id"] == own


async def test_an_id_that_came_twice_names_one_call_each() -> None:
    body = await sent(
        user("Hello"), said(a_call("call_0")), results(a_result("call_0")),
        said(a_call("call_0")), results(a_result("call_0")),
    )  # fmt: skip

    blocks = [block for message in body["messages"][1:] for block in message["content"]]
    first, its_result, second, its_own = (b.get("id") or b["tool_use_id"] for b in blocks)
    assert first == its_result != second == its_own


async def test_an_empty_result_says_so() -> None:
    empty = Result(id="toolu_1", name="read", output=" ", is_error=True)

    body = await sent(user("Hello"), said(a_call()), results(empty))

    result = body["messages"][2]["content"][0]
    assert (result["content"], result["is_error"]) == ("(no output)", True)


async def test_arguments_are_streamed_as_they_are_written_where_the_server_can() -> None:
    body = await sent(options={"toolStreaming": True})

    assert body["tools"][0]["eager_input_streaming"] is True


@pytest.mark.parametrize(
    "address", ["https://gate.example", "https://gate.example/", "https://gate.example/v1"]
)
async def test_the_environment_may_move_it_as_the_vendor_s_client_reads_it(address: str) -> None:
    (found,) = await register_providers(Config(), {"ANTHROPIC_BASE_URL": address}, keys_of())

    assert isinstance(found, HttpProvider)
    assert found.endpoint.at("messages") == "https://gate.example/v1/messages"


async def test_a_configured_server_with_this_api_is_added() -> None:
    settings = ProviderConfig(npm="@ai-sdk/anthropic", api="https://minimax.example/anthropic/v1")

    config = Config(provider={"minimax": settings})

    found = await register_providers(config, {}, keys_of(config.provider))

    assert [one.id for one in found] == ["anthropic", "minimax"]


async def test_a_request_without_tools_or_system_prompt_has_neither_field() -> None:
    async with ms.ModelServer(ms.in_order(claude.say("hi"))) as server:
        provider = await anthropic(server.url)
        model = provider.resolve(OLD)
        assert model
        request = ModelRequest(model=model, system=(), messages=(user("Hello"),))
        await events_of(provider, replace(request, session_id="s"))
        await provider.aclose()

    assert {"tools", "system"}.isdisjoint(server.requests[0])
    check_claude(server.requests[0])
