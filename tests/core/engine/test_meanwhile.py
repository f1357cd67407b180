"""Prompts that come at any moment of a run, its last one too: each is seen by the model."""

import asyncio
import random
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from pegboard import App
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, Text, TextDelta
from pegboard.schema.message import AssistantMessage, UserMessage
from support.models.played import Played, assistant, opened

pytestmark = pytest.mark.usefixtures("each_store")

TALKERS = 3
PROMPTS = 12
LONGEST_S = 0.02


def said(request: ModelRequest) -> set[str]:
    """All texts of a request."""
    content = (item for message in request.messages for item in message.content)
    return {item.text for item in content if isinstance(item, Text)}


@pytest.mark.parametrize("seed", range(3))
async def test_whoever_gets_an_answer_was_heard(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        await asyncio.sleep(chance.uniform(0, LONGEST_S))
        yield TextDelta("t", "yes")
        yield StreamFinish("stop")

    provider = Played(answer)

    async def talk(app: App, session_id: str, name: int) -> None:
        for number in range(PROMPTS):
            await asyncio.sleep(chance.uniform(0, LONGEST_S))
            words = f"{name}.{number}"
            turn = await app.prompt(session_id, words)
            assert assistant(turn).finish == "stop"
            assert words in said(provider.requests[-1]), "heard before it was answered"

    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        async with asyncio.timeout(30), asyncio.TaskGroup() as talkers:
            for name in range(TALKERS):
                talkers.create_task(talk(app, session.id, name))
        turns = await app.list_turns(session.id)

    for before, after in pairwise(provider.requests):  # of later runs, too, which read anew
        assert after.messages[: len(before.messages)] == before.messages
    prompts = [turn for turn in turns if isinstance(turn.info, UserMessage)]
    assert len(prompts) == TALKERS * PROMPTS
    assert isinstance(turns[-1].info, AssistantMessage)
    assert [turn.info.id for turn in turns] == sorted({turn.info.id for turn in turns})


async def test_a_new_title_survives_the_start_of_a_run(tmp_path: Path) -> None:
    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "yes")
        yield StreamFinish("stop")

    async def renamed(app: App, number: int) -> str:
        session = await app.create_session(title="first")
        prompt = asyncio.create_task(app.prompt(session.id, "Go."))
        for _ in range(number):
            await asyncio.sleep(0.001)
        await app.update_session(session.id, title=f"title {number}")
        await prompt
        return (await app.session(session.id)).title

    async with opened(tmp_path, Played(answer)) as app:
        titles = [await renamed(app, number) for number in range(20)]

    assert titles == [f"title {number}" for number in range(20)]
