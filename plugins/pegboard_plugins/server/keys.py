"""The keys of providers that clients set: a file of the user's own, laid over the configuration."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

FILE_MODE = 0o600


class Keys:
    """The file with the credentials by provider; it is read once, and replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] | None = None

    def put(self, provider_id: str, credential: Mapping[str, Any]) -> None:
        """Keep a credential; it blocks for the time of a small file."""
        self._write({**self._read(), provider_id: dict(credential)})

    def drop(self, provider_id: str) -> None:
        """Forget a credential, if there is one."""
        known = self._read()
        if provider_id in known:
            self._write({name: value for name, value in known.items() if name != provider_id})

    def names(self) -> frozenset[str]:
        """The providers that have a credential here."""
        return frozenset(self._read())

    def overlay(self) -> dict[str, object]:
        """What the configuration says with these keys."""
        providers = {
            name: {"options": {"apiKey": value["key"]}}
            for name, value in self._read().items()
            if isinstance(value.get("key"), str)
        }
        return {"provider": providers} if providers else {}

    def _read(self) -> dict[str, dict[str, Any]]:
        if self._known is None:
            try:
                raw = self._path.read_bytes()
                self._known = msgspec.json.decode(raw, type=dict[str, dict[str, Any]])
            except (FileNotFoundError, msgspec.DecodeError):
                self._known = {}
        return self._known

    def _write(self, known: dict[str, dict[str, Any]]) -> None:
        write_private(self._path, msgspec.json.encode(known))
        self._known = known


def write_private(path: Path, content: bytes) -> None:
    """Replace a file that only its owner can read, never leaving half of it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
