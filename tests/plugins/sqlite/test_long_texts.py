"""A streamed text that is long stays in its pieces, so that it is written once."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pegboard.schema.message import Turn
from pegboard.schema.part import ReasoningPart, TextPart
from pegboard.storage.changes import (
    CreateSession,
    DropMessage,
    PutMessage,
    PutPart,
)
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows
from support.storage.damage import PAGE
from support.storage.text_pieces import added, begun, opened, part, pieces_left, replayed, texts

LONG = 'A long \N{SNOWMAN} text, "quoted". ' * 100
"""Longer than what a row has of a streamed text."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pegboard.db"


@pytest.fixture
async def storage(path: Path) -> AsyncIterator[SqliteStorage]:
    made = await begun(path)
    yield made
    await made.aclose()


@pytest.mark.parametrize("kind", [TextPart, ReasoningPart])
async def test_a_long_text_stays_in_its_pieces_and_is_read_everywhere(
    storage: SqliteStorage, path: Path, kind: type
) -> None:
    whole = part(LONG, end=2, kind=kind)
    await storage.commit(PutPart(part(kind=kind)))
    await storage.commit(*added(LONG[:1500], LONG[1500:] + "  \n"))

    [event] = await storage.commit(PutPart(whole))

    other = await opened(path)
    turns = await other.turns("ses_1")
    assert turns[-1].parts == (await other.turn("ses_1", "msg_2")).parts == (whole,)
    assert msgspec.json.decode(await other.turns_json("ses_1"), type=tuple[Turn, ...]) == turns
    assert (await other.events(event.seq - 1))[0] == event
    assert event.properties == replace(event.properties, part=whole)
    assert await other.problems() == ()
    assert kind is ReasoningPart or await other.search("project", "quoted")
    await other.aclose()
    [(data, size)] = storage._writer._db.execute("SELECT data, streamed FROM part")
    assert (len(bytes(data)) < 500, size) == (True, len(LONG.encode()))  # type: ignore[arg-type]  # a BLOB


async def test_a_long_text_is_found_as_far_as_it_goes(storage: SqliteStorage) -> None:
    await storage.commit(PutPart(part()), *added(LONG, "taken back"))

    await storage.commit(PutPart(part(LONG, end=2)))

    assert await storage.search("project", "taken back") == ()
    [hit] = await storage.search("project", "long \N{SNOWMAN}")
    assert hit.message_id == "msg_2"


async def test_a_long_text_goes_on_where_it_had_ended(storage: SqliteStorage) -> None:
    await storage.commit(PutPart(part()), *added(LONG, "taken back"))
    await storage.commit(PutPart(part(LONG, end=2)))

    await storage.commit(*added("More."))

    assert texts((await storage.turns("ses_1"))[-1].parts) == [LONG + "More."]
    assert replayed(await storage.events(0)) == LONG
    await storage.commit(PutPart(part(LONG + "More.", end=3)))
    assert texts((await storage.turns("ses_1"))[-1].parts) == [LONG + "More."]
    assert replayed(await storage.events(0)) == LONG + "More."


@pytest.mark.parametrize("text", [LONG, LONG[:-9], "Edited."])
async def test_a_long_text_that_is_put_again_is_what_was_put(
    storage: SqliteStorage, text: str
) -> None:
    await storage.commit(PutPart(part()), *added(LONG))
    await storage.commit(PutPart(part(LONG, end=2)))

    await storage.commit(PutPart(part(text, end=3)))

    assert (await storage.turns("ses_1"))[-1].parts == (part(text, end=3),)
    assert replayed(await storage.events(0)) == text


async def test_a_long_text_outlives_its_events_and_ends_with_its_part(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.sqlite.writerthread._MOST_EVENTS", 1)
    monkeypatch.setattr("pegboard_plugins.sqlite.writerthread._PRUNE_EVERY", 1)
    await storage.commit(PutPart(part()), *added(LONG))
    await storage.commit(PutPart(part(LONG, end=2)))

    for _ in range(3):
        await storage.commit(PutMessage(rows.question()))
    read = texts((await storage.turns("ses_1"))[-1].parts)
    await storage.commit(DropMessage("ses_1", "msg_2"))

    assert read == [LONG]
    assert pieces_left(storage) == 0


async def test_text_that_is_lost_is_said_where_it_is_read_and_to_who_looks(
    storage: SqliteStorage,
) -> None:
    text = "Some text. " * 2000
    await storage.commit(PutPart(part()), *added(text))
    await storage.commit(PutPart(part(text, end=2)))
    storage._writer._db.execute("DELETE FROM part_text WHERE ordinal = (1 << 24) + 2")

    [read] = texts((await storage.turns("ses_1"))[-1].parts)

    lost = len(text) - (16 << 10)
    assert read == f"{text[:-lost]}\n[damaged: {lost} bytes of this text are lost]"
    assert await storage.problems() == ("part prt_2 has lost some of its text",)


@pytest.mark.parametrize("rate", [256, 2_560, 5_120, 1 << 20])
@pytest.mark.parametrize("kb", [4, 10, 50, 100, 200, 400])
async def test_a_text_costs_three_times_its_bytes_or_four_pages_however_slow_it_is(
    path: Path, kb: int, rate: int
) -> None:
    short = await cost(path, 0, rate)

    long = await cost(path.with_name("long"), kb << 10, rate)

    text, pages = kb << 10, 4 * (PAGE + 24)
    assert long - short <= max(3 * text, text + pages)


async def test_a_commit_of_many_pages_writes_the_log_alone(storage: SqliteStorage) -> None:
    log = storage.path.with_name(f"{storage.path.name}-wal")
    messages = [PutMessage(replace(rows.question(), id=f"msg_{each}0")) for each in range(500)]
    await storage.commit(*messages)
    logged_before, written_before = log.stat().st_size, written()

    await storage.commit(*messages)

    grown = log.stat().st_size - logged_before
    assert grown > 64 << 10
    assert written() - written_before < grown + PAGE


def written() -> int:
    """The bytes that this process has given to the system to write."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


async def cost(path: Path, size: int, rate: int) -> int:
    """The bytes written for a part with so much text, of which `rate` comes between two commits."""
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()), PutMessage(rows.answer()))
    text = "0123456789abcdef" * (size // 16)
    before = written()
    await storage.commit(PutPart(part()))
    stored = 0
    while stored + (more := max(rate, stored // 10)) < size:
        await storage.commit(*added(text[stored : stored + more]))
        stored += more
    await storage.commit(PutPart(part(text, end=2)))
    found = written() - before
    [turn] = await storage.turns("ses_1")
    await storage.aclose()
    assert texts(turn.parts) == [text]
    return found
