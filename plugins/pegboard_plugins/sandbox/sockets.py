"""Sockets in the file system, to which programs can connect even in a read-only folder."""

import stat
from collections.abc import Iterator
from pathlib import Path

_PATH_FIELD = 7
"""Of a line of /proc/net/unix: it follows seven others, and may have blanks itself."""


def path_sockets() -> Iterator[Path]:
    """Yield the paths of sockets on which programs of this network namespace listen."""
    try:
        lines = Path("/proc/net/unix").read_bytes().decode(errors="surrogateescape").splitlines()
    except OSError:
        return
    named = (line.split(maxsplit=_PATH_FIELD)[_PATH_FIELD:] for line in lines[1:])
    for path in dict.fromkeys(Path(fields[0]) for fields in named if fields):
        if path.is_absolute() and _is_socket(path):
            yield path


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode) and path.parent.resolve() == path.parent
    except (OSError, ValueError):
        return False
