"""The processes that use a database, their sessions, and what is done after a process died.

Each process holds a lock on its own file, which the system releases when the process dies in any
way. Unlike a process id, a lock is not reused, and works across containers that share the folder.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import apsw

from pegboard.errors import NotFoundError, SessionBusyError, StorageError
from pegboard.schema.event import Event
from pegboard.storage import Fence, end_unfinished, read_message, read_part
from pegboard_plugins.sqlite import pieces, reads
from pegboard_plugins.sqlite.opentexts import transaction
from pegboard_plugins.sqlite.writes import apply

_OPENING = "opening"
_BOOT_DIGITS = 8
_NAME_WORDS = 5
_UNKNOWN_BOOT = "unknown"
_ABANDONED = """
SELECT id, owner FROM session WHERE owner IS NOT NULL
UNION ALL SELECT id, owner FROM session WHERE owner IS NULL AND id IN (
    SELECT session_id FROM part WHERE state IS NOT NULL
    UNION SELECT session_id FROM message WHERE unfinished
)
"""


class Owners:
    """The processes that own sessions in one database.

    `own` is the name of this process: its id, start time, boot id, random digits, and id namespace.
    """

    def __init__(self, folder: Path) -> None:
        chance = os.urandom(6).hex()
        start = time.time_ns() // 1_000_000
        self.own = f"{os.getpid()}-{start}-{_boot()}-{chance}-{_space()}"
        self._folder = folder
        self._lock: int | None = None

    @contextmanager
    def opening(self, wait: Callable[[int], bool]) -> Iterator[None]:
        """Hold the exclusive right to open the database during the `with` block.

        `wait` sleeps before each retry, and returns False when its limit is reached.

        :raises StorageError: when another process has it until the end of the wait.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        lock = _open_lock(self._folder / _OPENING)
        try:
            self._wait_for(lock, wait)
            yield
        finally:
            os.close(lock)

    def register(self) -> None:
        """Take the lock of this process; only allowed inside `opening`."""
        self._lock = _open_lock(self._folder / self.own)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def others(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of living processes, and of processes that died since the last call.

        Only allowed inside `opening`.
        """
        names = {path.name for path in self._folder.iterdir()} - {self.own, _OPENING}
        alive = tuple(name for name in sorted(names) if self.is_alive(name))
        return alive, tuple(sorted(names - set(alive)))

    def is_alive(self, owner: str) -> bool:
        """Return whether the process named `owner` still holds its lock."""
        if owner == self.own:
            return True
        path = self._folder / owner
        try:
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not _has_no_process(owner):
                return True
        finally:
            os.close(lock)
        path.unlink(missing_ok=True)
        return False

    def close(self) -> None:
        """Release the lock of this process."""
        if self._lock is not None:
            (self._folder / self.own).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def _wait_for(self, lock: int, wait: Callable[[int], bool]) -> None:
        for tries in count():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if not wait(tries):
                    raise StorageError(
                        "another process is opening the database; `fuser` with the path "
                        f"{self._folder / _OPENING} names it"
                    ) from error
            else:
                return


def died_with_the_machine(owner: str) -> bool:
    """Return whether the owner may have died in a crash or restart of the machine.

    A process that dies alone cannot damage a database, because the system still writes its data.
    """
    boot = owner.split("-")[2] if owner.count("-") > 1 else _UNKNOWN_BOOT
    return boot == _UNKNOWN_BOOT or boot != _boot()


def _has_no_process(owner: str) -> bool:
    """Return whether the owner's process is certainly dead, even if its lock is held.

    A child that the owner was starting when it was killed keeps the lock until its exec, which
    takes a moment, or longer on a busy machine.
    """
    words = owner.split("-")
    if len(words) < _NAME_WORDS or words[2] != _boot() or words[4] != _space():
        return False
    try:
        state = Path(f"/proc/{words[0]}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return state in (b"Z", b"X")


def _space() -> str:
    """Return the namespace of process ids, since containers may use equal ids."""
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return f"unknown{os.urandom(6).hex()}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:_BOOT_DIGITS]
    except OSError:
        return _UNKNOWN_BOOT


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def recover(db: apsw.Connection, is_alive: Callable[[str], bool]) -> tuple[Event, ...]:
    """Mark calls, answers and requests of dead processes as interrupted."""
    if not _abandoned_sessions(db, is_alive):
        return ()
    with transaction(db):
        # Looked for again, since another process may have come first.
        sessions = _abandoned_sessions(db, is_alive)
        return tuple(event for session in sessions for event in interrupt(db, session))


def interrupt(db: apsw.Connection, session_id: str, *, died: bool = True) -> tuple[Event, ...]:
    """End all unfinished work in a session, and remove the session's owner.

    `died` is False if the owner is alive, but could not write the end of its work.
    """
    key = (session_id,)
    parts = db.execute(
        "SELECT message_id, id, data, ordinal, state, streamed FROM part "
        "WHERE session_id = ? AND state IS NOT NULL ORDER BY ordinal",
        key,
    )
    messages = db.execute(
        "SELECT data, id, role FROM message WHERE session_id = ? AND unfinished ORDER BY ordinal",
        key,
    )
    requests = db.execute("SELECT id FROM permission_request WHERE session_id = ?", key)
    changes = end_unfinished(
        session_id,
        parts=[
            read_part(pieces.whole(db, *row), session_id, message_id, part_id)
            for message_id, part_id, *row in parts
        ],
        messages=[read_message(data, session_id, *columns) for data, *columns in messages],
        requests=[id_ for (id_,) in requests],
        died=died,
    )
    events = apply(db, changes)
    # A damaged row has no state to end.
    db.execute("UPDATE part SET state = NULL WHERE session_id = ?", key)
    db.execute("UPDATE message SET unfinished = 0 WHERE session_id = ?", key)
    db.execute("UPDATE session SET owner = NULL WHERE id = ?", key)
    return events


def claim(
    db: apsw.Connection, session_id: str, owner: str, is_alive: Callable[[str], bool]
) -> tuple[Fence, tuple[Event, ...]]:
    """Make `owner` the owner of the session; interrupt the work of an owner that has died.

    Return the fence, the token that proves the ownership to later writes, and the events of the
    interruption.

    :raises SessionBusyError: while a living owner has the session.
    :raises NotFoundError: when no session has this id.
    """
    row = db.execute("SELECT owner, epoch FROM session WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise NotFoundError("session", session_id)
    holder, epoch = row
    if holder is not None and is_alive(holder):
        raise SessionBusyError(session_id, owner=holder)
    events = interrupt(db, session_id) if holder is not None else ()
    fence = Fence(session_id=session_id, owner=owner, epoch=epoch + 1)
    db.execute(
        "UPDATE session SET owner = ?, epoch = ? WHERE id = ?", (owner, fence.epoch, session_id)
    )
    return fence, events


def bury(
    db: apsw.Connection, session_id: str, is_alive: Callable[[str], bool]
) -> tuple[None, tuple[Event, ...]]:
    """Mark a session's unfinished work as interrupted if the session's owner has died."""
    holder = reads.owner(db, session_id)
    events = interrupt(db, session_id) if holder is not None and not is_alive(holder) else ()
    return None, events


def release(db: apsw.Connection, fence: Fence) -> tuple[None, tuple[Event, ...]]:
    """Release a session, and end work that a failed write has left unfinished.

    Nothing happens if another owner has the session.
    """
    row = db.execute(
        "SELECT owner, epoch, id IN (SELECT session_id FROM part WHERE state IS NOT NULL "
        "UNION SELECT session_id FROM message WHERE unfinished) FROM session WHERE id = ?",
        (fence.session_id,),
    ).fetchone()
    if row is None or row[:2] != (fence.owner, fence.epoch):
        return None, ()
    if row[2]:
        return None, interrupt(db, fence.session_id, died=False)
    db.execute("UPDATE session SET owner = NULL WHERE id = ?", (fence.session_id,))
    return None, ()


def give_back(db: apsw.Connection, claimed: Sequence[Fence]) -> tuple[None, tuple[Event, ...]]:
    """Release these sessions, because the calls that claimed them were cancelled."""
    for fence in claimed:
        release(db, fence)
    return None, ()


def release_all(db: apsw.Connection, owner: str) -> tuple[None, tuple[Event, ...]]:
    """Release all sessions of an owner."""
    db.execute("UPDATE session SET owner = NULL WHERE owner = ?", (owner,))
    return None, ()


def _abandoned_sessions(db: apsw.Connection, is_alive: Callable[[str], bool]) -> list[str]:
    rows = list(db.execute(_ABANDONED))
    return sorted(session for session, owner in rows if owner is None or not is_alive(owner))
