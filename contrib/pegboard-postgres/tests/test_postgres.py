"""The storage keeps what storages promise, and says what is wrong where it cannot be opened."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pegboard_postgres
import psycopg
import pytest
from pegboard_postgres import open_postgres
from pegboard_postgres.reads import forget_events
from pegboard_postgres.storage import PostgresStorage

from pegboard.errors import ConfigError, StorageError
from pegboard.ids import IdSource
from pegboard.schema.event import Custom, MessageUpdated
from pegboard.schema.part import TextPart
from pegboard.storage import CreateSession, PublishEvent, PutMessage, PutPart, PutState
from pegboard.testing import check_hooks, check_shared_storage, check_storage
from support.models.written import until
from support.storage import rows

NewUrl = Callable[[], str]
PUBLISH = PublishEvent(Custom(name="told", data={}))


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStorage]:
    storage = await PostgresStorage.open(url, ids=IdSource())
    try:
        yield storage
    finally:
        await storage.aclose()


def changed(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(statement.encode())


def waiting(url: str) -> int:
    """Count the transactions that wait for a lock."""
    with psycopg.connect(url, autocommit=True) as db:
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        ((found,),) = db.execute(query).fetchall()
    return int(found)


async def test_it_keeps_what_a_storage_promises(new_url: NewUrl) -> None:
    assert await check_storage(open_postgres, new_url) == ()


async def test_it_keeps_what_a_storage_promises_that_processes_share(new_url: NewUrl) -> None:
    assert await check_shared_storage(open_postgres, new_url) == ()


async def test_its_hooks_are_hooks() -> None:
    assert await check_hooks(pegboard_postgres) == ()


async def test_those_that_open_an_empty_database_at_once_make_the_tables_once(
    new_url: NewUrl,
) -> None:
    url = new_url()
    storages = await asyncio.gather(*(open_postgres(url, ids=IdSource()) for _ in range(5)))

    found = [await each.projects() for each in storages]
    for each in storages:
        await each.aclose()

    assert found == [()] * 5


@pytest.mark.parametrize("place", ["url", "environment"])
async def test_a_password_in_the_environment_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = ":hidden-word" if place == "url" else ""
    if place == "environment":
        monkeypatch.setenv("PGPASSWORD", "hidden-word")

    with pytest.raises(ConfigError, match="put it into a file with mode 0600") as caught:
        await open_postgres(f"postgresql://ada{word}@localhost/pegboard", ids=IdSource())

    assert "hidden-word" not in str(caught.value)


async def test_a_server_that_is_not_there_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot open the database postgresql://") as caught:
        await open_postgres(f"postgresql://ada@/pegboard?host={tmp_path}", ids=IdSource())

    assert "see whether the server runs" in str(caught.value)


async def test_tables_of_a_later_version_are_refused(new_url: NewUrl) -> None:
    url = new_url()
    async with opened(url):
        pass
    changed(url, "UPDATE meta SET value = 99 WHERE key = 'schema_version'")

    with pytest.raises(StorageError, match=r"version 99, this Pegboard knows 1; update"):
        await open_postgres(url, ids=IdSource())


async def test_the_numbers_of_events_go_on_from_those_of_a_restored_dump(new_url: NewUrl) -> None:
    url = new_url()
    async with opened(url) as storage:
        await storage.commit(PUBLISH)
    changed(url, "UPDATE event SET seq = seq + (1::bigint << 40)")
    changed(url, "UPDATE meta SET value = (SELECT max(seq) >> 16 FROM event) WHERE key='seq_base'")

    async with opened(url) as storage:
        (before,) = await storage.events(0)
        (told,) = await storage.commit(PUBLISH)

    assert told.seq > before.seq


async def test_events_of_a_session_have_the_order_of_its_messages_also_where_a_commit_waits(
    new_url: NewUrl,
) -> None:
    url = new_url()
    async with opened(url) as first, opened(url) as second:
        await first.commit(*(CreateSession(rows.session(each)) for each in ("ses_1", "ses_2")))
        with psycopg.connect(url) as holder:
            holder.execute("SELECT 1 FROM session WHERE id = 'ses_1' FOR UPDATE")
            both = [rows.question(f"msg_{each}", session_id=f"ses_{each}") for each in (1, 2)]
            waits = asyncio.create_task(first.commit(*map(PutMessage, both)))
            await until(lambda: waiting(url) == 1)
            later = PutMessage(rows.question("msg_3", session_id="ses_2"))
            other = asyncio.create_task(second.commit(later))
            await until(lambda: other.done() or waiting(url) == 2)
            holder.rollback()
        await asyncio.gather(waits, other)

        turns = await first.turns("ses_2")
        told = [each.properties for each in await first.events(0)]

    messages = [each.info for each in told if isinstance(each, MessageUpdated)]
    found = [each.id for each in messages if each.session_id == "ses_2"]
    assert found == [each.info.id for each in turns]


async def test_events_of_the_day_before_are_forgotten(new_url: NewUrl) -> None:
    url = new_url()
    async with opened(url) as storage:
        await storage.commit(PUBLISH)
        changed(url, "UPDATE event SET at = at - interval '25 hours'")
        (later,) = await storage.commit(PUBLISH)
        await storage._read(forget_events)
        with psycopg.connect(url) as db:
            found = db.execute("SELECT seq FROM event").fetchall()

    assert found == [(later.seq,)]


async def test_a_damaged_row_says_so_and_hides_no_other(new_url: NewUrl) -> None:
    url = new_url()
    async with opened(url) as storage:
        await storage.commit(CreateSession(rows.session()), PutMessage(rows.answer("msg_1")))
        for id_ in ("prt_1", "prt_2"):
            await storage.commit(PutPart(rows.text(id_, message_id="msg_1", content="whole")))
        changed(url, "UPDATE part SET data = 'no JSON' WHERE id = 'prt_1'")

        (turn,) = await storage.turns("ses_1")
        problems = await storage.problems()

    assert [part.text for part in turn.parts if isinstance(part, TextPart)] == [
        "damaged part prt_1",
        "whole",
    ]
    assert [each.partition(":")[0] for each in problems] == ["part prt_1 cannot be read"]


async def test_a_commit_that_is_refused_fails_alone(new_url: NewUrl) -> None:
    async with opened(new_url()) as storage:
        await storage.commit(CreateSession(rows.session()))
        part = rows.text("prt_1", message_id="msg_none", content="x")
        bad = [
            storage.commit(PutPart(part)),
            storage.commit(PutState("ses_1", "key\x00", 1)),
            storage.commit(*[PUBLISH] * 70_000),
        ]
        good = [storage.commit(PUBLISH) for _ in range(20)]

        found = await asyncio.gather(*good[:10], *bad, *good[10:], return_exceptions=True)

    errors = [type(each).__name__ for each in found if isinstance(each, BaseException)]
    assert errors == ["NotFoundError", "InvalidInputError", "InvalidInputError"]
