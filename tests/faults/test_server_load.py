"""Many sessions at once over HTTP, followed by many clients; the server killed in the middle.

Twenty sessions here; PEGBOARD_LOAD=100 in the environment has a hundred.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.wire.crowd import WITHIN_S, Crowd, Follower, caught_up, crowd, following
from support.wire.served import Served, model, served

pytestmark = pytest.mark.timeout(300)
SESSIONS = int(os.environ.get("PEGBOARD_LOAD", "20"))
CLIENTS = 20
STEPS = 10
TEXT = ";;".join(["go", *["%read README.md"] * (STEPS - 1)])
MOST_GROWN_MB = 150.0


@pytest.fixture
def model_port() -> Iterator[int]:
    with model() as port:
        yield port


async def test_every_client_hears_every_event_once_and_in_order(
    tmp_path: Path, model_port: int
) -> None:
    with served(tmp_path, model_port) as server:
        before = server.resident_mb
        async with (
            crowd(server.url, server.headers, model="fake-model", text=TEXT) as prompts,
            following(server.url, CLIENTS, server.headers) as followers,
        ):
            sessions = await prompts.sessions(SESSIONS)
            await prompts.all_at_once(sessions)
            await caught_up(followers)

            calls = [await tools_of(prompts, session) for session in sessions]
        grown = server.resident_mb - before

    assert [len(each) for each in calls] == [STEPS - 1] * SESSIONS
    for follower in followers:
        assert follower.gaps == []
        assert follower.tools == set().union(*calls)
    assert len({each.digest.digest() for each in followers}) == 1
    assert grown < MOST_GROWN_MB


async def tools_of(prompts: Crowd, session: str) -> set[str]:
    """The ids of a session's completed tool calls."""
    turns = (await prompts.client.get(f"/session/{session}/message")).raise_for_status().json()
    return {
        part["id"]
        for turn in turns
        for part in turn["parts"]
        if part["type"] == "tool" and part["state"]["status"] == "completed"
    }


async def test_a_kill_in_the_middle_loses_nothing_that_was_told(
    tmp_path: Path, model_port: int
) -> None:
    with served(tmp_path, model_port) as server:
        heard, begun = await until_killed(server)
        server.runtime_file.unlink()

    with served(tmp_path, model_port) as again:
        async with (
            crowd(again.url, again.headers, model="fake-model", text="%say on") as prompts,
            following(again.url, 1, {**again.headers, "last-event-id": "0-7"}) as (follower,),
        ):
            found = [await tools_of(prompts, session) for session in begun]
            answers = [await prompts.prompt(session) for session in begun]
            await caught_up((follower,))

    assert heard <= set().union(*found)
    assert follower.gaps == []
    said = [[p.get("text") for p in answer["parts"] if p["type"] == "text"] for answer in answers]
    assert said == [["on"]] * len(begun)


async def until_killed(server: Served) -> tuple[set[str], list[str]]:
    """What clients had heard to be done, and the sessions whose prompts were acknowledged."""
    begun: list[str] = []
    async with (
        crowd(server.url, server.headers, model="fake-model", text=TEXT) as prompts,
        following(server.url, CLIENTS, server.headers) as followers,
    ):
        sessions = await prompts.sessions(SESSIONS)
        async with asyncio.TaskGroup() as group:
            for session in sessions:
                group.create_task(begin(prompts, session, begun))
            await heard_enough(followers)
            server.process.kill()
            server.process.wait()
        await caught_up(followers)
        assert all(each.ended for each in followers)
    assert begun
    return set().union(*(each.tools for each in followers)), begun


async def begin(prompts: Crowd, session: str, begun: list[str]) -> None:
    try:
        await prompts.begin(session)
    except httpx.TransportError:
        return  # not acknowledged
    begun.append(session)


async def heard_enough(followers: tuple[Follower, ...]) -> None:
    """The middle of the work: half of all calls are done."""
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        if len(followers[0].tools) >= SESSIONS * STEPS // 2:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the sessions do not go on")
