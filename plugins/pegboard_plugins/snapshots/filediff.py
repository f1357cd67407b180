"""What became of one file between two states, as people read it."""

from collections.abc import Mapping
from typing import Literal

from pegboard.kit import diff_texts
from pegboard.schema.session import FileDiff
from pegboard_plugins.snapshots.objects import Entry
from pegboard_plugins.snapshots.restore import Move

LIMIT_BYTES = 1 << 20
"""Of a longer file a diff says only that it changed."""


def file_diff(move: Move, contents: Mapping[bytes, bytes]) -> FileDiff:
    """The diff of a file; `contents` are those that are known, by id."""
    name = move.path.decode(errors="replace")
    before, after = _text(move.expected, contents), _text(move.wanted, contents)
    status: Literal["added", "deleted", "modified"] = "modified"
    if move.expected is None or move.wanted is None:
        status = "added" if move.expected is None else "deleted"
    if before is None or after is None:
        return FileDiff(file=name, additions=0, deletions=0, status=status)
    diff = diff_texts(before, after, name=name)
    return FileDiff(
        file=name,
        additions=diff.additions,
        deletions=diff.deletions,
        patch=diff.text,
        status=status,
    )


def _text(entry: Entry | None, contents: Mapping[bytes, bytes]) -> str | None:
    if entry is None:
        return ""
    content = contents.get(entry.oid)
    if content is None or len(content) > LIMIT_BYTES or b"\0" in content:
        return None
    return content.decode(errors="replace")
