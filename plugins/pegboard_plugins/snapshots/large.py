"""Long files that git does not track: which of them are copied, and as what.

A file on the disk remembers them, so that a process that begins need not read them all again.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from pegboard_plugins.snapshots.objects import Entry, Objects

FREE_BYTES = 2 << 20
"""Files up to this are not counted."""
FILE_LIMIT_BYTES = 50 << 20
"""A longer one is not copied, and of a tracked one only the id is kept."""
LIMIT_BYTES = 500 << 20
"""Of all long files together."""


class _Known(msgspec.Struct, frozen=True):
    facts: tuple[int, ...]
    mode: bytes
    oid: bytes


class LargeFiles:
    """The long files of a worktree that have a place among the copies; `place` remembers them."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._sizes: dict[bytes, int] = {}
        self._known: dict[str, _Known] = {}

    def fits(self, path: bytes, size: int) -> bool:
        """Whether there is room for a copy; from here on the room is taken."""
        if size <= FREE_BYTES:
            return True
        taken = sum(self._sizes.values()) - self._sizes.get(path, 0)
        if size > FILE_LIMIT_BYTES or taken + size > LIMIT_BYTES:
            return False
        self._sizes[path] = size
        return True

    def remembered(self, objects: Objects) -> Iterator[tuple[bytes, tuple[int, ...], Entry]]:
        """The files with what told their state, of which the copies are still there."""
        try:
            known = msgspec.json.decode(self._place.read_bytes(), type=dict[str, _Known])
        except (OSError, msgspec.MsgspecError):
            return
        gone = objects.freshen([each.oid for each in known.values()])
        for name, each in known.items():
            if each.oid not in gone:
                self._known[name] = each
                path = name.encode()
                yield path, each.facts, Entry(each.mode, each.oid)

    def remember(self, found: Mapping[bytes, tuple[tuple[int, ...], Entry]]) -> None:
        """Keep what is known of the files that have a place; nothing without a change."""
        known = {
            path.decode(): _Known(found[path][0], *found[path][1])
            for path in self._sizes
            if path in found and _is_text(path)
        }
        if known == self._known:
            return
        self._known = known
        temporary = self._place.with_name(f"{self._place.name}.{os.urandom(6).hex()}")
        temporary.write_bytes(msgspec.json.encode(known))
        temporary.replace(self._place)


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
