"""The check of installed files against the digests in a wheel's RECORD."""

import base64
import hashlib
from functools import lru_cache
from pathlib import Path

import msgspec

from pegboard.unstable import read_bounded

LIMIT_BYTES = 256 * 1024
CHANGED = "the file differs from its RECORD; install the library again"
_Stamp = tuple[int, int, int, int]


class LibraryEntry(msgspec.Struct, frozen=True):
    """A file in a library's RECORD; `problem` says why it cannot be used as a skill, or is ""."""

    path: Path
    digest: str
    library: str
    problem: str = ""


def text_as_recorded(path: Path, digest: str) -> str | None:
    """Return the text of a file if it has this digest, or else None."""
    try:
        facts = path.stat()
    except OSError:
        return None
    stamp = (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino)
    return _check(path, digest, stamp)


@lru_cache(maxsize=128)
def _check(path: Path, digest: str, stamp: _Stamp) -> str | None:  # noqa: ARG001 - the key
    content, why = read_bounded(path)
    if why or len(content) > LIMIT_BYTES:
        return None
    known = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return content.decode("utf-8-sig", "replace") if known == digest else None
