"""A text that is streamed is stored in pieces, and read as a whole at every moment."""

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import msgspec
import pytest
from msgspec.structs import replace

from pegboard.errors import InvalidInputError
from pegboard.schema.event import PartUpdated
from pegboard.schema.message import Turn
from pegboard.schema.part import ReasoningPart, TextPart, TimeSpan
from pegboard.storage.changes import (
    AddText,
    CreateSession,
    DropPart,
    DropSession,
    PutMessage,
    PutPart,
)
from pegboard_plugins.sqlite.salvage import Salvaged
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows, stored
from support.storage.damage import PAGE, met, overwritten, rootpage, taken_over
from support.storage.text_pieces import added, opened, part, pieces_left, replayed, texts

PIECES = ("Once ", "upon \N{SNOWMAN}", "\n", " a time. ")
TEXT = "".join(PIECES).rstrip()
LONG = "A long text. " * 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pegboard.db"


@pytest.fixture
async def storage(path: Path) -> AsyncIterator[SqliteStorage]:
    made = await opened(path)
    await made.commit(CreateSession(rows.session()), PutMessage(rows.question()))
    await made.commit(PutMessage(rows.answer()))
    yield made
    await made.aclose()


async def begun(storage: SqliteStorage, *, kind: type = TextPart) -> None:
    """A text whose end has not come."""
    await storage.commit(PutPart(part(kind=kind)))
    for change in added(*PIECES):
        assert await storage.commit(change) == (), "no event tells of it"


@pytest.mark.parametrize("kind", [TextPart, ReasoningPart])
async def test_each_read_has_the_text_up_to_the_last_piece(
    storage: SqliteStorage, path: Path, kind: type
) -> None:
    await begun(storage, kind=kind)

    other = await opened(path)
    turns = await other.turns("ses_1")
    joined = msgspec.json.decode(await other.turns_json("ses_1"), type=tuple[Turn, ...])
    turn = await other.turn("ses_1", "msg_2")
    running = await stored.running(other)
    await other.aclose()

    assert turn.parts == (part("".join(PIECES), kind=kind),)
    assert turns[-1] == turn
    assert joined == turns
    assert running == (), "only calls run"


async def test_what_is_being_said_is_found_and_counted(storage: SqliteStorage) -> None:
    await storage.commit(PutPart(part()))
    [before] = await storage.sizes()
    await storage.commit(*added("Once upon ", "a time"))

    [hit] = await storage.search("project", "upon a")
    [after] = await storage.sizes()

    assert hit.message_id == "msg_2"
    assert after.size_bytes == before.size_bytes + len("Once upon a time")


@pytest.mark.parametrize("kind", [TextPart, ReasoningPart])
async def test_a_replay_of_events_leads_to_the_text_at_every_moment(
    storage: SqliteStorage, kind: type
) -> None:
    await storage.commit(PutPart(part(kind=kind)))
    first = await stored.last_seq(storage)
    for at, change in enumerate(added(*PIECES), 1):
        await storage.commit(change)
        assert replayed(await storage.events(0)) == "".join(PIECES[:at])
        assert await stored.last_seq(storage) == first, "the numbers that are told have no gaps"
    last = await stored.last_seq(storage)
    whole = part(TEXT, end=2, kind=kind)

    [event] = await storage.commit(PutPart(whole))

    for seq in range(last + 1):
        assert replayed(await storage.events(seq)) == TEXT
    assert (await storage.events(last)) == (event,)
    assert event.properties == replace(event.properties, part=whole)


@pytest.mark.parametrize(
    "text",
    ["", "Once", TEXT, "".join(PIECES), "".join(PIECES) + "More.", "Another one.", "Once again."],
)
async def test_the_part_at_its_end_is_what_counts(
    storage: SqliteStorage, path: Path, text: str
) -> None:
    await begun(storage)
    whole = part(text, end=2)

    await storage.commit(PutPart(whole))

    assert (await storage.turns("ses_1"))[-1].parts == (whole,)
    assert replayed(await storage.events(0)) == text
    db = apsw.Connection(str(path))
    [(data,)] = db.execute("SELECT data FROM part WHERE id = 'prt_2'")
    db.close()
    assert msgspec.json.decode(data)["text"] == text, "a reader needs no pieces any more"


async def test_what_changes_a_text_after_its_end_is_read_everywhere(
    storage: SqliteStorage,
) -> None:
    await begun(storage)
    await storage.commit(PutPart(part(TEXT, end=2)))

    await storage.commit(PutPart(part("Edited.", end=2)))

    assert texts((await storage.turns("ses_1"))[-1].parts) == ["Edited."]
    assert replayed(await storage.events(0)) == "Edited."
    assert pieces_left(storage) == 0


async def test_a_text_that_goes_on_after_its_end_begins_anew(storage: SqliteStorage) -> None:
    await begun(storage)
    await storage.commit(PutPart(part("Edited.", end=2)))

    await storage.commit(*added(" And", " more."))

    assert texts((await storage.turns("ses_1"))[-1].parts) == ["Edited. And more."]
    await storage.commit(PutPart(part("Edited. And more.", end=3)))
    assert texts((await storage.turns("ses_1"))[-1].parts) == ["Edited. And more."]
    assert replayed(await storage.events(0)) == "Edited. And more."


async def test_text_for_a_part_that_is_gone_is_nothing(storage: SqliteStorage) -> None:
    await begun(storage)
    await storage.commit(DropPart("ses_1", "msg_2", "prt_2"))

    assert await storage.commit(*added("late")) == ()

    assert (await storage.turns("ses_1"))[-1].parts == ()
    assert pieces_left(storage) == 0


