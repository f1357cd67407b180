"""The file behind the trust store: read leniently, written whole, private to the user."""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from pegboard.errors import TrustError

_VERSION = 1
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class _ForeignError(Exception):
    """Somebody else may have written the file."""


class Trusted(msgspec.Struct, frozen=True, kw_only=True):
    """A trusted project: its root, the digest of each file, and when it was allowed.

    `allowed_at` is in milliseconds since the epoch. A file outside of the root has its whole
    path for a name.
    """

    root: Path
    files: Mapping[str, str]
    allowed_at: int


class TrustFile:
    """A JSON file of trusted projects; `copies/` beside it has the allowed bytes by digest."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._copies = path.parent / f"{path.stem}-copies"

    def projects(self) -> tuple[Trusted, ...]:
        """All projects, by path."""
        return tuple(found for _, found in sorted(self._read().items()))

    def project(self, root: Path) -> Trusted | None:
        """The project with this root, None if it is not trusted."""
        return self._read().get(str(root))

    def copy(self, digest: str) -> bytes:
        """The bytes with this digest as they were allowed; empty if the copy is lost."""
        try:
            return (self._copies / digest).read_bytes()
        except OSError:
            return b""

    def put(self, root: Path, files: Mapping[str, str], copies: Iterable[bytes]) -> None:
        """Store a project in place of what was known of it, and the copies of its files."""
        with self._writing() as projects:
            for content in copies:
                self._replace(self._copies / hashlib.sha256(content).hexdigest(), content)
            now = time.time_ns() // 1_000_000
            projects[str(root)] = Trusted(root=root, files=dict(files), allowed_at=now)

    def remove(self, root: Path) -> bool:
        """Forget a project, and the copies that no other has; False if it was unknown."""
        with self._writing() as projects:
            return projects.pop(str(root), None) is not None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[dict[str, Trusted]]:
        """The projects, to be changed while no other process does; stored at the end."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._copies.mkdir(exist_ok=True, mode=0o700)
            lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._make_room()
                projects = self._read()
                yield projects
                self._replace(self._path, _encoded(projects))
                self._prune(projects)
            finally:
                os.close(lock)
        except OSError as error:
            text = f"the trust store {self._path} cannot be written: {error.strerror or error}"
            raise TrustError(text) from error

    def _prune(self, projects: Mapping[str, Trusted]) -> None:
        """Delete the copies that no project has any more."""
        used = {digest for project in projects.values() for digest in project.files.values()}
        for copy in self._copies.iterdir():
            if copy.name not in used:
                copy.unlink(missing_ok=True)

    def _replace(self, path: Path, content: bytes) -> None:
        """Put the content in the place of the file at once; only the user may read it."""
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        draft.unlink(missing_ok=True)  # left by a process of this number that was killed
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(number, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def _read(self) -> dict[str, Trusted]:
        """The projects; none from a file that cannot be read or that others may have written."""
        try:
            content = self._content()
        except (OSError, _ForeignError):
            return {}
        try:
            return _decoded(content) if content is not None else {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._set_aside(f"is damaged ({error})")
            return {}

    def _content(self) -> bytes | None:
        """The file's bytes, None where there is none.

        :raises _ForeignError: when somebody else may have written it.
        """
        try:
            with self._path.open("rb") as file:
                facts = os.fstat(file.fileno())
                if facts.st_uid not in (os.geteuid(), 0) or facts.st_mode & _OTHERS_WRITE:
                    raise _ForeignError
                return file.read()
        except FileNotFoundError:
            return None

    def _make_room(self) -> None:
        """Keep what is not taken for trust from being overwritten.

        :raises OSError: when it cannot be read.
        """
        try:
            self._content()
        except _ForeignError:
            self._set_aside("can be written by others")

    def _set_aside(self, why: str) -> None:
        """Keep the file beside the store, for whoever wants to know what was in it."""
        aside = Path(f"{self._path}.damaged-{time.time_ns()}")
        with contextlib.suppress(OSError):
            self._path.replace(aside)
            text = "the trust store %s %s: it is kept as %s, and projects have to be trusted again"
            logging.getLogger("pegboard.trust").warning(text, self._path, why, aside)


def _encoded(projects: Mapping[str, Trusted]) -> bytes:
    table = {
        root: {"allowed_at": project.allowed_at, "files": dict(sorted(project.files.items()))}
        for root, project in sorted(projects.items())
    }
    return json.dumps({"version": _VERSION, "projects": table}, indent=2).encode()


def _decoded(content: bytes) -> dict[str, Trusted]:
    value = json.loads(content)
    if value["version"] != _VERSION:
        raise ValueError(f"version {value['version']!r}")
    return {
        root: Trusted(
            root=Path(root),
            files={str(name): str(digest) for name, digest in entry["files"].items()},
            allowed_at=int(entry["allowed_at"]),
        )
        for root, entry in value["projects"].items()
    }
