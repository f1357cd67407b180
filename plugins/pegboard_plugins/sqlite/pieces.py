# ruff: noqa: S608 - the range of rows is our own words
"""The text of a streamed message part: in a file while the part is open, and later in rows.

The text of an `OPEN` part is in its row, in rows of pieces and in its file. When the part ends, a
short text is stored in the part's row. Otherwise the row stores how many bytes are in the pieces,
and the part's event is stored without the text, so that no text is stored twice.

Pieces have no index. Those of a part have the row numbers from `place << 24` on, with `place` as
the row number of the part.
"""

import codecs
from collections.abc import Iterator

import apsw
import msgspec
from msgspec.structs import replace

from pegboard.schema.event import Event, PartUpdated
from pegboard.schema.part import Part, ReasoningPart, TextPart
from pegboard.schema.wire import Wire, encode, encode_checked, encode_text, to_json
from pegboard.storage import AddText, read_json, read_part
from pegboard_plugins.sqlite import opentexts
from pegboard_plugins.sqlite.eventrows import store, store_update
from pegboard_plugins.sqlite.opentexts import OPEN

STREAMED = "message.part.streamed"
"""The stored name of an update whose text is in the pieces of its part."""

# A row is written again at its end, so that a text within its page costs nothing there.
_SHORT_BYTES = 1024
# Of some pages each: little is lost with a damaged one, and little of a page is left empty.
_PIECE_BYTES = 16 * 1024
_NO_TEXT = b'"text":""'
_RANGE = "ordinal BETWEEN ?1 << 24 AND (?1 << 24) + 0xFFFFFF"


class Streamed(Wire, frozen=True):
    """A stored update of a part; the text of `part` comes before the text of the pieces.

    `size` is the number of bytes in the pieces that belong to the update; None means all. If
    `place` is 0, the pieces are found by the part's id, as in databases of version 3.
    """

    session_id: str
    part: Part
    time: int
    size: int | None = None
    place: int = 0


def begin(db: apsw.Connection, change: PartUpdated, place: int) -> Event:
    """Store an unfinished part and its event.

    Whoever reads the event later gets the part with all text that was added until then.
    """
    opentexts.begin(db, place)
    return _store(db, change, change.part, place)


def add_text(db: apsw.Connection, change: AddText) -> Iterator[Event]:
    """Append text to a part, without an event."""
    row = db.execute(
        "SELECT ordinal, state, streamed FROM part WHERE session_id = ? AND id = ?",
        (change.session_id, change.part_id),
    ).fetchone()
    if row is not None:
        place, state, size = row
        if state != OPEN:
            opentexts.begin(db, place)
            opentexts.add(db, place, b"" if size is None else _join_pieces(db, place)[:size])
            drop(db, place)
            db.execute(
                "UPDATE part SET state = ?, streamed = NULL WHERE ordinal = ?", (OPEN, place)
            )
        opentexts.add(db, place, encode_text(change.text))
    yield from ()


def drop(db: apsw.Connection, place: int) -> None:
    """Delete the pieces of a part."""
    db.execute(f"DELETE FROM part_text WHERE {_RANGE}", (place,))


def whole(
    db: apsw.Connection, data: bytes, place: int, state: str | None, size: int | None
) -> bytes:
    """Return the JSON of a part with its complete text; damaged JSON is left unchanged."""
    if size is not None:
        text = _join_pieces(db, place)[:size]
        lost = f"\n[damaged: {size - len(text)} bytes of this text are lost]"
        left = text.decode(errors="replace") + (lost if len(text) < size else "")
        # Ids come before the text, and JSON has no bare quotes within a string.
        return data.replace(_NO_TEXT, _NO_TEXT[:-2] + encode(left), 1)
    if state == OPEN:
        written = opentexts.read(db, place)
        if written is None:
            return _as_it_is_now(db, place, data)
        part = read_part(data, "", "", "", added=_join_pieces(db, place) + written)
        if part.message_id:
            return encode_checked(part)
    return data


