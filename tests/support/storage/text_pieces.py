"""A part whose text is streamed, and what a database has of it."""

from collections.abc import Sequence
from pathlib import Path

from pegboard.ids import IdSource
from pegboard.schema.event import Event, PartUpdated
from pegboard.schema.part import Part, ReasoningPart, TextPart, TimeSpan
from pegboard.storage.changes import AddText, CreateSession, PutMessage
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows


async def opened(path: Path) -> SqliteStorage:
    return await SqliteStorage.open(path, ids=IdSource())


async def begun(path: Path) -> SqliteStorage:
    """A database with a session, a question and the message that its answer goes to."""
    made = await opened(path)
    await made.commit(CreateSession(rows.session()), PutMessage(rows.question()))
    await made.commit(PutMessage(rows.answer()))
    return made


def part(text: str = "", *, end: int | None = None, kind: type = TextPart) -> Part:
    made: Part = kind(
        id="prt_2",
        session_id="ses_1",
        message_id="msg_2",
        text=text,
        time=TimeSpan(start=1, end=end),
    )
    return made


def added(*pieces: str) -> list[AddText]:
    return [AddText("ses_1", "prt_2", piece) for piece in pieces]


def texts(parts: Sequence[Part]) -> list[str]:
    return [each.text for each in parts if isinstance(each, TextPart | ReasoningPart)]


def pieces_left(storage: SqliteStorage) -> int:
    [(count,)] = storage._writer._db.execute("SELECT count(*) FROM part_text")
    return int(str(count))


def replayed(events: Sequence[Event]) -> str:
    """The text of the part, as the log of events has it."""
    told = [event.properties.part for event in events if isinstance(event.properties, PartUpdated)]
    return texts([each for each in told if each.id == "prt_2"])[-1]
