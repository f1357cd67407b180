"""The record of instruction documents that agents wrote and the user has not accepted.

Until the user accepts a document, it is not an instruction. Otherwise an agent that reads hostile
text could leave instructions for later sessions. The record has the digests of the documents'
contents by path. If a document's content has no recorded digest, for example after `git pull`, no
agent wrote it, and it is an instruction.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.plugins import lock_file, replace_file
from pegboard.unstable import read_bounded

_MOST_VERSIONS = 20
"""The maximum number of recorded versions of one document; an undo can restore any of them."""
_MOST_PATHS = 1000
_Record = dict[str, list[str]]


class UnseenDocuments:
    """The record at `path` of documents that the user has not accepted; methods block."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, documents: Iterable[Path]) -> None:
        """Record the current content of documents that an agent has changed.

        A failure to write the record is logged.
        """
        found = {str(path): _digest(path) for path in documents}
        try:
            with lock_file(self._path):
                record = self._read()
                for path, digest in found.items():
                    versions = [each for each in record.pop(path, []) if each != digest]
                    record[path] = [*versions, digest][-_MOST_VERSIONS:]
                self._write(dict(list(record.items())[-_MOST_PATHS:]))
        except OSError as error:
            text = "the record %s cannot be written, so later sessions obey %s unseen: %s"
            logging.getLogger("pegboard.trust").warning(
                text, self._path, ", ".join(found), error.strerror or error
            )

    def among(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Return the `paths`, already resolved, that the user has not accepted."""
        record = self._read()
        return frozenset(
            path for path in paths if (known := record.get(str(path))) and _digest(path) in known
        )

    def below(self, root: Path) -> Iterator[tuple[Path, bytes]]:
        """Yield the path and content of each unaccepted document below `root`, sorted by path."""
        for name, versions in sorted(self._read().items()):
            path = Path(name)
            content = read_bounded(path)[0] if path.is_relative_to(root) else b""
            if content and hashlib.sha256(content).hexdigest() in versions:
                yield path, content

    def accept(self, seen: Mapping[Path, bytes]) -> None:
        """Accept documents with exactly this content, which the user has seen.

        :raises OSError: when the record cannot be written.
        """
        with lock_file(self._path):
            record = self._read()
            for path, content in seen.items():
                digest = hashlib.sha256(content).hexdigest()
                left = [each for each in record.pop(str(path), []) if each != digest]
                if left:
                    record[str(path)] = left
            self._write(record)

    def _read(self) -> _Record:
        with suppress(OSError, ValueError, msgspec.MsgspecError):
            return msgspec.json.decode(self._path.read_bytes(), type=_Record)
        return {}

    def _write(self, record: _Record) -> None:
        replace_file(self._path, msgspec.json.encode(record))


def _digest(path: Path) -> str:
    return hashlib.sha256(read_bounded(path)[0]).hexdigest()
