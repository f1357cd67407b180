import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

from pegboard.ids import IdSource
from pegboard.schema.event import MessageUpdated, PartUpdated
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Failed, TextPart, ToolPart
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.processes.forks import PIPE, environment, start
from support.storage import stored

CHILD = Path(__file__).parents[1] / "support/storage/storage_child.py"
ROUNDS = 30


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await SqliteStorage.open(path, ids=IdSource())
    try:
        yield storage
    finally:
        await storage.aclose()


def killed(path: Path, name: str, least: int, delay_s: float) -> int:
    """The last number that a writing child told; it was killed a moment after number `least`."""
    command = [sys.executable, str(CHILD), "write", str(path), name]
    with start(command, cwd=path.parent, env=environment(), stdout=PIPE) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(least)]
        time.sleep(delay_s)
        child.kill()
        told += child.stdout.readlines()
    return int([line for line in told if line.endswith(b"\n")][-1])


def check_turn(number: int, turn: Turn) -> None:
    text, call = turn.parts
    assert isinstance(turn.info, AssistantMessage)
    assert isinstance(text, TextPart)
    assert isinstance(call, ToolPart)
    assert turn.info.id == f"msg_{number}"
    assert turn.info.error is not None
    assert text.text == f"text {number} " * (number % 400)
    assert isinstance(call.state, Failed)
    assert call.state.input == {"command": "make"}


async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.db"
    chance = random.Random(1)

    for name in map(str, range(ROUNDS)):
        last = killed(path, name, chance.randrange(1, 30), chance.uniform(0.0, 0.005))
        async with opened(path) as storage:
            assert storage.warnings == ()
            assert await stored.running(storage) == ()
            turns = await storage.turns(f"ses_{name}")

            # The child may have died between a commit and its word.
            assert len(turns) in {last, last + 1}
            for number, turn in enumerate(turns, 1):
                check_turn(number, turn)

    db = apsw.Connection(str(path))
    assert db.pragma("integrity_check") == "ok"
    db.close()


async def test_replaying_the_events_gives_the_rows_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.db"
    killed(path, "a", 10, 0.0)

    async with opened(path) as storage:
        events = await storage.events(0, limit=10_000)
        turns = await storage.turns("ses_a")
    messages = {}
    parts = {}
    for event in events:
        match event.properties:
            case MessageUpdated(info=info):
                messages[info.id] = info
            case PartUpdated(part=part):
                parts[part.id] = part

    assert list(messages.values()) == [turn.info for turn in turns]
    assert parts == {part.id: part for turn in turns for part in turn.parts}
    assert len({event.seq for event in events}) == len(events)
