"""The log of events, as rows: stored, superseded and forgotten."""

import time
from collections.abc import Mapping

import apsw

from pegboard.schema.event import Event, Properties
from pegboard.storage.records import to_row


def now_ms() -> int:
    """The instant, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def store(
    db: apsw.Connection,
    properties: Properties,
    payload: Mapping[str, object] | None = None,
    *,
    name: str = "",
) -> Event:
    """Stores an event; `payload` is its JSON, where a part of it is encoded already.

    `name` is given for an event that is not stored in the protocol's form.
    """
    event = Event(properties=properties)
    db.execute(
        "INSERT INTO event(session_id, type, data) VALUES(?, ?, ?)",
        (event.session_id, name or event.type, to_row(payload or event.payload())),
    )
    return Event(properties=properties, seq=db.last_insert_rowid())


def supersede(db: apsw.Connection, seq: int | None) -> None:
    """Removes the event of an earlier update: each update carries the whole value."""
    if seq is not None:
        db.execute("DELETE FROM event WHERE seq = ?", (seq,))
