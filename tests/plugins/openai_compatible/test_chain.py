"""Requests that continue a stored response: what is sent, and when the whole input is."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard import App, AppOptions, tool
from pegboard.errors import ProviderError
from pegboard.providers import Call, ModelMessage, ModelRequest, Provider, Result, Text
from pegboard_plugins import compact, openai_compatible, sqlite
from pegboard_plugins.shared.frontend import forked, reverted
from support.models import model_server as ms
from support.models import response_frames as frames
from support.models.four_wires import FreeAgent
from support.models.played import AllowAll, ToolsPlugin
from support.models.provider_run import (
    READ,
    events_of,
    model_of,
    provider_at,
    request_for,
    text_of,
    user,
)
from support.models.stored_responses import Item, Storing
from support.models.vendor_types import check_responses

CHAINED = {"wire": "responses", "chainResponses": True}
FACTS = {"reasoning": True, "temperature": False}


def previous_ids(server: ms.ModelServer) -> list[str | None]:
    """The ids that the requests name, in order."""
    return [body.get("previous_response_id") for body in server.requests]


def told(items: Sequence[Item]) -> list[tuple[Any, ...]]:
    """What items tell the model, whether they are an answer's or go back as input."""
    found: list[tuple[Any, ...]] = []
    for item in items:
        match item["type"]:
            case "message":
                parts = item["content"]
                texts = [parts] if isinstance(parts, str) else [part["text"] for part in parts]
                found.append((item["role"], *(text.rstrip() for text in texts)))
            case "function_call":
                found.append(("call", item["call_id"], json.loads(item["arguments"])))
            case "function_call_output":
                found.append(("output", item["call_id"], item["output"]))
            case "reasoning":
                found.append(("reasoning", item["encrypted_content"]))
    return found


def called(number: int) -> list[Sequence[Item]]:
    """An answer that thinks and calls the tool `look`."""
    return [
        frames.thought("Hm.", encrypted=f"gAA{number}"),
        frames.call("look", {"at": f"thing {number}"}, f"call_{number}"),
    ]


SAID = [frames.text("Done. \n")]
THREE_STEPS = (called(1), called(2), SAID)


@tool
async def look(at: str) -> str:
    """Look at a thing.

    Args:
        at: the thing.
    """
    return f"I see {at}."


