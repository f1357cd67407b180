"""A process that uses a database and tells on stdout what is done; run by tests only.

`write <database> <name>` commits without end and tells each number once it is durable;
`hold <database>` leaves a session unfinished, and waits until its stdin ends;
`add <database> <name> <count>` commits so many messages, claiming the session for each.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path

sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).parents[2]))

from pegboard.ids import IdSource
from pegboard.schema.session import PermissionRequest
from pegboard.storage.changes import (
    Change,
    CreateSession,
    PutMessage,
    PutPart,
    PutPermissionRequest,
)
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows


def told(word: str) -> None:
    """Says it to the test, at once."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def turn(session_id: str, number: int) -> tuple[Change, ...]:
    """An answer with a text and a running call, all named after the number."""
    message_id = f"msg_{number}"
    return (
        PutMessage(rows.answer(message_id, session_id=session_id)),
        PutPart(
            rows.text(
                f"prt_{number}a",
                session_id=session_id,
                message_id=message_id,
                content=f"text {number} " * (number % 400),
            )
        ),
        PutPart(rows.call(f"prt_{number}b", session_id=session_id, message_id=message_id)),
    )


async def write(storage: SqliteStorage, name: str) -> None:
    """Commits until the process is killed."""
    session_id = f"ses_{name}"
    await storage.commit(CreateSession(rows.session(session_id)))
    fence = await storage.claim(session_id)
    for number in count(1):
        await storage.commit(*turn(session_id, number), fence=fence)
        told(str(number))


async def hold(storage: SqliteStorage) -> None:
    """Claims a session, leaves it unfinished, and waits."""
    request = PermissionRequest(
        id="per_1", session_id="ses_1", permission="bash", patterns=("x",), metadata={}, always=()
    )
    await storage.commit(CreateSession(rows.session()))
    fence = await storage.claim("ses_1")
    await storage.commit(*turn("ses_1", 1), PutPermissionRequest(request), fence=fence)
    told("held")
    await asyncio.to_thread(sys.stdin.read)
    await storage.commit(*turn("ses_1", 2), fence=fence)


async def add(storage: SqliteStorage, name: str, how_many: int) -> None:
    """Commits so many messages."""
    session_id = f"ses_{name}"
    await storage.commit(CreateSession(rows.session(session_id)))
    for number in range(how_many):
        fence = await storage.claim(session_id)
        await storage.commit(*turn(session_id, number), fence=fence)
        await storage.release(fence)


async def main(mode: str, database: str, *arguments: str) -> None:
    """Does what the mode says."""
    storage = await SqliteStorage.open(Path(database), ids=IdSource())
    match mode:
        case "write":
            await write(storage, arguments[0])
        case "hold":
            await hold(storage)
        case "add":
            await add(storage, arguments[0], int(arguments[1]))
    await storage.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
