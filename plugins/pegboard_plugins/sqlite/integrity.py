"""The integrity and the size of a database, for `pegboard session repair`, `gc` and `du`."""

from pathlib import Path

import apsw
import msgspec

from pegboard.errors import StorageError
from pegboard.storage import SearchHit, SessionSize, damage_of, read_session
from pegboard_plugins.sqlite import opentexts
from pegboard_plugins.sqlite.databasefile import LockWait, reason_of
from pegboard_plugins.sqlite.reads import like

_MOST_PROBLEMS = 100

_SIZES = """
SELECT session.id, session.project_id, session.title, session.directory,
    length(session.data)
    + coalesce((SELECT sum(length(data)) FROM message WHERE session_id = session.id), 0)
    + coalesce((SELECT sum(length(data)) FROM part WHERE session_id = session.id), 0)
    + coalesce(streamed.size, 0)
    + coalesce((SELECT sum(length(CAST(open_text(ordinal) AS BLOB))) FROM part
        WHERE session_id = session.id AND state = 'open'), 0)
    + coalesce((SELECT sum(length(data)) FROM state WHERE session_id = session.id), 0)
FROM session LEFT JOIN (
    SELECT session_id, sum(length(piece)) AS size FROM part_text GROUP BY session_id
) AS streamed ON streamed.session_id = session.id
ORDER BY 5 DESC
"""

_IN_MESSAGES = """
SELECT session.data, session.id, session.project_id, session.directory, session.updated,
    part.message_id, json_extract(CAST(part.data AS TEXT), '$.text') || coalesce((
        SELECT CAST(substr(CAST(group_concat(CAST(piece AS TEXT), '' ORDER BY ordinal) AS BLOB),
            1, coalesce(part.streamed, 1 << 62)) AS TEXT)
        FROM part_text WHERE (part.state = 'open' OR part.streamed IS NOT NULL)
        AND ordinal BETWEEN part.ordinal << 24 AND (part.ordinal << 24) + 0xFFFFFF
    ), '') || CASE part.state WHEN 'open' THEN open_text(part.ordinal) ELSE '' END AS text
FROM part JOIN session ON session.id = part.session_id
WHERE session.project_id = ?1 AND json_valid(CAST(part.data AS TEXT))
    AND json_extract(CAST(part.data AS TEXT), '$.type') = 'text'
    AND coalesce(json_extract(CAST(part.data AS TEXT), '$.synthetic'), 0) = 0
    AND text LIKE ?2 ESCAPE '\\'
ORDER BY session.updated DESC, session.ordinal DESC, part.ordinal
"""

_IN_TITLES = """
SELECT data, id, project_id, directory, updated FROM session
WHERE project_id = ?1 AND title LIKE ?2 ESCAPE '\\' ORDER BY updated DESC, ordinal DESC
"""


_CUT = """
SELECT id FROM part WHERE streamed > (
    SELECT coalesce(sum(length(piece)), 0) FROM part_text
    WHERE ordinal BETWEEN part.ordinal << 24 AND (part.ordinal << 24) + 0xFFFFFF
)
"""


class Problems(msgspec.Struct, frozen=True):
    """The problems of the database file, and the problems of its rows."""

    damaged: tuple[str, ...]
    rows: tuple[str, ...]

    def all(self) -> tuple[str, ...]:
        """Return the first problems of both kinds."""
        return (*self.damaged, *self.rows)[:_MOST_PROBLEMS]


def problems(db: apsw.Connection) -> Problems:
    """Return the problems of the file, its references and its rows.

    It reads everything, which takes about a second per gigabyte.
    """
    damaged = _damages(db)
    if damaged:
        return Problems(damaged, ())
    orphans = [
        f"row {rowid} of {table} belongs to no row of {owner}"
        for table, rowid, owner, _ in db.execute("PRAGMA foreign_key_check")
    ]
    cut = [f"part {id_} has lost some of its text" for (id_,) in db.execute(_CUT)]
    unreadable = (
        problem
        for kind in ("session", "message", "part")
        for id_, data in db.execute(f"SELECT id, data FROM {kind}")  # noqa: S608 - one of three
        if (problem := damage_of(kind, id_, data))
    )
    return Problems((), (*orphans, *unreadable, *cut))


def _damages(db: apsw.Connection) -> tuple[str, ...]:
    try:
        found = [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})")]
    except apsw.CorruptError as error:  # some damage ends even the check
        return (str(error),)
    return tuple(text for text in found if text != "ok")


def sizes(db: apsw.Connection) -> tuple[SessionSize, ...]:
    """Return the sessions of all projects with their sizes, the largest first."""
    _add_open_texts(db)
    return tuple(SessionSize(*row) for row in db.execute(_SIZES))


def _add_open_texts(db: apsw.Connection) -> None:
    """Add the SQL function `open_text(part.ordinal)`, which returns the text in a part's file."""

    def open_text(*places: "apsw.SQLiteValue") -> str:
        texts = (opentexts.read(db, each) for each in places if isinstance(each, int))
        return b"".join(filter(None, texts)).decode(errors="replace")

    db.create_scalar_function("open_text", open_text, 1)


def search(db: apsw.Connection, project_id: str, text: str, limit: int) -> tuple[SearchHit, ...]:
    """Return the project's sessions that contain the text, matches in titles first.

    Each session is returned once. Case is ignored for the letters A to Z.
    """
    _add_open_texts(db)
    key = (project_id, like(text))
    hits: dict[str, SearchHit] = {}
    for row in db.execute(_IN_TITLES, key):
        session = read_session(*row)
        hits[session.id] = SearchHit(session=session)
    for *columns, message_id, found in db.execute(_IN_MESSAGES, key):
        session = read_session(*columns)
        if session.id not in hits:
            hits[session.id] = SearchHit.in_message(session, message_id, found, text)
        if len(hits) >= limit:
            break
    return tuple(hits.values())[:limit]


def vacuum(path: Path) -> int:
    """Rewrite the file without free space; return the number of freed bytes.

    :raises StorageError: when another process uses the database, or the disk is too full.
    """
    before = path.stat().st_size
    db = apsw.Connection(str(path))
    try:
        db.set_busy_handler(LockWait.of(path))
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except apsw.Error as error:
        raise StorageError(f"cannot compact the database {path}: {reason_of(error)}") from error
    finally:
        db.close()
    return before - path.stat().st_size
