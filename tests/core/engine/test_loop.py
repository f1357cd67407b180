"""The engine over a real database, with answers that a test has written."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import UNSET

from pegboard import Prompt, hookimpl, tool
from pegboard.errors import ModelNotFoundError, NotFoundError, PluginError, ProviderError
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    ToolCall,
    ToolInputStart,
    Usage,
)
from pegboard.schema.config import Agent
from pegboard.schema.event import SessionFailed, SessionIdle
from pegboard.schema.message import (
    AbortedFailure,
    APIFailure,
    AssistantMessage,
    PluginFailure,
    UserMessage,
)
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost
from pegboard.schema.part import Failed, FileInput, FilePart, TextInput, TextPart
from pegboard.schema.session import Rule, Tokens
from support.models.played import (
    HI,
    Played,
    ToolsPlugin,
    assistant,
    call,
    calls,
    heard,
    opened,
    shout,
    text,
    texts,
    tools_of,
)


async def test_a_prompt_gets_an_answer_that_is_stored(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hello there"))) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

        assert texts(turn) == ["hello there"]
        assert assistant(turn).finish == "stop"
        assert assistant(turn).time.completed is not None
        stored = await app.list_turns(session.id)
        assert stored[-1] == turn
        assert isinstance(stored[0].info, UserMessage)
        assert (await app.session(session.id)).title == "hi"


async def test_an_abort_keeps_the_text_and_ends_the_call(tmp_path: Path) -> None:
    started = asyncio.Event()
    ended: list[str] = []

    @tool
    async def wait_long() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "never"

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "Let me ")
        yield ToolInputStart("c", "wait_long")
        yield ToolCall("c", "wait_long", "{}")
        await asyncio.sleep(60)

    async with opened(tmp_path, Played(answer, text("again")), ToolsPlugin(wait_long)) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        async with asyncio.timeout(30):
            await started.wait()
        assert await app.abort(session.id)
        turn = await prompt

        assert isinstance(assistant(turn).error, AbortedFailure)
        assert texts(turn) == ["Let me"]
        [part] = tools_of((turn,))
        assert isinstance(part.state, Failed)
        assert ended == ["cancelled"]
        assert not await app.abort(session.id)
        assert texts(await app.prompt(session.id, HI)) == ["again"]


async def test_prompts_that_come_meanwhile_are_answered_by_the_same_run(tmp_path: Path) -> None:
    running, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        running.set()
        await go.wait()
        yield TextDelta("t", "first")
        yield StreamFinish("stop")

    provider = Played(slow, text("both"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        first = asyncio.create_task(app.prompt(session.id, HI))
        await running.wait()
        second = asyncio.create_task(app.prompt(session.id, "and this"))
        while len(await app.list_turns(session.id)) < 3:  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(0.01)
        go.set()
        answers = await asyncio.gather(first, second)
        turns = await app.list_turns(session.id)

    assert [texts(answer) for answer in answers] == [["both"], ["both"]]
    assert [turn.info.id for turn in turns] == sorted(turn.info.id for turn in turns)
    assert len(provider.requests) == 2
    assert assistant(turns[-1]).parent_id == turns[2].info.id


async def test_many_prompts_at_once_are_all_answered(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("yes"))) as app:
        session = await app.create_session()
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(app.prompt(session.id, str(number)))
        turns = await app.list_turns(session.id)

    users = [place for place, turn in enumerate(turns) if isinstance(turn.info, UserMessage)]
    answered = [
        place for place, turn in enumerate(turns) if isinstance(turn.info, AssistantMessage)
    ]
    assert len(users) == 20
    assert max(answered) > max(users)


@pytest.mark.parametrize(
    "given", ["msg_zzzzzzzzzzzzzzzzzzzzzzzzzz", "msg_0000000000000000000000000"]
)
async def test_ids_of_a_client_do_not_decide_who_is_answered(tmp_path: Path, given: str) -> None:
    provider = Played(text("one"), text("two"), text("three"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.prompt(session.id, Prompt(HI, message_id=given))
        turn = await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    assert texts(turn) == ["three"]
    assert len(provider.requests) == 3
    later = [turn.info.id for turn in turns[3:]]
    assert all(one > turns[2].info.id for one in later)


async def test_a_failing_model_is_an_error_of_the_message(tmp_path: Path) -> None:
    async def fails(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "half")
        raise ProviderError("the server is gone", provider_id="played", status=400)

    async with opened(tmp_path, Played(fails, text("fine"))) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)
        turn = await app.prompt(session.id, HI)
        events = await listening

        error = assistant(turn).error
        assert isinstance(error, APIFailure)
        assert (error.data.message, error.data.status_code) == ("the server is gone", 400)
        assert any(isinstance(event.properties, SessionFailed) for event in events)
        assert texts(await app.prompt(session.id, HI)) == ["fine"]


async def test_an_answer_that_just_stops_is_no_answer(tmp_path: Path) -> None:
    config = {"model": "played/m", "retry": {"attempts": 1}}
    async with opened(tmp_path, Played([TextDelta("t", "and then")]), config=config) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    error = assistant(turn).error
    assert isinstance(error, APIFailure)
    assert error.data.is_retryable


async def test_a_silent_model_is_given_up(tmp_path: Path) -> None:
    async def silent(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        await asyncio.sleep(60)
        yield TextDelta("t", "late")

    config = {"model": "played/m", "stream_idle_timeout_s": 0.1, "retry": {"attempts": 1}}
    async with opened(tmp_path, Played(silent), config=config) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert "said nothing" in str(assistant(turn).error)


async def test_a_bug_in_a_provider_ends_the_turn_and_is_raised(tmp_path: Path) -> None:
    async def broken(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "x")
        raise ZeroDivisionError("oh")

    async with opened(tmp_path, Played(broken)) as app:
        session = await app.create_session()
        with pytest.raises(PluginError, match="the provider played raised ZeroDivisionError: oh"):
            await app.prompt(session.id, HI)
        turn = (await app.list_turns(session.id))[-1]

    assert isinstance(assistant(turn).error, PluginFailure)
    assert assistant(turn).time.completed is not None


@pytest.mark.parametrize(
    ("choice", "error"),
    [({"model": "played/x"}, ModelNotFoundError), ({"agent": "biuld"}, NotFoundError)],
)
async def test_a_prompt_that_nobody_can_answer_is_kept(
    tmp_path: Path, choice: dict[str, str], error: type[Exception]
) -> None:
    async with opened(tmp_path, Played(text("x"))) as app:
        session = await app.create_session()
        with pytest.raises(error):
            await app.prompt(session.id, Prompt(HI, **choice))
        [turn] = await app.list_turns(session.id)

    assert texts(turn) == ["hi"]


async def test_an_alias_without_a_provider_is_a_plugins_to_resolve(tmp_path: Path) -> None:
    class Aliases:
        @hookimpl
        async def model_resolve(self, name: str) -> Model | None:
            known = {"fast": Model(id="m", provider_id="played", name="M", api=ModelApi(id="m"))}
            return known.get(name)

    async with opened(tmp_path, Played(text("hi")), Aliases()) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, Prompt(HI, model="fast"))
        with pytest.raises(ModelNotFoundError, match="model not found: slow"):
            await app.prompt(session.id, Prompt(HI, model="slow"))

    assert (assistant(turn).provider_id, assistant(turn).model_id) == ("played", "m")


async def test_finish_reasons_are_visible(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("cut", reason="length"))) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert assistant(turn).finish == "length"


async def test_tokens_and_cost_are_counted_per_step_and_session(tmp_path: Path) -> None:
    cost = ModelCost(input=1, output=10, cache=CacheCost(read=0.1, write=2))
    model = Model(id="m", provider_id="played", name="M", api=ModelApi(id="m"), cost=cost)
    usage = Usage(input=1000, output=100, reasoning=50, cache_read=2000, cache_write=10)
    provider = Played(text("hi", usage=usage), model=model)
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        await app.prompt(session.id, HI)
        stored = await app.session(session.id)

    price = (1000 * 1 + 150 * 10 + 2000 * 0.1 + 10 * 2) / 1_000_000
    assert assistant(turn).cost == pytest.approx(price)
    assert stored.cost == pytest.approx(2 * price)
    assert stored.tokens is not None
    assert (stored.tokens.input, stored.tokens.cache.read) == (2000, 4000)
    assert (assistant(turn).tokens.total, stored.tokens.total) == (3160, UNSET)


async def test_a_missing_usage_costs_nothing_and_stops_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hi", usage=None))) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert assistant(turn).tokens == Tokens()


async def test_no_reply_stores_and_does_not_ask(tmp_path: Path) -> None:
    provider = Played(text("hi"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, Prompt(HI, no_reply=True))
        assert isinstance(turn.info, UserMessage)
        assert provider.requests == []
        await app.prompt(session.id, "now")

    said = [item for message in provider.requests[0].messages for item in message.content]
    assert said == [Text(text="hi"), Text(text="now")]


async def test_steps_are_a_hard_limit_and_the_last_one_has_no_tools(tmp_path: Path) -> None:
    agent = Agent(
        name="brief", mode="primary", permission=(Rule("*", "*", "allow"),), options={}, steps=2
    )
    from support.models.played import PlayedPlugin

    provider = Played(calls(call("shout", '{"words": "a"}')))
    extra = PlayedPlugin(provider, agents=[agent])
    async with opened(tmp_path, provider, extra, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt(HI, agent="brief"))

    assert [len(request.tools) for request in provider.requests] == [1, 0]


async def test_a_file_is_read_for_the_model_and_kept_as_a_part(tmp_path: Path) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider) as app:
        note = app.workspace.directory / "note.txt"
        note.write_text("line one\nline two\nline three\n")
        session = await app.create_session()
        parts = (
            TextInput(text="see"),
            FileInput(mime="text/plain", url=f"{note.as_uri()}?start=2&end=2", filename="note.txt"),
        )
        await app.prompt(session.id, Prompt(parts=parts))
        [turn, _] = await app.list_turns(session.id)

    content = [
        item.text for item in provider.requests[0].messages[0].content if isinstance(item, Text)
    ]
    assert content[0] == "see"
    assert "00002| line two\n\n(More lines follow: read on with offset=3)" in content[-1]
    assert [type(part) for part in turn.parts] == [TextPart, FilePart, TextPart, TextPart]


async def test_a_file_that_is_not_there_is_said_to_the_model(tmp_path: Path) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(
            session.id, Prompt(parts=(FileInput(mime="text/plain", url="file:///no/such"),))
        )

    [message] = provider.requests[0].messages
    assert "could not be read" in str(message.content)
