import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.ids import IdSource
from pegboard.schema.event import (
    MessageUpdated,
    PartUpdated,
    PermissionReplied,
    SessionIdle,
    SessionStatusChanged,
)
from pegboard.schema.message import MessageTime, TextData, Turn, UnknownFailure
from pegboard.schema.part import Completed, CompletedSpan, Failed, Pending, Running, ToolPart
from pegboard.schema.session import Idle
from pegboard.storage import Fence
from pegboard.storage.changes import CreateSession, PutMessage, PutPart
from pegboard.storage.rows import INTERRUPTED_ANSWER, INTERRUPTED_CALL
from pegboard_plugins.sqlite.owners import (
    Owners,
    died_with_the_machine,
)
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.processes.forks import PIPE, Fork, environment, start
from support.storage import rows, stored

CHILD = Path(__file__).parents[2] / "support/storage/storage_child.py"


async def opened(path: Path) -> SqliteStorage:
    return await SqliteStorage.open(path, ids=IdSource())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pegboard.db"


@pytest.fixture
async def storage(path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await opened(path)
    yield storage
    await storage.aclose()


@contextmanager
def holder(path: Path) -> "Iterator[Fork | subprocess.Popen[bytes]]":
    """A process that runs `ses_1`; it ends when it is killed or its stdin is closed."""
    command = [sys.executable, str(CHILD), "hold", str(path)]
    with start(command, cwd=path.parent, env=environment(), stdin=PIPE, stdout=PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        try:
            yield child
        finally:
            child.kill()


async def test_one_run_at_a_time_has_a_session(storage: SqliteStorage, path: Path) -> None:
    await storage.commit(CreateSession(rows.session()))
    fence = await storage.claim("ses_1")
    other = await opened(path)

    for claimant in (storage, other):
        with pytest.raises(SessionBusyError):
            await claimant.claim("ses_1")
    await storage.release(fence)
    second = await other.claim("ses_1")
    await other.aclose()

    assert second.epoch == fence.epoch + 1


async def test_a_session_that_is_not_there_cannot_be_claimed(storage: SqliteStorage) -> None:
    with pytest.raises(NotFoundError):
        await storage.claim("ses_9")


@pytest.mark.parametrize("again", [0, 1, 2, 3])
async def test_a_cancelled_claim_leaves_the_session_free_however_often_it_is_cancelled(
    storage: SqliteStorage, again: int
) -> None:
    await storage.commit(CreateSession(rows.session()))
    claiming = asyncio.ensure_future(storage.claim("ses_1"))
    await asyncio.sleep(0)
    claiming.cancel()
    for _ in range(again):
        await asyncio.sleep(0)
        claiming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claiming

    await storage.release(await storage.claim("ses_1"))


async def test_a_stale_fence_writes_nothing(storage: SqliteStorage) -> None:
    await storage.commit(CreateSession(rows.session()))
    stale = await storage.claim("ses_1")
    await storage.release(stale)
    fence = await storage.claim("ses_1")

    with pytest.raises(SessionBusyError):
        await storage.commit(PutMessage(rows.question()), fence=stale)
    await storage.release(stale)
    await storage.commit(PutMessage(rows.question("msg_2")), fence=fence)

    assert [turn.info.id for turn in await storage.turns("ses_1")] == ["msg_2"]


async def test_a_fence_of_a_deleted_session_writes_nothing(storage: SqliteStorage) -> None:
    fence = msgspec.structs.replace(await _claimed(storage), session_id="ses_gone")

    with pytest.raises(NotFoundError):
        await storage.commit(CreateSession(rows.session("ses_gone")), fence=fence)


async def test_a_session_is_claimed_elsewhere_while_another_owner_of_it_lives(
    storage: SqliteStorage, path: Path
) -> None:
    with holder(path) as child:
        assert await storage.is_claimed_elsewhere("ses_1")
        child.kill()
        child.wait()
        assert not await storage.is_claimed_elsewhere("ses_1")
    await storage.claim("ses_1")

    assert not await storage.is_claimed_elsewhere("ses_1"), "its own claim"
    assert not await storage.is_claimed_elsewhere("ses_unknown")


async def test_another_process_s_session_is_busy_and_can_be_read(
    path: Path, storage: SqliteStorage
) -> None:
    with holder(path):
        with pytest.raises(SessionBusyError):
            await storage.claim("ses_1")
        second = await opened(path)
        assert await stored.running(second) == ("ses_1",), (
            "opening leaves a living process's work alone"
        )
        assert len(await storage.turns("ses_1")) == 1
        await second.aclose()


async def test_a_dead_process_s_session_is_taken_over(path: Path, storage: SqliteStorage) -> None:
    with holder(path) as child:
        child.kill()
        child.wait()

        fence = await storage.claim("ses_1")

    assert fence.epoch == 2
    assert await stored.running(storage) == ()
    await storage.commit(PutMessage(rows.question("msg_9")), fence=fence)


async def test_what_a_process_left_that_died_meanwhile_looks_like_it(
    path: Path, storage: SqliteStorage
) -> None:
    with holder(path) as child:
        (running,) = await storage.turns("ses_1")
        child.kill()
        child.wait()

        (ended,) = await storage.turns("ses_1")
        as_json = await storage.turns_json("ses_1")

    before, after = running.parts[1], ended.parts[1]
    assert isinstance(before, ToolPart)
    assert isinstance(before.state, Running)
    assert isinstance(after, ToolPart)
    assert isinstance(after.state, Failed)
    assert after.state.error == INTERRUPTED_CALL
    assert INTERRUPTED_CALL.encode() in as_json
    assert await stored.running(storage) == ()


async def test_what_a_dead_process_left_is_interrupted_at_the_next_opening(path: Path) -> None:
    with holder(path) as child:
        child.kill()

    storage = await opened(path)
    (turn,) = await storage.turns("ses_1")
    events = await storage.events(0)
    requests = await stored.permission_requests(storage)
    await storage.release(await storage.claim("ses_1"))
    await storage.aclose()

    call = turn.parts[1]
    assert isinstance(call, ToolPart)
    assert isinstance(call.state, Failed)
    assert call.state == Failed(
        input={"command": "make"},
        error=INTERRUPTED_CALL,
        time=msgspec.structs.replace(rows.RUNNING.time, end=call.state.time.end),
        metadata={"output": "half"},
    )
    assert turn.info == msgspec.structs.replace(
        rows.answer("msg_1"),
        error=UnknownFailure(data=TextData(message=INTERRUPTED_ANSWER)),
        time=MessageTime(created=1, completed=turn.info.time.completed),
    )
    assert requests == ()
    assert [event.properties for event in events[-5:]] == [
        PartUpdated(session_id="ses_1", part=call, time=events[-5].properties.time),
        MessageUpdated(session_id="ses_1", info=turn.info),
        PermissionReplied(session_id="ses_1", request_id="per_1", reply="reject"),
        SessionStatusChanged(session_id="ses_1", status=Idle()),
        SessionIdle(session_id="ses_1"),
    ]


async def test_recovery_leaves_what_is_finished_alone(path: Path) -> None:
    done = Completed(
        input={}, output="o", title="t", metadata={}, time=CompletedSpan(start=1, end=2)
    )
    storage = await opened(path)
    await storage.commit(
        CreateSession(rows.session()),
        PutMessage(rows.answer(completed=5)),
        PutPart(rows.call("prt_1", state=done)),
        PutPart(rows.call("prt_2", state=Pending(input={"a": 1}, raw="{"))),
    )
    await storage.aclose()

    storage = await opened(path)
    (turn,) = await storage.turns("ses_1")
    await storage.aclose()

    failed = turn.parts[1]
    assert isinstance(failed, ToolPart)
    assert isinstance(failed.state, Failed)
    ended = msgspec.structs.replace(rows.call(), state=failed.state)
    assert turn == Turn(
        info=rows.answer(completed=5), parts=(rows.call("prt_1", state=done), ended)
    )
    assert failed.state.input == {"a": 1}


async def test_a_second_opening_has_nothing_to_recover(path: Path) -> None:
    with holder(path) as child:
        child.kill()
    seen = []
    for _ in range(3):
        storage = await opened(path)
        seen.append(await stored.last_seq(storage))
        await storage.aclose()

    assert seen[0] == seen[1] == seen[2]


async def test_a_process_that_was_taken_for_dead_cannot_write(path: Path) -> None:
    with holder(path) as child:
        for lock in path.with_name("pegboard.db.owners").iterdir():
            lock.unlink()
        storage = await opened(path)
        fence = await storage.claim("ses_1")
        assert child.stdin is not None
        child.stdin.close()

        assert child.wait(timeout=60) != 0
        assert len(await storage.turns("ses_1")) == 1
        await storage.commit(PutMessage(rows.question("msg_9")), fence=fence)
        await storage.aclose()


async def test_processes_share_a_database(path: Path, storage: SqliteStorage) -> None:
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, str(CHILD), "add", str(path), name, "60"
        )
        for name in ("a", "b")
    ]
    await storage.commit(CreateSession(rows.session("ses_c")))
    for number in range(60):
        await storage.commit(PutMessage(rows.question(f"msg_{number}", session_id="ses_c")))

    async with asyncio.timeout(30):
        assert [await child.wait() for child in children] == [0, 0]

    for name in "abc":
        turns = await storage.turns(f"ses_{name}")
        assert [turn.info.id for turn in turns] == [f"msg_{number}" for number in range(60)]


