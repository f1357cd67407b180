"""The processes that use a database, and whether each of them is still alive.

Each process holds a lock on a file of its own, which the system releases however the process
dies. Unlike a process id, a lock is not reused, and means the same in every container that shares
the folder.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pegboard.errors import StorageError

_OPENING = "opening"
_OPENING_LIMIT_S = 10.0
_OPENING_POLL_S = 0.005
_BOOT_DIGITS = 8
_NAME_WORDS = 5
_UNKNOWN_BOOT = "unknown"


class Owners:
    """The owners of one database.

    `own` is this one's name: process id, start, boot, chance, and the space of process ids.
    """

    def __init__(self, folder: Path) -> None:
        chance = os.urandom(6).hex()
        start = time.time_ns() // 1_000_000
        self.own = f"{os.getpid()}-{start}-{_boot()}-{chance}-{_space()}"
        self._folder = folder
        self._lock: int | None = None

    @contextmanager
    def opening(self) -> Iterator[None]:
        """The exclusive right to open the database.

        :raises StorageError: when another keeps it for ten seconds.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        lock = _opened(self._folder / _OPENING)
        try:
            self._wait_for(lock)
            yield
        finally:
            os.close(lock)

    def register(self) -> None:
        """Takes this owner's own lock; only while `opening`."""
        self._lock = _opened(self._folder / self.own)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def others(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Living owners, and those that have died since the last call; while `opening`."""
        names = {path.name for path in self._folder.iterdir()} - {self.own, _OPENING}
        alive = tuple(name for name in sorted(names) if self.is_alive(name))
        return alive, tuple(sorted(names - set(alive)))

    def is_alive(self, owner: str) -> bool:
        """Whether the process that registered as `owner` still has its lock."""
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
        """Gives this owner's lock back."""
        if self._lock is not None:
            (self._folder / self.own).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def _wait_for(self, lock: int) -> None:
        deadline = time.monotonic() + _OPENING_LIMIT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise StorageError(
                        f"another process is opening the database for {_OPENING_LIMIT_S:.0f} s "
                        f"already; see who has {self._folder / _OPENING} open"
                    ) from error
                time.sleep(_OPENING_POLL_S)
            else:
                return


def died_with_the_machine(owner: str) -> bool:
    """Whether the owner may have died in a crash of the machine.

    A process that dies alone cannot damage a database: the system still writes its data.
    """
    boot = owner.split("-")[2] if owner.count("-") > 1 else _UNKNOWN_BOOT
    return boot == _UNKNOWN_BOOT or boot != _boot()


def _has_no_process(owner: str) -> bool:
    """Whether it is certain that the owner's process is gone, whoever has its lock.

    A child that was being started when the owner was killed keeps the lock until its exec: for a
    moment, and on a busy machine for longer.
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
    """The namespace of process ids; those of other containers mean nothing here."""
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return f"unknown{os.urandom(6).hex()}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:_BOOT_DIGITS]
    except OSError:
        return _UNKNOWN_BOOT


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
