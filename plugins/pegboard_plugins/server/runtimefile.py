"""The file with a server's address and credentials for the user's own clients."""

import fcntl
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec


class RuntimeFile:
    """A file that a running server keeps locked; a file without a lock belongs to a dead server.

    `locked` is the descriptor of the open file. The file is removed when the context ends.
    """

    def __init__(self, path: Path, locked: int) -> None:
        self._path = path
        self._file: int | None = locked

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the file unless another server has replaced it; a second call does nothing."""
        if self._file is None:
            return
        try:
            if os.path.samestat(os.fstat(self._file), self._path.lstat()):
                self._path.unlink()
        except FileNotFoundError:
            pass
        finally:
            os.close(self._file)
            self._file = None


def write_runtime_file(path: Path, facts: Mapping[str, object]) -> RuntimeFile:
    """Write a file with the server's `facts`, readable only by this user; replace an older file.

    The files of dead servers are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for rest in path.parent.glob("server-*.json"):
        _remove_dead(rest)
    # With a name that nobody can guess, and the mode 0600.
    file, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(file, msgspec.json.encode(facts))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        os.close(file)
        raise
    return RuntimeFile(path, file)


def _remove_dead(rest: Path) -> None:
    """Remove a runtime file if no living server has locked it."""
    try:
        file = os.open(rest, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # it is gone, or none of ours
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        rest.unlink()
    except OSError:  # its server lives
        pass
    finally:
        os.close(file)
