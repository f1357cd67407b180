"""The opening of a database file: settings, waits, checks, and recovery from damage."""

import logging
import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import apsw
import msgspec
from msgspec.structs import replace

from pegboard.errors import StorageError
from pegboard.schema.event import Event
from pegboard_plugins.sqlite import opentexts
from pegboard_plugins.sqlite.owners import Owners, died_with_the_machine, recover

VARIABLE = "PEGBOARD_DATABASE_WAIT_S"
"""The environment variable that sets the limit, in seconds."""
_DEFAULT_S = 60.0
_NOTICE_S = 2.0
"""A wait that takes longer is written to the log."""
_CLOSING_S = 5.0
"""The limit while the database is closed: the user waits for the end of the program."""
_POLL_S = 0.02
# The log file is cut to this when it starts again from its beginning.
_LOG_LIMIT_BYTES = 64 * 1024 * 1024
# A check of gigabytes would keep the user waiting; unchecked damage shows when it is read.
_CHECK_LIMIT_S = 2.0
_CHECK_STEPS = 100_000
_FILES = ("", "-wal", "-shm")
_NEXT_TO_IT = (*_FILES, "-journal", ".owners", ".damaged", opentexts.ENDING)
VERSION = 4
"""The number of the last migration."""
_DAMAGED = (apsw.NotADBError, apsw.CorruptError)


class LockWait:
    """The busy handler of an SQLite connection, which limits how long it waits for a lock.

    Each instance serves one connection or one lock file at a time.
    """

    def __init__(self, path: Path, limit_s: float) -> None:
        self._path = path
        self._limit_s = limit_s
        self._began = 0.0
        self._announced = False

    @classmethod
    def of(cls, path: Path) -> "LockWait":
        """Return the wait with the limit that the environment sets.

        :raises StorageError: when the variable is not a number of seconds.
        """
        value = os.environ.get(VARIABLE) or str(_DEFAULT_S)
        try:
            limit_s = float(value)
        except ValueError:
            limit_s = -1.0
        if not limit_s >= 0:
            raise StorageError(
                f"{VARIABLE} is {value!r}; give a number of seconds, such as {_DEFAULT_S:.0f}"
            )
        return cls(path, limit_s)

    def __call__(self, tries: int) -> bool:
        """Return whether SQLite tries again, after a short sleep; `tries` counts from 0."""
        now = time.monotonic()
        if tries == 0:
            self._began = now
            self._announced = False
        waited_s = now - self._began
        if waited_s >= self._limit_s:
            return False
        if waited_s >= _NOTICE_S and not self._announced:
            self._announced = True
            logging.getLogger("pegboard.storage").warning(
                "another process has the database %s locked; waiting for at most %.0f s (%s)",
                self._path,
                self._limit_s,
                VARIABLE,
            )
        time.sleep(min(_POLL_S, self._limit_s - waited_s))
        return True

    def hurry(self) -> None:
        """Shorten the waiting time, because the program is about to end."""
        self._limit_s = min(self._limit_s, _CLOSING_S)

    def give_up(self) -> None:
        """End a running wait at once."""
        self._limit_s = 0.0


def reason_of(error: Exception) -> str:
    """Return why SQLite failed; if a lock was the cause, also what the user can do."""
    if isinstance(error, apsw.BusyError):
        return (
            f"{error}: another process has it; `fuser` or `lsof` with this path names it, and "
            f"{VARIABLE} sets how long Pegboard waits"
        )
    return str(error)


class OpenDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """An open database: the connection for writes, and the problems found while opening it.

    If the database is read-only, a copy in the folder `copy` is open instead, and every write
    raises the error `refused`.
    """

    db: apsw.Connection
    owners: Owners
    warnings: tuple[str, ...]
    recovered: tuple[Event, ...]
    copy: Path | None = None
    refused: StorageError | None = None


