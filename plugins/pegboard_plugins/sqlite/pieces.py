# ruff: noqa: S608 - the range of rows is our own words
"""The text of a streamed part, in pieces beside the part's row, so that no text is stored twice.

While the part is `OPEN`, its text is that of the row and of the pieces. At its end the row has the
text if it is short; else it keeps the number of bytes that the pieces have of it. The part's event
is stored without the text in each case.

Pieces have no index: those of a part have the row numbers from `place << 24` on, where `place` is
the row number of the part. A piece costs no more pages than its text fills.
"""

from collections.abc import Iterator

import apsw
import msgspec
from msgspec.structs import replace

from pegboard.schema.event import Event, PartUpdated
from pegboard.schema.part import Part, ReasoningPart, TextPart, TimeSpan
from pegboard.schema.wire import Wire, encode, encode_checked, to_json
from pegboard.storage import AddText
from pegboard_plugins.sqlite import records

OPEN = "open"
"""The state of a part whose text goes on in its pieces."""
STREAMED = "message.part.streamed"
"""The stored name of an update whose text is in the pieces of its part."""

# A row is written anew at its end, so that a text within its page costs nothing there.
_SHORT_BYTES = 1024
_NO_TEXT = b'"text":""'
_RANGE = "ordinal BETWEEN ?1 << 24 AND (?1 << 24) + 0xFFFFFF"


class Streamed(Wire, frozen=True):
    """An update as it is stored: text that `part` has stands before that of the pieces.

    `size` says how many bytes the pieces' text has, None that it is all of it. `place` is 0 where
    the pieces are found by the part's id, as in databases of version 3.
    """

    session_id: str
    part: Part
    time: int
    size: int | None = None
    place: int = 0


_decode = msgspec.json.Decoder(Streamed).decode


def is_open(part: Part) -> bool:
    """Whether this is a text that goes on."""
    match part:
        case TextPart(time=TimeSpan(end=None)) | ReasoningPart(time=TimeSpan(end=None)):
            return True
        case _:
            return False


def begin(db: apsw.Connection, told: PartUpdated, place: int) -> Event:
    """The stored form of the event of a new open part.

    A reader of the event gets the text as far as it is stored by then.
    """
    return _store(db, told, told.part, place)


def add_text(db: apsw.Connection, change: AddText) -> Iterator[Event]:
    """Adds text to a part, without an event."""
    row = db.execute(
        "SELECT ordinal, state, streamed FROM part WHERE session_id = ? AND id = ?",
        (change.session_id, change.part_id),
    ).fetchone()
    if row is not None:
        place, state, size = row
        if state != OPEN:
            kept = b"" if size is None else _joined(db, place)[:size]
            drop(db, place)
            if kept:
                _add(db, place, change, kept)
            db.execute(
                "UPDATE part SET state = ?, streamed = NULL WHERE ordinal = ?", (OPEN, place)
            )
        _add(db, place, change, records.as_utf8(change.text))
    yield from ()


def drop(db: apsw.Connection, place: int) -> None:
    """Removes the pieces of a part."""
    db.execute(f"DELETE FROM part_text WHERE {_RANGE}", (place,))


def whole(
    db: apsw.Connection, data: bytes, place: int, state: str | None, size: int | None
) -> bytes:
    """The JSON of a part's row with all of its text; as it is where that is damaged."""
    if size is not None:
        text = _joined(db, place)[:size]
        lost = f"\n[damaged: {size - len(text)} bytes of this text are lost]"
        shown = text.decode(errors="replace") + (lost if len(text) < size else "")
        # Ids come before the text, and JSON has no bare quotes within a string.
        return data.replace(_NO_TEXT, _NO_TEXT[:-2] + encode(shown), 1)
    if state == OPEN:
        part = records.to_part(data, "", "", "")
        if part.message_id:
            return encode_checked(_with_text(part, _joined(db, place)))
    return data


