"""The selection of libraries' skills that a request describes, within a limit."""

from collections.abc import Mapping, Sequence

MOST_OF_LIBRARIES = 1024
"""The number of bytes of a request for the lines about libraries' skills."""
MOST_OF_NAMES = 256
"""The number of these bytes for the names of skills without a line of their own."""


def described_skills(lines: Mapping[str, str], *, most: int) -> tuple[str, ...]:
    """Return the names of skills whose lines fit the size limit, at most `most` of them."""
    room = MOST_OF_LIBRARIES
    if len(lines) > most or sum(map(_size, lines.values())) > room:
        room -= MOST_OF_NAMES
    found: list[str] = []
    for name, line in lines.items():
        if _size(line) <= room and len(found) < most:
            room -= _size(line)
            found.append(name)
    return tuple(found)


def names_line(names: Sequence[str]) -> str:
    """Return a line with the names of skills that get no line of their own, cut if too long."""
    for count in range(len(names), -1, -1):
        more = f" and {len(names) - count} more" if count < len(names) else ""
        line = f"- and from libraries: {', '.join(names[:count])}{more}"
        if _size(line) <= MOST_OF_NAMES:
            return line
    return ""


def _size(line: str) -> int:
    return len(line.encode()) + 1
