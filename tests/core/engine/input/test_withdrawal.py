"""Prompts that are taken back: one that no model has read is gone, one that was read stays."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from pegboard import App, Prompt
from pegboard.errors import AbortedError, NotFoundError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, Text, TextDelta
from pegboard.schema.event import MessageRemoved, MessageUpdated
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from support.models.played import Played, ToolsPlugin, call, calls, opened, shout, text, texts

pytestmark = pytest.mark.usefixtures("each_store")

LONGEST_S, THINKING_S = 0.02, 0.3


def said(request: ModelRequest) -> str:
    content = (item for message in request.messages for item in message.content)
    return "\n".join(item.text for item in content if isinstance(item, Text))


async def stored(app: App, session_id: str, words: str) -> str:
    """The id of the prompt of these words, once it is there."""
    async with asyncio.timeout(30):
        while True:
            for turn in await app.list_turns(session_id):
                if isinstance(turn.info, UserMessage) and words in texts(turn):
                    return turn.info.id
            await asyncio.sleep(0.001)


def prompts(turns: tuple[Turn, ...]) -> list[str]:
    return [texts(turn)[0] for turn in turns if isinstance(turn.info, UserMessage)]


@pytest.mark.parametrize("seed", range(4))
async def test_what_is_taken_back_is_never_read_and_all_else_is_read(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    back: dict[str, bool] = {}

    going, on = asyncio.Event(), asyncio.Event()

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        going.set()
        await on.wait()
        await asyncio.sleep(chance.uniform(0, THINKING_S))
        yield TextDelta("t", "yes")
        yield StreamFinish("stop")

    provider = Played(answer)

    async def talk(app: App, session_id: str, name: int) -> None:
        for number in range(12):
            words = f"<{name}.{number}>"
            await asyncio.sleep(chance.uniform(0, THINKING_S / 2))
            sending = asyncio.create_task(app.prompt(session_id, words))
            await asyncio.sleep(chance.uniform(0, LONGEST_S))
            back[words] = await app.withdraw(session_id, await stored(app, session_id, words))
            try:
                await sending
            except AbortedError:
                assert back[words], "nobody was left to be answered"

    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        async with asyncio.timeout(60), asyncio.TaskGroup() as talkers:
            talkers.create_task(app.prompt(session.id, "<read>"))
            await going.wait()
            queued = asyncio.create_task(app.prompt(session.id, "<unread>"))
            for words in ("<read>", "<unread>"):
                back[words] = await app.withdraw(session.id, await stored(app, session.id, words))
            on.set()
            with suppress(AbortedError):
                await queued
            for name in range(3):
                talkers.create_task(talk(app, session.id, name))
        left = prompts(await app.list_turns(session.id))

    assert (back["<read>"], back["<unread>"]) == (False, True)
    heard = "\n".join(map(said, provider.requests))
    assert {words: words in heard for words in back} == {w: not gone for w, gone in back.items()}
    assert sorted(left) == sorted(words for words, gone in back.items() if not gone)
    for before, after in pairwise(provider.requests):
        assert after.messages[: len(before.messages)] == before.messages


async def test_a_steer_is_taken_back_and_its_removal_is_told_before_the_next_answer(
    tmp_path: Path,
) -> None:
    going, on = asyncio.Event(), asyncio.Event()

    async def working(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        going.set()
        await on.wait()
        for event in calls(call("shout", '{"words": "hi"}')):
            yield event

    provider = Played(working, text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        async with app.subscribe() as events:
            first = asyncio.create_task(app.prompt(session.id, "begin"))
            await going.wait()
            steer = asyncio.create_task(app.prompt(session.id, "steer"))
            message_id = await stored(app, session.id, "steer")

            gone = await app.withdraw(session.id, message_id)

            on.set()
            await asyncio.gather(first, steer)
            told = [event.properties for event in await events.batch()]
        left = prompts(await app.list_turns(session.id))

    infos = [each.info for each in told if isinstance(each, MessageUpdated)]
    answers = [info.id for info in infos if isinstance(info, AssistantMessage)]
    order = [_of(each) for each in told]
    assert gone
    assert left == ["begin"]
    assert ["steer" in said(request) for request in provider.requests] == [False, False]
    assert order.index(("gone", message_id)) < order.index(("told", answers[-1]))
    assert ("told", message_id) not in order[order.index(("gone", message_id)) :]


def _of(properties: object) -> tuple[str, str]:
    match properties:
        case MessageRemoved(message_id=gone):
            return "gone", gone
        case MessageUpdated(info=info):
            return "told", info.id
        case _:
            return "", ""


async def test_what_the_model_has_read_cannot_be_taken_back(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hello"))) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, "hi")
        message_id = await stored(app, session.id, "hi")

        read = await app.withdraw(session.id, message_id)
        answer = await app.withdraw(session.id, turn.info.id)
        with pytest.raises(NotFoundError):
            await app.withdraw(session.id, "msg_none")

        assert (read, answer) == (False, False)
        assert len(await app.list_turns(session.id)) == 2


async def test_a_prompt_that_waits_at_rest_can_be_taken_back(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hello"))) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, Prompt("wait", no_reply=True))

        assert await app.withdraw(session.id, turn.info.id)
        assert await app.list_turns(session.id) == ()
