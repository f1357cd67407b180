"""The text of a streamed part, in pieces beside the part's row, so that no text is stored twice.

While the part is `OPEN`, its text is that of the row and of the pieces. At its end the row has the
whole text. The pieces stay as long as the part's event, which is stored without the text.
"""

from collections.abc import Iterator

import apsw
import msgspec
from msgspec.structs import replace

from pegboard.contract.changes import AddText
from pegboard.schema.event import Event, PartUpdated
from pegboard.schema.part import Part, ReasoningPart, TextPart, TimeSpan
from pegboard.schema.wire import Wire, to_json
from pegboard.storage import log, records

OPEN = "open"
"""The state of a part whose text goes on in its pieces."""
STREAMED = "message.part.streamed"
"""The stored name of an update whose text is in the pieces of its part."""


class Streamed(Wire, frozen=True):
    """An update as it is stored: text that `part` has stands before that of the pieces.

    `size` says how many bytes the pieces' text has, None that it is all of it.
    """

    session_id: str
    part: Part
    time: int
    size: int | None = None


_decode = msgspec.json.Decoder(Streamed).decode


def begin(db: apsw.Connection, told: PartUpdated) -> Event | None:
    """The stored form of the event of a new open part, None for another part.

    A reader of the event gets the text as far as it is stored by then.
    """
    match told.part:
        case TextPart(time=TimeSpan(end=None)) | ReasoningPart(time=TimeSpan(end=None)):
            return _store(db, told, told.part)
        case _:
            return None


def add_text(db: apsw.Connection, change: AddText) -> Iterator[Event]:
    """Adds text to a part, without an event."""
    key = (change.session_id, change.part_id)
    row = db.execute("SELECT state FROM part WHERE session_id = ? AND id = ?", key).fetchone()
    if row is not None:
        if row[0] != OPEN:
            drop(db, *key)
            db.execute("UPDATE part SET state = ? WHERE session_id = ? AND id = ?", (OPEN, *key))
        _add(db, *key, records.as_utf8(change.text))
    yield from ()


def drop(db: apsw.Connection, session_id: str, part_id: str) -> None:
    """Removes the pieces of a part."""
    db.execute("DELETE FROM part_text WHERE session_id = ? AND part_id = ?", (session_id, part_id))


def whole(db: apsw.Connection, data: bytes, session_id: str, part_id: str) -> bytes:
    """The JSON of an open part with all of its text; as it is where that is damaged."""
    part = records.to_part(data, session_id, "", part_id)
    if part.message_id:
        return records.to_row(_with_text(part, _joined(db, part)))
    return data


def settle(db: apsw.Connection, told: PartUpdated) -> Event | None:
    """The stored form of the event of a whole part, without the text that is in its pieces.

    Missing text is added to the pieces. None if their text differs.
    """
    part = told.part
    if not isinstance(part, TextPart | ReasoningPart):
        return None
    text, stored = part.text.encode(), _joined(db, part)
    if not (text.startswith(stored) or stored.startswith(text)):
        return None
    if rest := text[len(stored) :]:
        _add(db, part.session_id, part.id, rest)
    return _store(db, told, replace(part, text=""), size=len(text))


def update(db: apsw.Connection, data: bytes) -> PartUpdated | None:
    """The update event with its text, None when it is damaged."""
    stored = _read(data)
    if stored is None:
        return None
    part = _with_text(stored.part, _joined(db, stored.part)[: stored.size])
    return PartUpdated(session_id=stored.session_id, part=part, time=stored.time)


def forget_events(db: apsw.Connection, kept: int) -> None:
    """Removes all but this many of the newest events, with their pieces."""
    rows = db.execute(
        "DELETE FROM event WHERE seq <= "
        "(SELECT seq FROM event ORDER BY seq DESC LIMIT 1 OFFSET ?) RETURNING seq, type, data",
        (kept,),
    )
    for seq, name, data in tuple(rows):
        if name == STREAMED and (stored := _read(data)) is not None:
            _forget(db, stored.part, seq)


def _forget(db: apsw.Connection, part: Part, seq: int) -> None:
    """Drops the pieces of a part with its event, unless its row or a later event needs them."""
    db.execute(
        "DELETE FROM part_text WHERE session_id = ?1 AND part_id = ?2 AND NOT EXISTS("
        "SELECT 1 FROM part WHERE session_id = ?1 AND id = ?2 AND (state = ?3 OR last_event > ?4))",
        (part.session_id, part.id, OPEN, seq),
    )


def _read(data: bytes) -> Streamed | None:
    try:
        return _decode(data)
    except records.DAMAGE:
        return None


def _store(db: apsw.Connection, told: PartUpdated, part: Part, *, size: int | None = None) -> Event:
    stored = Streamed(session_id=part.session_id, part=part, time=told.time, size=size)
    return log.store(db, told, {**to_json(stored)}, name=STREAMED)


def _add(db: apsw.Connection, session_id: str, part_id: str, text: bytes) -> None:
    db.execute(
        "INSERT INTO part_text(session_id, part_id, data) VALUES(?, ?, ?)",
        (session_id, part_id, text),
    )


def _joined(db: apsw.Connection, part: Part) -> bytes:
    rows = db.execute(
        "SELECT data FROM part_text WHERE session_id = ? AND part_id = ? ORDER BY ordinal",
        (part.session_id, part.id),
    )
    return b"".join(data for (data,) in rows)


def _with_text(part: Part, text: bytes) -> Part:
    if isinstance(part, TextPart | ReasoningPart):
        return replace(part, text=part.text + text.decode(errors="replace"))
    return part
