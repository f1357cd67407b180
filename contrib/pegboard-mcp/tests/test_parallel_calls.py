"""Calls of one server that are under way at once: none takes or loses what is another's."""

import asyncio
import os
from pathlib import Path

import msgspec
from mcp_types import ElicitRequestFormParams
from pegboard_mcp.elicitation import Inbox
from pegboard_mcp.tools import SERVERS
from settled import settled

LIMIT_S = 60
QUESTION = ElicitRequestFormParams(message="Go on?", requested_schema={"type": "object"})


async def yes(questions):
    return tuple(("Yes",) for _ in questions)


async def test_a_question_after_a_cancelled_call_is_answered_within_another_call() -> None:
    inbox, answers = Inbox("raw"), [asyncio.Event() for _ in range(2)]
    first, second = [asyncio.create_task(inbox.attend(each.wait(), yes)) for each in answers]
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})

    answer = await asyncio.wait_for(inbox.put(None, QUESTION), LIMIT_S)
    answers[1].set()

    assert answer.action == "accept"
    assert await second


async def test_a_question_whose_call_is_cancelled_is_answered_with_that() -> None:
    inbox, asked = Inbox("raw"), asyncio.Event()

    async def hesitate(_questions):
        asked.set()
        await asyncio.Event().wait()

    call = asyncio.create_task(inbox.attend(asyncio.Event().wait(), hesitate))
    await asyncio.sleep(0)
    question = asyncio.create_task(inbox.put(None, QUESTION))
    await asked.wait()
    call.cancel()

    assert (await asyncio.wait_for(question, LIMIT_S)).action == "cancel"


async def test_a_question_that_is_left_when_the_last_call_ends_is_declined() -> None:
    inbox, answer = Inbox("raw"), asyncio.Event()
    call = asyncio.create_task(inbox.attend(answer.wait(), yes))
    await asyncio.sleep(0)
    question = asyncio.create_task(inbox.put(None, QUESTION))
    call.cancel()

    assert (await asyncio.wait_for(question, LIMIT_S)).action in ("accept", "decline")


async def test_a_look_at_a_server_leaves_it_to_a_call_that_is_under_way(
    served_app, raw_server
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    used = []

    async def send(connection):
        used.append(connection)
        begun.set()
        await go.wait()
        return await connection.call("t", {"a": "x"})

    async with served_app({"raw": raw_server()}) as scripted:
        servers = scripted.app.stash.get(SERVERS)
        call = asyncio.create_task(servers.named("raw").request(send))
        await begun.wait()
        await servers.look(servers.named("raw"))
        go.set()
        result = await call

    assert result.content[0].text == "x"
    assert len(used) == 1


async def test_calls_while_a_server_ends_share_the_next_one(served_app, raw_server) -> None:
    async def same(connection):
        return connection

    async with served_app({"raw": raw_server()}) as scripted:
        server = scripted.app.stash.get(SERVERS).named("raw")
        before = await server.request(same)
        ending = asyncio.create_task(server.aclose())
        await asyncio.sleep(0)
        found = await asyncio.gather(*(server.request(same) for _ in range(3)))
        await ending

    assert before not in found
    assert len(set(found)) == 1


async def test_a_server_may_be_added_while_the_tools_of_the_others_are_read(
    served_app, raw_server
) -> None:
    async with served_app({"raw": raw_server()}) as scripted:
        servers = scripted.app.stash.get(SERVERS)
        reading = iter(servers)
        next(reading)
        await servers.add(msgspec.structs.replace(servers.named("raw").config, name="late"))

        assert [*reading] == []


async def test_a_refresh_with_an_older_list_does_not_replace_a_newer_one(
    served_app, raw_server, tmp_path: Path
) -> None:
    """The pins of the second server are a pipe, at which the first refresh is held."""
    async with served_app({"raw": raw_server(), "slow": raw_server()}) as scripted:
        servers = scripted.app.stash.get(SERVERS)
        raw, pins = servers.named("raw"), next((tmp_path / "data").rglob("pins/slow-*.json"))
        content = pins.read_bytes()
        pipe = pins.with_name("pipe")
        os.mkfifo(pipe)
        pipe.replace(pins)
        older = asyncio.create_task(servers.refresh())
        held = await opened(pins)
        pins.unlink()
        pins.write_bytes(content)
        raw.catalogue = None
        newer = asyncio.create_task(servers.refresh())
        await asyncio.wait({newer}, timeout=0.2)  # or it waits for the older one
        os.write(held, content)
        os.close(held)
        await asyncio.gather(older, newer)

        assert "raw_t" not in scripted.app.tools
        assert "slow_t" in scripted.app.tools


async def opened(pipe: Path) -> int:
    """Return the end to write of a pipe that is being read."""
    found = []

    def is_read() -> bool:
        try:
            found.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    await settled(is_read)
    return found[0]
