"""The wait for another process that has the database locked."""

import logging
import os
import time
from pathlib import Path

import apsw

from pegboard.errors import StorageError

VARIABLE = "PEGBOARD_DATABASE_WAIT_S"
"""The environment variable that sets the limit, in seconds."""
_DEFAULT_S = 60.0
_NOTICE_S = 2.0
"""A wait that takes longer is written to the log."""
_CLOSING_S = 5.0
"""The limit while the database is closed: the user waits for the end of the program."""
_POLL_S = 0.02


class LockWait:
    """The limit of the wait for a lock, which is a busy handler of SQLite.

    It serves one connection, or one lock file, at a time.
    """

    def __init__(self, path: Path, limit_s: float) -> None:
        self._path = path
        self._limit_s = limit_s
        self._began = 0.0
        self._announced = False

    @classmethod
    def of(cls, path: Path) -> "LockWait":
        """Return the wait that the environment sets.

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
        """Shorten the limit, because the program ends."""
        self._limit_s = min(self._limit_s, _CLOSING_S)

    def give_up(self) -> None:
        """End the wait at once."""
        self._limit_s = 0.0


def reason_of(error: Exception) -> str:
    """Return why SQLite failed; a lock comes with what the user can do about it."""
    if isinstance(error, apsw.BusyError):
        return (
            f"{error}: another process has it; `fuser` or `lsof` with this path names it, and "
            f"{VARIABLE} sets how long Pegboard waits"
        )
    return str(error)