def open_database(path: Path, wait: LockWait) -> OpenDatabase:
    """Open the database at this path, or create it, with folders of mode 0700.

    A damaged file is moved aside, unless another process uses it. Its readable rows are copied into
    a new file. Unfinished work of dead processes is marked as interrupted.

    :raises StorageError: when it cannot be opened.
    """
    owners = Owners(path.with_name(f"{path.name}.owners"))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with owners.opening(wait):
            alive, dead = owners.others()
            seen = _damage_mark(path).exists()
            check = seen or any(died_with_the_machine(owner) for owner in dead)
            opened = _open_checked(path, owners, wait, check=check, shared=bool(alive))
            _damage_mark(path).unlink(missing_ok=True)
            owners.register()
    except (apsw.Error, OSError) as error:
        owners.close()
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot open the database {path}: {reason_of(error)}") from error
    return opened


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the paths of a database file and of the files that SQLite may keep next to it."""
    return tuple(path.with_name(path.name + end) for end in _NEXT_TO_IT)


def connect_reader(path: Path) -> apsw.Connection:
    """Open a read-only connection."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    db.set_busy_handler(LockWait.of(path))
    db.pragma("trusted_schema", value=False)
    db.pragma("cell_size_check", value=True)
    return db


def _open_checked(
    path: Path, owners: Owners, wait: LockWait, *, check: bool, shared: bool
) -> OpenDatabase:
    """Open the database; if it is damaged, move it aside and salvage its rows into a new file.

    `check` means to look for damage. `shared` means that other processes use the database.

    :raises StorageError: when a shared database is damaged, because it cannot be moved.
    """
    try:
        return _connect(path, owners, wait, check=check, shared=shared)
    except _DAMAGED as error:
        if shared:
            raise StorageError(
                f"{path} is damaged ({error}); close the other pegboard processes and start again"
            ) from error
        aside = _move_aside(path)
        opened = _connect(path, owners, wait, check=False, damaged=aside)
        found, *warnings = opened.warnings
        warning = f"the database was damaged ({error}); its file is now {aside}; {found}"
        return replace(opened, warnings=(warning, *warnings))


def _fill_from(db: apsw.Connection, path: Path, damaged: Path) -> str:
    """Fill a new database with readable rows of the damaged file; return a text for the warning."""
    from pegboard_plugins.sqlite.migrations import MIGRATIONS, migrate
    from pegboard_plugins.sqlite.pages import with_header  # only a damaged one needs these
    from pegboard_plugins.sqlite.salvage import salvage, version_of

    try:
        with with_header(damaged) as source:
            # The tables in the damaged file's version, so that migrations change its rows, too.
            migrate(db, path, version=0, migrations=MIGRATIONS[: version_of(source)])
            found = salvage(source, db)
    except (apsw.Error, OSError) as error:
        return f"a new one is begun, since the old one cannot be read ({error})"
    if not found.sessions:
        return "a new one is begun"
    counts = f"sessions: {found.sessions}, messages: {found.messages}"
    return f"what could be read of it is in a new one ({counts})"


def note_damage(path: Path, error: Exception) -> None:
    """Record a damaged database, so that the next opening checks the file; ignore other errors."""
    if isinstance(error, _DAMAGED):
        with suppress(OSError):
            _damage_mark(path).touch(mode=0o600)


def _damage_mark(path: Path) -> Path:
    return path.with_name(f"{path.name}.damaged")


def _connect(  # noqa: PLR0913 - the file, its users, and how it was found
    path: Path,
    owners: Owners,
    wait: LockWait,
    *,
    check: bool,
    shared: bool = False,
    damaged: Path | None = None,
) -> OpenDatabase:
    """Connect to the database, check and update it, and mark work of dead processes as interrupted.

    If `damaged` is given, fill the database with the readable rows of this file; the result then
    has a warning about it.
    """
    path.touch(mode=0o600)  # SQLite gives the files next to it the same mode
    warnings: tuple[str, ...] = ()
    without_log = _as_others(path, wait) if shared else None
    db = None if without_log else _with_log(path, wait)
    if db is None:
        db = without_log or _without_log(path, wait)
        text = f"the file system of {path} has no shared memory; the database works, but slower"
        warnings = (text,)
    with ExitStack() as failing:
        failing.callback(db.close)
        if check:
            _check(db, everything=_damage_mark(path).exists())
        if damaged is not None:
            warnings = (_fill_from(db, path, damaged), *warnings)
        if (version := schema_version(db, path)) != VERSION:
            from pegboard_plugins.sqlite.migrations import migrate  # once for each version

            migrate(db, path, version=version)
        opentexts.prepare(db)
        recovered = recover(db, owners.is_alive)
        opentexts.sweep(db)
        failing.pop_all()
    return OpenDatabase(db=db, owners=owners, warnings=warnings, recovered=recovered)