def _as_it_is_now(db: apsw.Connection, place: int, data: bytes) -> bytes:
    """Return the JSON of an unfinished part whose text is in no file, from a new transaction.

    Either the part has no text yet, or its text was moved into the database after the reader's
    transaction began.
    """
    now = apsw.Connection(db.filename, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        now.set_busy_timeout(db.pragma("busy_timeout"))
        row = now.execute(
            "SELECT data, ordinal, state, streamed FROM part WHERE ordinal = ?", (place,)
        ).fetchone()
        if row is not None and row[2] != OPEN:
            return whole(now, *row)
        text = _join_pieces(now, place)
        part = read_part(data, "", "", "", added=text)
        return encode_checked(part) if part.message_id and text else data
    finally:
        now.close()


class SettledPart(msgspec.Struct, frozen=True):
    """A finished part: the part's event, the JSON for its row, and the size of its pieces."""

    event: Event
    data: bytes
    streamed: int | None


def settle(
    db: apsw.Connection, change: PartUpdated, place: int, data: bytes, streamed: int | None
) -> SettledPart:
    """Store the text and the event of a finished part that was open or has its text in pieces."""
    part = change.part
    opentexts.end(db, place)
    if isinstance(part, TextPart | ReasoningPart):
        text = encode_text(part.text)
        if len(text) > _SHORT_BYTES:
            if streamed is None or _join_pieces(db, place)[:streamed] != text:
                drop(db, place)
                for start in range(0, len(text), _PIECE_BYTES):
                    _add(db, place, part, text[start : start + _PIECE_BYTES])
            bare = replace(part, text="")
            event = _store(db, change, bare, place, size=len(text))
            return SettledPart(event, encode_checked(bare), len(text))
    drop(db, place)
    return SettledPart(store_update(db, change, data), data, None)


def update(db: apsw.Connection, data: bytes) -> PartUpdated | None:
    """Return the update event with the part's text, or None if the stored JSON is damaged."""
    stored = read_json(data, Streamed)
    if stored is None:
        return None
    part, place = stored.part, stored.place
    text = _text_of(db, place, part) if place else _join_pieces_by_id(db, part)
    if isinstance(part, TextPart | ReasoningPart):
        written, _ = codecs.utf_8_decode(text[: stored.size], "replace")
        part = replace(part, text=part.text + written)
    return PartUpdated(session_id=stored.session_id, part=part, time=stored.time)


def forget_events(db: apsw.Connection, newest: int) -> None:
    """Delete all events except the last ones; `newest` is how many events stay."""
    db.execute(
        "DELETE FROM event WHERE seq <= (SELECT seq FROM event ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (newest,),
    )


def _store(
    db: apsw.Connection, change: PartUpdated, part: Part, place: int, *, size: int | None = None
) -> Event:
    stored = Streamed(
        session_id=part.session_id, part=part, time=change.time, size=size, place=place
    )
    return store(db, change, {**to_json(stored)}, name=STREAMED)


def _add(db: apsw.Connection, place: int, to: Part, text: bytes) -> None:
    db.execute(
        "INSERT INTO part_text(ordinal, session_id, part_id, piece) "
        f"SELECT coalesce(max(ordinal), ?1 << 24) + 1, ?2, ?3, ?4 FROM part_text WHERE {_RANGE}",
        (place, to.session_id, to.id, text),
    )


def _text_of(db: apsw.Connection, place: int, part: Part) -> bytes:
    """Return the text of a part, whether the part is open, has ended, or has lost its row.

    The row number of a deleted part may belong to another part now.
    """
    row = db.execute("SELECT state, session_id, id FROM part WHERE ordinal = ?", (place,))
    state, *key = row.fetchone() or (OPEN, part.session_id, part.id)
    if key != [part.session_id, part.id]:
        return b""
    return _join_pieces(db, place) + (opentexts.read(db, place) or b"" if state == OPEN else b"")


def _join_pieces(db: apsw.Connection, place: int) -> bytes:
    rows = db.execute(f"SELECT piece FROM part_text WHERE {_RANGE} ORDER BY ordinal", (place,))
    return b"".join(piece for (piece,) in rows)


def _join_pieces_by_id(db: apsw.Connection, part: Part) -> bytes:
    rows = db.execute(  # the column has another name in version 3
        "SELECT * FROM part_text WHERE session_id = ? AND part_id = ? ORDER BY ordinal",
        (part.session_id, part.id),
    )
    return b"".join(row[-1] for row in rows)
