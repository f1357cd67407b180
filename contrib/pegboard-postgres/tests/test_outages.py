# ruff: noqa: ASYNC110 - what is waited for happens in other processes
"""What holds when the server restarts, a process is stopped, and many processes write at once."""

import asyncio
import os
import signal
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from pegboard_postgres import open_postgres
from pegboard_postgres.connections import Address
from pegboard_postgres.workers import LEASE_S, Lease
from postgres_server import PostgresServer, server_for_tests

from pegboard.errors import SessionBusyError
from pegboard.ids import IdSource
from pegboard.schema.event import Custom
from pegboard.storage import (
    ChangeSession,
    CreateSession,
    Fence,
    PublishEvent,
    PutMessage,
    Storage,
    follow,
)
from support.processes.forks import environment
from support.storage import rows

NewUrl = Callable[[], str]
WRITERS = 8
FOLLOWED_S = float(os.environ.get("PEGBOARD_FOLLOWED_S", "2"))
"""How long the writers write whom a follower hears."""
ROOT = Path(__file__).parents[1]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Storage]:
    storage = await open_postgres(url, ids=IdSource())
    try:
        yield storage
    finally:
        await storage.aclose()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """Start a server that a test may stop."""
    yield from server_for_tests()


async def adding(storage: Storage, session_id: str, fence: Fence, until: asyncio.Event) -> int:
    """Add to the session's cost until the event; return how often that was acknowledged."""
    added = 0
    while not until.is_set():
        change = ChangeSession(session_id=session_id, cost=1.0)
        await storage.commit(change, PutMessage(rows.question(f"msg_{added}")), fence=fence)
        added += 1
    return added


async def cost(storage: Storage) -> float:
    return (await storage.session("ses_1")).cost or 0.0


async def test_a_crash_of_the_server_loses_nothing_and_takes_nobody_over(
    own_server: PostgresServer,
) -> None:
    url, until = own_server.new_url(), asyncio.Event()
    async with opened(url) as storage, opened(url) as other:
        await storage.commit(CreateSession(rows.session()))
        fence = await storage.claim("ses_1")
        writing = asyncio.create_task(adding(storage, "ses_1", fence, until))
        for round_ in range(3):
            while not writing.done() and await cost(other) < 5 * (round_ + 1):
                await asyncio.sleep(0.01)
            assert not writing.done(), writing.exception()
            await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
            await asyncio.to_thread(own_server.start)
            with pytest.raises(SessionBusyError):
                await other.claim("ses_1")
        until.set()
        added = await writing
        session, turns = await storage.session("ses_1"), await storage.turns("ses_1")

    assert session.cost == added
    assert len(turns) == added


CHILD = """
import asyncio, sys
from support.storage import rows
from pegboard.errors import SessionBusyError
from pegboard.ids import IdSource
from pegboard.storage import CreateSession, PutMessage
from pegboard_postgres import open_postgres

async def main():
    storage = await open_postgres(sys.argv[1], ids=IdSource())
    await storage.commit(CreateSession(rows.session()))
    fence = await storage.claim("ses_1")
    await storage.commit(PutMessage(rows.answer("msg_1")), fence=fence)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    try:
        await storage.commit(PutMessage(rows.answer("msg_2")), fence=fence)
    except SessionBusyError:
        print("busy", flush=True)
    await storage.aclose()

asyncio.run(main())
"""


async def line(child: Process) -> str:
    assert child.stdout is not None
    return (await child.stdout.readline()).decode().strip()


async def test_the_sessions_of_a_stopped_process_go_on_elsewhere_and_it_writes_no_more(
    new_url: NewUrl,
) -> None:
    url = new_url()
    paths = [str(ROOT), str(Path(rows.__file__).parent), *sys.path]
    env = {**environment(), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD, url), stdin=PIPE, stdout=PIPE, env=env
    )
    try:
        assert await line(child) == "ready"
        async with opened(url) as storage:
            child.send_signal(signal.SIGSTOP)
            fence = await claimed(storage, "ses_1")
            (turn,) = await storage.turns("ses_1")
            child.send_signal(signal.SIGCONT)
            assert child.stdin is not None
            child.stdin.write(b"\n")
            said = await line(child)
            after = await storage.turns("ses_1")
            await storage.release(fence)
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()

    assert said == "busy"
    assert after == (turn,)
    assert "interrupted" in str(getattr(turn.info, "error", None))


async def claimed(storage: Storage, session_id: str) -> Fence:
    """Claim a session, as soon as the lease of its owner is over."""
    while True:  # the test has a time limit
        try:
            return await storage.claim(session_id)
        except SessionBusyError:
            await asyncio.sleep(0.05)


async def telling(url: str, seconds: float) -> list[int]:
    """Commit events for so long; return their numbers."""
    numbers, clock = [], asyncio.get_running_loop().time
    async with opened(url) as storage:
        end = clock() + seconds
        while clock() < end:
            told = PublishEvent(Custom(name="told", data={}))
            numbers += [event.seq for event in await storage.commit(told)]
    return numbers


@pytest.mark.timeout(120 + 2 * FOLLOWED_S)
async def test_a_follower_misses_no_event_of_eight_writers(new_url: NewUrl) -> None:
    url, heard = new_url(), list[int]()
    numbers: list[list[int]] = [[] for _ in range(WRITERS)]

    def write(at: int) -> None:
        numbers[at] = asyncio.run(telling(url, FOLLOWED_S))

    async with AsyncExitStack() as stack:
        storage = await stack.enter_async_context(opened(url))
        threads = [threading.Thread(target=write, args=(at,)) for at in range(WRITERS)]
        for thread in threads:
            thread.start()

        async def hear() -> None:
            async for event in follow(storage, 0, every_s=0.02):
                heard.append(event.seq)

        following = asyncio.create_task(hear())
        for thread in threads:
            await asyncio.to_thread(thread.join)
        last = max(max(each) for each in numbers)
        while not following.done() and (not heard or heard[-1] < last):
            await asyncio.sleep(0.02)
        following.cancel()

    assert heard == sorted(seq for each in numbers for seq in each)


def lives(url: str, owner: str) -> bool:
    """Return whether the lease of a process goes on, without a turn of the event loop."""
    statement = b"SELECT lease_until > clock_timestamp() FROM worker WHERE id = %s"
    with psycopg.connect(url) as db:
        row = db.execute(statement, (owner,)).fetchone()
    return row == (True,)


async def test_the_lease_of_a_process_with_a_busy_event_loop_goes_on(new_url: NewUrl) -> None:
    url = new_url()
    async with opened(url):
        lease = Lease(Address(url))
        await lease.begin()
        time.sleep(LEASE_S + 0.5)  # noqa: ASYNC251 - the busy loop
        alive = lives(url, lease.own)
        await lease.aclose()

        assert alive
        assert not lives(url, lease.own)


async def test_the_lease_of_a_process_with_an_event_loop_that_hangs_ends(new_url: NewUrl) -> None:
    url = new_url()
    async with opened(url):
        lease = Lease(Address(url), stuck_s=0.5)
        await lease.begin()
        time.sleep(LEASE_S + 1.5)  # noqa: ASYNC251 - the loop that hangs
        alive = lives(url, lease.own)
        await lease.aclose()

    assert not alive