def schema_version(db: apsw.Connection, path: Path) -> int:
    """Return the number of the last applied migration, or 0 for an empty database.

    :raises StorageError: when the file has tables of another program.
    :raises apsw.CorruptError: when there is no number.
    """
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")}
    if not tables:
        return 0
    if "meta" in tables and "session" in tables:
        for (value,) in db.execute("SELECT value FROM meta WHERE key = 'schema_version'"):
            if not str(value).isdecimal():
                raise apsw.CorruptError(f"its schema_version is {str(value)[:40]!r}, no number")
            return int(str(value))
    raise StorageError(f"{path} is a database of another program")


def _as_others(path: Path, wait: LockWait) -> apsw.Connection | None:
    """Connect to a database that other processes have open without a write-ahead log (WAL).

    Return None if they use a WAL. A process that tries to use a WAL there would take the database
    from the others.
    """
    db = apsw.Connection(str(path))
    with ExitStack() as failing, suppress(apsw.IOError, apsw.CantOpenError):
        failing.callback(db.close)
        _set_up(db, wait)
        if db.pragma("journal_mode") != "wal":
            failing.pop_all()
            return db
    return None


def _with_log(path: Path, wait: LockWait) -> apsw.Connection | None:
    """Connect in WAL mode; return None if the file system does not support this mode."""
    db = apsw.Connection(str(path))
    with ExitStack() as failing, suppress(apsw.IOError, apsw.CantOpenError):
        failing.callback(db.close)
        _set_up(db, wait)
        if db.pragma("journal_mode", "wal") == "wal":
            db.pragma("user_version")  # the first read maps the log's index into memory
            failing.pop_all()
            return db
    return None


def _without_log(path: Path, wait: LockWait) -> apsw.Connection:
    """Connect with a rollback journal, after applying a WAL from another system.

    An exclusive lock makes that possible without shared memory (sqlite.org, "wal" 8).
    """
    db = apsw.Connection(str(path))
    with ExitStack() as failing:
        failing.callback(db.close)
        db.pragma("locking_mode", "exclusive")  # before anything is read
        _set_up(db, wait)
        db.pragma("journal_mode", "delete")
        db.pragma("locking_mode", "normal")
        db.pragma("user_version")  # the first read ends the exclusive lock
        failing.pop_all()
    return db


def _set_up(db: apsw.Connection, wait: LockWait) -> None:
    """Apply the settings for durability and safety."""
    db.set_busy_handler(wait)
    db.pragma("trusted_schema", value=False)
    db.pragma("cell_size_check", value=True)
    db.pragma("foreign_keys", value=True)
    db.pragma("synchronous", "full")
    # What undoes one job of a transaction would else go to a file, from 64 KB on.
    db.pragma("temp_store", "memory")
    db.pragma("wal_autocheckpoint", 0)
    db.pragma("journal_size_limit", _LOG_LIMIT_BYTES)


def _check(db: apsw.Connection, *, everything: bool) -> None:
    """Check as much of the database file as the time limit allows.

    With `everything` there is no time limit, and indexes are compared with rows.

    :raises apsw.CorruptError: when the file is damaged.
    """
    if everything:
        verdict = db.pragma("integrity_check", 1)
        if verdict != "ok":
            raise apsw.CorruptError(str(verdict))
        return
    deadline = time.monotonic() + _CHECK_LIMIT_S
    db.set_progress_handler(lambda: time.monotonic() > deadline, _CHECK_STEPS)
    try:
        verdict = db.pragma("quick_check", 1)
    except apsw.InterruptError:
        return
    finally:
        db.set_progress_handler(None)
    if verdict != "ok":
        raise apsw.CorruptError(str(verdict))


def _move_aside(path: Path) -> Path:
    """Move the damaged file and its write-ahead log aside; return the file's new path."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.corrupt-{stamp}")
    for suffix in _FILES:
        file = path.with_name(path.name + suffix)
        if file.exists():
            file.replace(aside.with_name(aside.name + suffix))
    return aside
