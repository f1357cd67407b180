"""The keys of providers that clients set: a file of the user's own, laid over the configuration."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

_Known = dict[str, dict[str, Any]]


class Keys:
    """The file with the credentials by provider, which all servers of the user share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, provider_id: str, credential: Mapping[str, Any]) -> None:
        """Keep a credential; it blocks for the time of a small file."""
        self._change(lambda known: {**known, provider_id: dict(credential)})

    def drop(self, provider_id: str) -> None:
        """Forget a credential, if there is one."""
        self._change(lambda known: {name: known[name] for name in known if name != provider_id})

    def overlay(self) -> dict[str, object]:
        """What the configuration says with these keys."""
        providers = {
            name: {"options": {"apiKey": value["key"]}}
            for name, value in self._read().items()
            if isinstance(value.get("key"), str)
        }
        return {"provider": providers} if providers else {}

    def _change(self, changed: Callable[[_Known], _Known]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(self._path.with_name(f"{self._path.name}.lock")):
            before = self._read()
            after = changed(before)
            if after != before:
                _replace(self._path, msgspec.json.encode(after))

    def _read(self) -> _Known:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Known)
        except (FileNotFoundError, msgspec.DecodeError):
            return {}


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Nobody else changes the file meanwhile, which nobody does for longer than it takes."""
    opened = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _replace(path: Path, content: bytes) -> None:
    """Replace a file that only its owner can read, never leaving half of it."""
    # With a name that nobody can guess, and the mode 0600.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