@pytest.mark.parametrize("text", ["Once.", LONG])
async def test_an_event_of_a_part_that_is_gone_has_no_text_of_the_part_at_its_place(
    storage: SqliteStorage, text: str
) -> None:
    await begun(storage)
    await storage.commit(PutPart(part(LONG, end=2)), DropPart("ses_1", "msg_2", "prt_2"))
    other = replace(part(), id="prt_3")
    await storage.commit(PutPart(other), AddText("ses_1", "prt_3", text))
    assert replayed(await storage.events(0)) == ""

    await storage.commit(PutPart(replace(other, text=text, time=TimeSpan(start=1, end=2))))

    assert replayed(await storage.events(0)) == ""


async def test_pieces_go_with_their_session(storage: SqliteStorage) -> None:
    await begun(storage)
    await storage.commit(DropSession("ses_1"))

    assert pieces_left(storage) == 0


async def test_text_that_has_no_utf_8_form_is_refused_and_hurts_nobody(
    storage: SqliteStorage,
) -> None:
    await begun(storage)

    with pytest.raises(InvalidInputError, match="UTF-8"):
        await storage.commit(*added("\ud83d"))

    assert texts((await storage.turns("ses_1"))[-1].parts) == ["".join(PIECES)]


async def test_who_takes_over_a_dead_process_s_session_has_its_text(path: Path) -> None:
    dead = await opened(path)
    await dead.commit(CreateSession(rows.session()), PutMessage(rows.answer()))
    await dead.claim("ses_1")
    await begun(dead)
    dead._owners.close()  # as if the process had died
    await dead._writer.aclose()

    storage = await opened(path)
    [turn] = await storage.turns("ses_1")
    events = await storage.events(0)
    [(state,)] = storage._writer._db.execute("SELECT state FROM part")
    await storage.aclose()

    assert texts(turn.parts) == ["".join(PIECES)]
    assert replayed(events) == "".join(PIECES)
    assert state is None


async def test_an_open_text_outlives_the_events_of_its_part(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.sqlite.writerthread._MOST_EVENTS", 3)
    monkeypatch.setattr("pegboard_plugins.sqlite.writerthread._PRUNE_EVERY", 1)
    await begun(storage)

    for _ in range(4):
        await storage.commit(PutMessage(rows.question()))
    assert texts((await storage.turns("ses_1"))[-1].parts) == ["".join(PIECES)], "it is not over"
    await storage.commit(PutPart(part(TEXT, end=2)))
    assert replayed(await storage.events(0)) == TEXT
    for number in range(4):
        await storage.commit(PutPart(rows.text(f"prt_{number}0", message_id="msg_1")))

    assert texts((await storage.turns("ses_1"))[-1].parts) == [TEXT]


@pytest.mark.parametrize("text", ["".join(PIECES), TEXT, LONG])
async def test_a_streamed_part_whose_row_is_lost_comes_back_with_its_text(
    path: Path, text: str
) -> None:
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()), PutMessage(rows.answer()))
    await begun(storage)
    if text == LONG:
        await storage.commit(*added(LONG))
        text = "".join(PIECES) + LONG
    if text != "".join(PIECES):
        await storage.commit(PutPart(part(text, end=2)))
    db = storage._writer._db
    db.execute("PRAGMA foreign_keys = 0")
    db.execute("DROP TRIGGER part_text_goes")  # damage does not go through SQL
    db.execute("DELETE FROM part")
    await storage.aclose()

    found = await taken_over(path)

    storage = await opened(path)
    [turn] = await storage.turns("ses_1")
    events = await storage.events(0)
    await storage.aclose()
    assert found == Salvaged(1, 1, 1)
    assert texts(turn.parts) == [text]
    assert replayed(events) == text


async def test_pieces_without_a_part_do_not_keep_a_database_from_being_saved(path: Path) -> None:
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()), PutMessage(rows.answer()))
    await begun(storage)
    db = storage._writer._db
    db.execute("PRAGMA foreign_keys = 0")
    db.execute("DROP TRIGGER part_text_goes")  # damage does not go through SQL
    db.execute("DELETE FROM part")
    db.execute("DELETE FROM event")
    await storage.aclose()

    assert await taken_over(path) == Salvaged(1, 1, 0)


async def test_pieces_are_found_on_pages_that_nothing_leads_to(path: Path) -> None:
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()), PutMessage(rows.answer()))
    await begun(storage)
    await storage.commit(*added(*("word " * 300 for _ in range(40))))
    before = await storage.turns("ses_1")
    await storage.aclose()
    overwritten(path, (rootpage(path, "part_text") - 1) * PAGE)
    met(path)

    storage = await opened(path)
    turns = await storage.turns("ses_1")
    await storage.aclose()

    assert [each.parts for each in turns] == [each.parts for each in before]


async def test_the_progress_of_a_call_is_told_and_kept_in_its_row(storage: SqliteStorage) -> None:
    before = rows.call(state=replace(rows.RUNNING, metadata={"output": "a"}))
    after = rows.call(state=replace(rows.RUNNING, metadata={"output": "ab"}))
    await storage.commit(PutPart(before))
    last = await stored.last_seq(storage)

    [event] = await storage.commit(PutPart(after))

    assert isinstance(event.properties, PartUpdated)
    assert (event.seq, event.properties.part) == (0, after)
    assert (await storage.turns("ses_1"))[-1].parts == (after,)
    assert await stored.last_seq(storage) == last


async def test_pieces_outlive_the_event_of_their_beginning(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.sqlite.writerthread._MOST_EVENTS", 2)
    monkeypatch.setattr("pegboard_plugins.sqlite.writerthread._PRUNE_EVERY", 1)
    await begun(storage)
    await storage.commit(PutPart(part(TEXT, end=2)))

    await storage.commit(PutMessage(rows.question()))

    assert len(await storage.events(0)) == 2
    assert replayed(await storage.events(0)) == TEXT
