"""What a server must bear: too many prompts, clients and sessions at once.

With PEGBOARD_ABUSE=all in the environment a client that never reads lets a gigabyte of events
pass, ten thousand wrong tokens are tried, and ten thousand sessions are listed (minutes).
"""

import asyncio
import os
import socket
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from support.wire.crowd import WITHIN_S, crowd, following
from support.wire.served import Served, served

ALL = os.environ.get("PEGBOARD_ABUSE") == "all"
only_when_asked = pytest.mark.skipif(not ALL, reason="long: set PEGBOARD_ABUSE=all")
CLIENTS = 1000
MOST_WAITING = 100


async def test_prompts_beyond_a_hundred_are_refused_and_the_others_answered_in_order(
    server: Served,
) -> None:
    async with crowd(server.url, server.headers, model="fake-model") as prompts:
        (session,) = await prompts.sessions(1)
        first = asyncio.create_task(prompts.client.post(**_prompt(session, "%slow 30")))
        await _until_running(prompts.client, session)
        sent = [
            asyncio.create_task(prompts.client.post(**_prompt(session, f"%say number {at}")))
            for at in range(MOST_WAITING + 30)
        ]
        answers = await asyncio.gather(first, *sent)
        turns = (await prompts.client.get(f"/session/{session}/message")).json()

    counted = Counter(answer.status_code for answer in answers)
    assert counted == {200: MOST_WAITING, 429: 31}
    assert "wait already" in next(each.text for each in answers if each.status_code == 429)
    asked = [turn["info"]["id"] for turn in turns if turn["info"]["role"] == "user"]
    assert len(asked) == MOST_WAITING
    assert asked == sorted(asked)
    assert turns[-1]["info"]["role"] == "assistant"


async def test_a_session_that_is_deleted_ends_its_turn_and_refuses_more(server: Served) -> None:
    async with crowd(server.url, server.headers, model="fake-model") as prompts:
        (session,) = await prompts.sessions(1)
        slow = asyncio.create_task(prompts.client.post(**_prompt(session, "%slow 600")))
        await _until_running(prompts.client, session)
        while_running = await prompts.client.post(
            f"/session/{session}/revert", json={"messageID": "msg_000000000001AAAAAAAAAAAAAA"}
        )
        deleted = await prompts.client.delete(f"/session/{session}")
        ended = await slow
        after = await prompts.client.post(**_prompt(session, "%say no"))

    assert while_running.status_code in {404, 409}
    assert deleted.json() is True
    assert ended.status_code < 500
    assert after.status_code == 404


async def test_a_thousand_clients_listen_in_bounded_memory(model_port: int, tmp_path: Path) -> None:
    with served(tmp_path, model_port) as server:
        before = _sockets(server)
        async with (
            crowd(server.url, server.headers, model="fake-model", text="%say hello") as prompts,
            following(server.url, CLIENTS, server.headers) as followers,
        ):
            await prompts.prompt((await prompts.sessions(1))[0])
            await _until_all_have(followers[0].last, followers)
            grown = server.resident_mb
        await _until_closed(server, before + 20)

    assert grown < 200
    assert all(each.gaps == [] for each in followers)


@only_when_asked
@pytest.mark.timeout(900)
def test_a_gigabyte_of_events_passes_a_client_that_never_reads(
    model_port: int, tmp_path: Path
) -> None:
    with served(tmp_path, model_port) as server, server.client() as client:
        port = int(server.url.rpartition(":")[2])
        head = f"GET /event HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        with socket.create_connection(("127.0.0.1", port)) as deaf:
            deaf.sendall(f"{head}authorization: Bearer {server.token}\r\n\r\n".encode())
            before = server.resident_mb
            for _ in range(1024):
                text = {"text": "x" * (1 << 20)}
                assert client.post("/tui/append-prompt", json=text).json() is True
            grown = server.resident_mb - before

    assert grown < 32


@only_when_asked
@pytest.mark.timeout(900)
def test_ten_thousand_wrong_tokens_get_nowhere(model_port: int, tmp_path: Path) -> None:
    with served(tmp_path, model_port) as server:
        with httpx.Client(base_url=server.url) as stranger:
            for at in range(10_000):
                wrong = {"authorization": f"Bearer {at:064d}"}
                assert stranger.get("/session", headers=wrong).status_code == 401
        lines = (tmp_path / "server.log").read_text().splitlines()

    assert sum("refused" in line for line in lines) < 100


@only_when_asked
@pytest.mark.timeout(900)
async def test_ten_thousand_sessions_are_listed_a_page_at_a_time(
    model_port: int, tmp_path: Path
) -> None:
    with served(tmp_path, model_port) as server:
        async with crowd(server.url, server.headers, model="fake-model") as prompts:
            for _ in range(100):
                await asyncio.gather(*[prompts.sessions(1) for _ in range(100)])
            began = time.perf_counter()
            for _ in range(10):
                page = await prompts.client.get("/session", params={"limit": "100"})
                assert len(page.json()) == 100
            took = (time.perf_counter() - began) / 10

    assert took < 2


def _prompt(session: str, text: str) -> dict[str, object]:
    body = {"parts": [{"type": "text", "text": text}]}
    return {"url": f"/session/{session}/message", "json": body}


async def _until_running(client: httpx.AsyncClient, session: str) -> None:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        if session in (await client.get("/session/status")).json():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the session does not begin")


async def _until_all_have(number: int, followers: tuple[object, ...]) -> None:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        if all(getattr(each, "last", 0) >= number for each in followers):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("some clients hear nothing")


def _sockets(server: Served) -> int:
    """The server's ends of connections; its own folder in /proc is closed to other users."""
    port = int(server.url.rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    held = {"01", "08", "0A"}  # established, closed by the client alone, listening
    return sum(row[1].endswith(f":{port:04X}") and row[3] in held for row in rows)


async def _until_closed(server: Served, most: int) -> None:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        if _sockets(server) <= most:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("connections of clients that are gone stay open")