async def test_nothing_is_left_of_owners_that_are_gone(path: Path) -> None:
    with holder(path) as child:
        child.kill()
    storage = await opened(path)
    await storage.aclose()

    left = [file.name for file in path.with_name("pegboard.db.owners").iterdir()]
    assert left == ["opening"]


async def test_many_openings_at_once_all_succeed(path: Path) -> None:
    storages = await asyncio.gather(*(opened(path) for _ in range(8)))

    await asyncio.gather(
        *(
            storage.commit(CreateSession(rows.session(f"ses_{number}")))
            for number, storage in enumerate(storages)
        )
    )
    assert len(await storages[0].sessions()) == 8
    await asyncio.gather(*(storage.aclose() for storage in storages))
    assert threading.active_count() < 20


def test_only_an_owner_of_this_start_of_the_machine_died_alone() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]

    assert not died_with_the_machine(f"1-2-{boot}-abc")
    assert died_with_the_machine("1-2-00000000-abc")
    assert died_with_the_machine("rubbish")


FORKING = """
import os, sys, time
from pathlib import Path
from pegboard_plugins.sqlite.databasefile import LockWait
from pegboard_plugins.sqlite.owners import Owners
owners = Owners(Path(sys.argv[1]))
with owners.opening(LockWait.of(Path("pegboard.db"))):
    owners.register()
child = os.fork()
if child == 0:
    os.close(1)
    time.sleep(60)
print(owners.own, child, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc to find processes in")
def test_an_owner_is_dead_although_its_fork_has_the_lock(tmp_path: Path) -> None:
    folder = tmp_path / "owners"
    command = [sys.executable, "-c", FORKING, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        own, child = process.stdout.readline().split()
        assert Owners(folder).is_alive(own)
        process.kill()
        process.wait()

        assert not Owners(folder).is_alive(own)

        os.kill(int(child), signal.SIGKILL)


async def _claimed(storage: SqliteStorage) -> Fence:
    await storage.commit(CreateSession(rows.session()))
    return await storage.claim("ses_1")