@asynccontextmanager
async def talking(folder: Path, url: str, **chosen: Any) -> AsyncIterator[App]:
    """An App whose model is behind the Responses API, with these options of its provider."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    settings = {"options": {"baseURL": url, "apiKey": "sk-key", "wire": "responses", **chosen}}
    settings["models"] = {"m": FACTS}
    options = AppOptions(
        installed=False,
        builtins=False,
        plugins=(openai_compatible, compact, sqlite, FreeAgent(), AllowAll(), ToolsPlugin(look)),
        config_dir=folder / "config",
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        config={"model": "openai/m", "provider": {"openai": settings}, "retry": {"attempts": 1}},
    )
    async with App.open(project, options) as app:
        yield app


async def _two_prompts(folder: Path, script: Storing, **chosen: Any) -> list[ms.Body]:
    """The requests of a session of two prompts."""
    async with ms.ModelServer(script) as server, talking(folder, server.url, **chosen) as app:
        session = await app.create_session()
        await app.prompt(session, "go")
        await app.prompt(session, "and again")
    return server.requests


async def test_a_step_sends_only_what_the_response_before_it_has_not_seen(tmp_path: Path) -> None:
    script = Storing(*THREE_STEPS)
    requests = await _two_prompts(tmp_path, script, chainResponses=True)

    for body in requests:
        check_responses(body)
    assert [body.get("previous_response_id") for body in requests] == [
        *(None, "resp_1", "resp_2", "resp_3")
    ]
    assert [told(body["input"]) for body in requests] == [
        [("user", "go")],
        [("output", "call_1", "I see thing 1.")],
        [("output", "call_2", "I see thing 2.")],
        [("user", "and again")],
    ]
    fields = [{**body, "input": [], "previous_response_id": ""} for body in requests]
    assert fields == [fields[0]] * 4


async def test_the_model_sees_what_it_sees_without_the_option(tmp_path: Path) -> None:
    chained, plain = Storing(*THREE_STEPS), Storing(*THREE_STEPS)
    await _two_prompts(tmp_path, chained, chainResponses=True)
    requests = await _two_prompts(tmp_path, plain)

    assert [told(items) for items in chained.inputs] == [told(items) for items in plain.inputs]
    assert [body.get("previous_response_id") for body in requests] == [None] * 4
    assert [body["store"] for body in requests] == [False] * 4


async def test_a_server_that_has_lost_a_response_gets_the_whole_input(tmp_path: Path) -> None:
    script = Storing(*THREE_STEPS, called(3), SAID)
    async with (
        ms.ModelServer(script) as server,
        talking(tmp_path, server.url, chainResponses=True) as app,
    ):
        session = await app.create_session()
        await app.prompt(session, "go")
        script.stored.clear()
        turn = await app.prompt(session, "and again")

    assert turn.text == "Done."
    assert previous_ids(server) == [None, "resp_1", "resp_2", "resp_3", None, "resp_4"]
    assert told(server.requests[4]["input"])[0] == ("user", "go")
    assert told(script.inputs[-1])[-1] == ("output", "call_3", "I see thing 3.")


async def test_a_server_that_stores_nothing_is_soon_asked_as_without_the_option(
    tmp_path: Path,
) -> None:
    script = Storing(*(called(number) for number in range(4)), SAID)

    def forgetful(body: ms.Body) -> ms.Answer:
        script.stored.clear()
        return script(body)

    async with (
        ms.ModelServer(forgetful) as server,
        talking(tmp_path, server.url, chainResponses=True) as app,
    ):
        turn = await app.prompt(await app.create_session(), "go")

    assert turn.text == "Done."
    assert previous_ids(server) == [None, "resp_1", None, "resp_2", None, None, None]
    assert [body["store"] for body in server.requests] == [True] * 4 + [False] * 3


async def _undo(app: App, session: str) -> str:
    prompts = [turn.info for turn in await app.list_turns(session)]
    await reverted(app, session, prompts[-2].id)
    return session


async def _fork(app: App, session: str) -> str:
    return (await forked(app, session)).id


async def _compact(app: App, session: str) -> str:
    await app.summarize(session, model="openai/m")
    return session


@pytest.mark.parametrize("change", [_undo, _fork, _compact])
async def test_no_response_is_continued_across_a_change_of_the_history(
    tmp_path: Path, change: Callable[[App, str], Any]
) -> None:
    script = Storing(SAID)
    async with (
        ms.ModelServer(script) as server,
        talking(tmp_path, server.url, chainResponses=True) as app,
    ):
        session = (await app.create_session()).id
        for prompt in ("one", "two"):
            await app.prompt(session, prompt)
        session = await change(app, session)
        before = len(server.requests)
        await app.prompt(session, "three")

    asked = server.requests[before]
    assert "previous_response_id" not in asked
    assert told(asked["input"])[-1] == ("user", "three")
    assert told(script.inputs[-1]) == told(asked["input"])


def _answered(text: str = "Done.") -> ModelMessage:
    return ModelMessage(role="assistant", content=(Text(text=text),))


@asynccontextmanager
async def asked_once(
    script: ms.Script, **options: Any
) -> AsyncIterator[tuple[ms.ModelServer, Provider, ModelRequest]]:
    """A server, a provider that has got one answer from it, and the request of the step after."""
    async with ms.ModelServer(script) as server:
        provider = provider_at(server.url, options={**CHAINED, **options})
        first = request_for(model_of(provider, **FACTS), session_id="ses_1")
        try:
            await events_of(provider, first)
            messages = (*first.messages, _answered(), user("And?"))
            yield server, provider, replace(first, messages=messages)
        finally:
            await provider.aclose()


async def test_a_history_that_goes_on_as_it_was_continues_the_response() -> None:
    async with asked_once(Storing(SAID)) as (server, provider, request):
        await events_of(provider, request)

    assert previous_ids(server) == [None, "resp_1"]


CHANGES: Mapping[str, Callable[[ModelRequest], ModelRequest]] = {
    "system": lambda asked: replace(asked, system=("You are another.",)),
    "tools": lambda asked: replace(asked, tools=(READ, replace(READ, name="write"))),
    "options": lambda asked: replace(asked, options={"reasoningEffort": "low"}),
    "model": lambda asked: replace(
        asked, model=replace(asked.model, api=replace(asked.model.api, id="other"))
    ),
    "session": lambda asked: replace(asked, session_id="ses_2"),
    "no session": lambda asked: replace(asked, session_id=""),
    "first message": lambda asked: replace(asked, messages=(user("Bye"), *asked.messages[1:])),
    "answer": lambda asked: replace(
        asked, messages=(asked.messages[0], _answered("Done, filtered."), asked.messages[2])
    ),
    "no answer": lambda asked: replace(asked, messages=(asked.messages[0], asked.messages[2])),
    "nothing new": lambda asked: replace(asked, messages=asked.messages[:2]),
    "not stored": lambda asked: replace(asked, options={"store": False}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_request_that_differs_before_what_is_new_sends_all(
    change: Callable[[ModelRequest], ModelRequest],
) -> None:
    async with asked_once(Storing(SAID)) as (server, provider, request):
        changed = change(request)
        await events_of(provider, changed)

    assert previous_ids(server) == [None, None]
    assert len(server.requests[1]["input"]) == len(changed.messages)


async def test_a_user_s_own_store_false_stays() -> None:
    async with asked_once(Storing(SAID), store=False) as (server, provider, request):
        await events_of(provider, request)

    assert previous_ids(server) == [None, None]
    assert [body["store"] for body in server.requests] == [False, False]


async def test_an_answer_that_is_cut_off_is_not_continued() -> None:
    cut = frames.answer(*SAID, status="incomplete", reason="max_output_tokens", id="resp_1")
    async with asked_once(ms.in_order(cut, frames.say("hi"))) as (server, provider, request):
        await events_of(provider, request)

    assert previous_ids(server) == [None, None]


async def test_an_answer_that_breaks_off_leaves_the_response_before_it() -> None:
    whole, broken = frames.answer(*SAID, id="resp_1"), frames.answer(*SAID, status=None)
    script = ms.in_order(whole, broken, whole)
    async with asked_once(script) as (server, provider, request):
        with pytest.raises(ProviderError, match="broke off"):
            await events_of(provider, request)
        await events_of(provider, request)

    assert previous_ids(server) == [None, "resp_1", "resp_1"]


async def test_another_failure_of_a_request_is_the_user_s() -> None:
    script = ms.in_order(frames.answer(*SAID, id="resp_1"), ms.failure(429, "Too many requests."))
    async with asked_once(script) as (server, provider, request):
        with pytest.raises(ProviderError, match="Too many requests"):
            await events_of(provider, request)

    assert len(server.requests) == 2


async def test_arguments_that_are_no_json_only_end_the_chain() -> None:
    call = list(frames.call("look", {}))
    call[-1] = {**call[-1], "item": {**call[-1]["item"], "arguments": "{oops"}}
    script = ms.in_order(frames.answer(call, id="resp_1"), frames.answer(*SAID, id="resp_2"))
    async with asked_once(script) as (server, provider, request):
        result = Result(id="call_1", name="look", output="no")
        called = ModelMessage(role="assistant", content=(Call(id="call_1", name="look", input={}),))
        answered = ModelMessage(role="tool", content=(result,))
        messages = (request.messages[0], called, answered)
        events = await events_of(provider, replace(request, messages=messages))

    assert text_of(events).strip() == "Done."
    assert previous_ids(server) == [None, None]


async def test_chat_completions_know_nothing_of_the_option() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url, options={"chainResponses": True})
        request = request_for(model_of(provider), session_id="ses_1")
        events = await events_of(provider, request)
        await provider.aclose()

    assert text_of(events) == "hi"
    assert server.paths == ["/v1/chat/completions"]
    assert not any("chain" in name for name in server.requests[0])
