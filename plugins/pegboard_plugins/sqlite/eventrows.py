"""The rows of stored events."""

from collections.abc import Mapping

import apsw
import msgspec

from pegboard.schema.event import Event, PartUpdated, Properties
from pegboard.schema.wire import encode_checked


def store(
    db: apsw.Connection,
    properties: Properties,
    payload: Mapping[str, object] | None = None,
    *,
    name: str = "",
) -> Event:
    """Store an event; `payload` is the event's JSON if a part of this is encoded already.

    `name` is the stored type of an event with a payload in a form of the database's own.
    """
    event = Event(properties=properties)
    db.execute(
        "INSERT INTO event(session_id, type, data) VALUES(?, ?, ?)",
        (event.session_id, name or event.type, encode_checked(payload or event.payload())),
    )
    return Event(properties=properties, seq=db.last_insert_rowid())


def store_update(db: apsw.Connection, update: PartUpdated, data: bytes) -> Event:
    """Store the event of a part's update; `data` is the part's JSON."""
    payload = {"sessionID": update.session_id, "part": msgspec.Raw(data), "time": update.time}
    return store(db, update, payload)


def supersede(db: apsw.Connection, seq: int | None) -> None:
    """Delete the event of an earlier update, because each update carries the whole value."""
    if seq is not None:
        db.execute("DELETE FROM event WHERE seq = ?", (seq,))
