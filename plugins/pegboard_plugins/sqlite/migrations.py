"""The database's tables, as numbered steps from an empty database to the current schema.

A released step never changes; new steps are added at the end. Rows hold the wire JSON as bytes, so
that damaged text can still be read. `ordinal` is the order of creation. The program uses no other
order, since ids may come from clients. `last_event` is the event of a row's latest update, which
the next update deletes.

`part_text` has a streamed text in pieces, see `pieces`. The row numbers of a part's pieces begin at
`part.ordinal << 24`. `part.streamed` is the number of their bytes that are the text of a finished
part, or NULL if the row has the text. The pieces are in the column `piece`, so that an earlier
version of the program, which writes to `data`, cannot add pieces.
"""

from collections.abc import Sequence
from pathlib import Path

import apsw

from pegboard.errors import StorageError

_FIRST = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE project(
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    last_event INTEGER,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE session(
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    parent_id TEXT,
    directory TEXT NOT NULL,
    title TEXT NOT NULL,
    updated INTEGER NOT NULL,
    owner TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    last_event INTEGER,
    data BLOB NOT NULL
) STRICT;
CREATE INDEX session_recent ON session(updated);
CREATE INDEX session_recent_of_project ON session(project_id, updated);
CREATE INDEX session_child ON session(parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX session_owned ON session(owner) WHERE owner IS NOT NULL;
CREATE TABLE message(
    ordinal INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    unfinished INTEGER NOT NULL,
    last_event INTEGER,
    data BLOB NOT NULL,
    UNIQUE(session_id, id)
) STRICT;
CREATE INDEX message_in_order ON message(session_id);
CREATE INDEX message_unfinished ON message(session_id) WHERE unfinished;
CREATE TABLE part(
    ordinal INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT,
    last_event INTEGER,
    data BLOB NOT NULL,
    UNIQUE(session_id, id),
    FOREIGN KEY(session_id, message_id) REFERENCES message(session_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX part_in_order ON part(session_id, message_id);
CREATE INDEX part_running ON part(session_id) WHERE state IS NOT NULL;
CREATE TABLE todos(
    session_id TEXT PRIMARY KEY REFERENCES session(id) ON DELETE CASCADE,
    last_event INTEGER,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE state(
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY(session_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE approval(
    ordinal INTEGER PRIMARY KEY,
    project_id TEXT NOT NULL,
    permission TEXT NOT NULL,
    pattern TEXT NOT NULL,
    action TEXT NOT NULL,
    UNIQUE(project_id, permission, pattern)
) STRICT;
CREATE TABLE permission_request(
    ordinal INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE(session_id, id)
) STRICT;
CREATE TABLE event(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT,
    type TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT;
"""

_APPROVALS_BY_AGENT = """
ALTER TABLE approval RENAME TO approval_before;
CREATE TABLE approval(
    ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,
    permission TEXT NOT NULL,
    pattern TEXT NOT NULL,
    action TEXT NOT NULL,
    agent TEXT NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE(key, permission, pattern, agent)
) STRICT;
INSERT INTO approval
    SELECT ordinal, project_id, permission, pattern, action, '', 0 FROM approval_before;
DROP TABLE approval_before;
"""

_TEXT_IN_PIECES = """
CREATE TABLE part_text(
    ordinal INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    part_id TEXT NOT NULL,
    data BLOB NOT NULL,
    FOREIGN KEY(session_id, part_id) REFERENCES part(session_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX part_text_in_order ON part_text(session_id, part_id);
"""

_PIECES_IN_PLACE = """
ALTER TABLE part ADD COLUMN streamed INTEGER;
ALTER TABLE part_text RENAME TO part_text_before;
CREATE TABLE part_text(
    ordinal INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    part_id TEXT NOT NULL,
    piece BLOB NOT NULL
) STRICT;
INSERT INTO part_text
    SELECT (part.ordinal << 24) + row_number() OVER (PARTITION BY part.ordinal ORDER BY b.ordinal),
        b.session_id, b.part_id, b.data
    FROM part_text_before AS b
    JOIN part ON part.session_id = b.session_id AND part.id = b.part_id;
DROP TABLE part_text_before;
UPDATE event SET data = CAST(json_set(CAST(data AS TEXT), '$.place', coalesce((
        SELECT ordinal FROM part WHERE session_id = event.session_id
        AND id = json_extract(CAST(event.data AS TEXT), '$.part.id')
    ), -1)) AS BLOB)
    WHERE type = 'message.part.streamed' AND json_valid(CAST(data AS TEXT));
CREATE TRIGGER part_text_goes AFTER DELETE ON part BEGIN
    DELETE FROM part_text
        WHERE ordinal BETWEEN OLD.ordinal << 24 AND (OLD.ordinal << 24) + 0xFFFFFF;
END;
"""

MIGRATIONS: tuple[str, ...] = (
    _FIRST,
    _APPROVALS_BY_AGENT,
    _TEXT_IN_PIECES,
    _PIECES_IN_PLACE,
)


def migrate(
    db: apsw.Connection, path: Path, *, version: int, migrations: Sequence[str] = MIGRATIONS
) -> Path | None:
    """Update the tables to the current schema.

    Return the path of a backup copy from before the update, or None if there was no update or the
    database was empty.

    :raises StorageError: when the file's `version` is a later one.
    """
    if version > len(migrations):
        raise StorageError(
            f"{path} was written by a later version of pegboard (tables {version}, this one "
            f"knows {len(migrations)}); update pegboard"
        )
    if version == len(migrations):
        return None
    copy = _back_up(db, path, version) if version else None
    with db:
        for statements in migrations[version:]:
            db.execute(statements)
        db.execute(
            "INSERT INTO meta(key, value) VALUES('schema_version', ?) "
            "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            (str(len(migrations)),),
        )
    return copy


def _back_up(db: apsw.Connection, path: Path, version: int) -> Path:
    """Copy the database to a file next to it; replace a copy from an earlier attempt."""
    copy = path.with_name(f"{path.name}.backup-{version}")
    copy.unlink(missing_ok=True)
    copy.touch(mode=0o600)
    target = apsw.Connection(str(copy))
    try:
        with target.backup("main", db, "main") as backup:
            backup.step()
    finally:
        target.close()
    return copy
