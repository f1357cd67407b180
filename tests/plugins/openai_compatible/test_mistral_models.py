"""Mistral's rules hold for its models at any provider."""

from itertools import pairwise

import pytest

from pegboard.providers import Call, ModelMessage, Result
from support.models import model_server as ms
from support.models.provider_run import events_of, provider_at, request_for, user


@pytest.mark.parametrize(
    ("name", "is_short"),
    [
        ("mistralai/mistral-large", True),
        ("Devstral-Small-2", True),
        ("mixtral:8x7b", True),
        ("gpt-5", False),
    ],
)
async def test_ids_are_short_for_a_model_of_mistral_s(name: str, *, is_short: bool) -> None:
    call = ModelMessage(
        role="assistant", content=(Call(id="call_abcdefghi", name="read", input={}),)
    )
    result = Result(id="call_abcdefghi", name="read", output="x")
    history = (user("a"), call, ModelMessage(role="tool", content=(result,)), user("b"))
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url)
        await events_of(provider, request_for(provider.resolve(name), *history))
        await provider.aclose()

    messages = server.requests[0]["messages"]
    [sent] = [each["tool_calls"][0]["id"] for each in messages if each.get("tool_calls")]
    assert (len(sent) == 9, sent == "call_abcdefghi") == (is_short, not is_short)
    roles = [each["role"] for each in messages]
    assert (("tool", "user") in set(pairwise(roles))) is not is_short