def settle(db: apsw.Connection, told: PartUpdated, place: int) -> Event | None:
    """The stored form of the event of a whole part, without the text that is in its pieces.

    Missing text is added to the pieces. None if their text differs.
    """
    part = told.part
    if not isinstance(part, TextPart | ReasoningPart):
        return None
    text, stored = records.as_utf8(part.text), _joined(db, place)
    if not (text.startswith(stored) or stored.startswith(text)):
        return None
    if rest := text[len(stored) :]:
        _add(db, place, AddText(part.session_id, part.id, ""), rest)
    return _store(db, told, replace(part, text=""), place, size=len(text))


def row_of(part: Part, event: Event | None, data: bytes) -> tuple[bytes, int | None]:
    """The row's JSON and `streamed` of a part whose event `settle` has stored."""
    if event is None or not isinstance(part, TextPart | ReasoningPart):
        return data, None
    size = len(part.text.encode())
    if size <= _SHORT_BYTES:
        return data, None
    return encode_checked(replace(part, text="")), size


def update(db: apsw.Connection, data: bytes) -> PartUpdated | None:
    """The update event with its text, None when it is damaged."""
    stored = read(data)
    if stored is None:
        return None
    part, place = stored.part, stored.place
    text = _joined(db, place) if place else _joined_by_id(db, part)
    return PartUpdated(
        session_id=stored.session_id, part=_with_text(part, text[: stored.size]), time=stored.time
    )


def forget_events(db: apsw.Connection, kept: int) -> None:
    """Removes all but this many of the newest events, with their pieces."""
    rows = db.execute(
        "DELETE FROM event WHERE seq <= "
        "(SELECT seq FROM event ORDER BY seq DESC LIMIT 1 OFFSET ?) RETURNING seq, type, data",
        (kept,),
    )
    for seq, name, data in tuple(rows):
        if name == STREAMED and (stored := read(data)) is not None:
            _forget(db, stored.place, seq)


def _forget(db: apsw.Connection, place: int, seq: int) -> None:
    """Drops the pieces of a part with its event, unless its row or a later event needs them."""
    db.execute(
        f"DELETE FROM part_text WHERE {_RANGE} AND NOT EXISTS(SELECT 1 FROM part "
        "WHERE part.ordinal = ?1 AND (state = ?2 OR streamed IS NOT NULL OR last_event > ?3))",
        (place, OPEN, seq),
    )


def read(data: bytes) -> Streamed | None:
    """The update as it is stored, None when it is damaged."""
    try:
        return _decode(data)
    except records.DAMAGE:
        return None


def _store(
    db: apsw.Connection, told: PartUpdated, part: Part, place: int, *, size: int | None = None
) -> Event:
    stored = Streamed(session_id=part.session_id, part=part, time=told.time, size=size, place=place)
    return records.store(db, told, {**to_json(stored)}, name=STREAMED)


def _add(db: apsw.Connection, place: int, to: AddText, text: bytes) -> None:
    db.execute(
        "INSERT INTO part_text(ordinal, session_id, part_id, piece) "
        f"SELECT coalesce(max(ordinal), ?1 << 24) + 1, ?2, ?3, ?4 FROM part_text WHERE {_RANGE}",
        (place, to.session_id, to.part_id, text),
    )


def _joined(db: apsw.Connection, place: int) -> bytes:
    rows = db.execute(f"SELECT piece FROM part_text WHERE {_RANGE} ORDER BY ordinal", (place,))
    return b"".join(piece for (piece,) in rows)


def _joined_by_id(db: apsw.Connection, part: Part) -> bytes:
    rows = db.execute(  # the column has another name in version 3
        "SELECT * FROM part_text WHERE session_id = ? AND part_id = ? ORDER BY ordinal",
        (part.session_id, part.id),
    )
    return b"".join(row[-1] for row in rows)


def _with_text(part: Part, text: bytes) -> Part:
    if isinstance(part, TextPart | ReasoningPart):
        return replace(part, text=part.text + text.decode(errors="replace"))
    return part
