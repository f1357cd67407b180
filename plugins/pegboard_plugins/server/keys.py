"""The keys of providers that clients set: a file of the user's own, laid over the configuration."""

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

_Known = dict[str, dict[str, Any]]
_log = logging.getLogger("pegboard.server")


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
        known, damage = self._read()
        if damage:
            _log.error("%s is damaged (%s), and the keys in it do not count", self._path, damage)
        keys = {name: _key(value) for name, value in known.items()}
        providers = {name: {"options": {"apiKey": key}} for name, key in keys.items() if key}
        return {"provider": providers} if providers else {}

    def _change(self, changed: Callable[[_Known], _Known]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(self._path.with_name(f"{self._path.name}.lock")):
            before, damage = self._read()
            after = changed(before)
            if after == before:
                return
            if damage:
                self._keep_aside(damage)
            _replace(self._path, msgspec.json.encode(after))

    def _read(self) -> tuple[_Known, str]:
        """The credentials, and what is wrong with the file where they cannot be read."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Known), ""
        except FileNotFoundError:
            return {}, ""
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return {}, str(error)

    def _keep_aside(self, damage: str) -> None:
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        _replace(aside, self._path.read_bytes())
        text = "%s is damaged (%s): it is kept as %s, with the keys that it had, and begun anew"
        _log.error(text, self._path, damage, aside)


def _key(credential: Mapping[str, Any]) -> str | None:
    """What opens a provider: its key, a company's token, or that of a sign-in until it ends."""
    match credential:
        case {"type": "oauth", "access": str(token), "expires": int(until_ms)}:
            return token if not until_ms or until_ms > time.time() * 1000 else None
        case {"type": "wellknown", "token": str(token)}:
            return token
        case {"type": "api", "key": str(key)}:
            return key
    return None


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
