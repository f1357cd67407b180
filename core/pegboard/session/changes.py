"""What a session has done to files, told by the `patch` parts of its steps."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from pegboard.schema.message import Turn
from pegboard.schema.part import Part, PatchPart
from pegboard.schema.session import FileDiff, Revert, SessionSummary
from pegboard.snapshot import Way

PATCH_LIMIT_CHARS = 1 << 18
"""Longer texts of all diffs of a session are left out; the counts are there all the same."""


def split(
    turns: Iterable[Turn], point: Revert | None
) -> tuple[tuple[PatchPart, ...], tuple[PatchPart, ...]]:
    """The patches before a point of a session and those behind it, in order."""
    turns = tuple(turns)
    count = sum(isinstance(part, PatchPart) for part in behind(turns, point))
    patches = [part for turn in turns for part in turn.parts if isinstance(part, PatchPart)]
    place = len(patches) - count
    return tuple(patches[:place]), tuple(patches[place:])


def behind(turns: Iterable[Turn], point: Revert | None) -> list[Part]:
    """The parts that come after a point of a session, in order; none behind its end."""
    found: list[Part] = []
    is_behind = False
    for turn in turns if point is not None else ():
        at_point = point is not None and turn.info.id == point.message_id
        is_behind = is_behind or (at_point and point is not None and point.part_id is None)
        for part in turn.parts:
            is_behind = is_behind or (at_point and point is not None and part.id == point.part_id)
            if is_behind:
                found.append(part)
    return found


def total(patches: Iterable[PatchPart]) -> dict[Path, Way]:
    """Each file's way from what it was before the first patch to what the last one left."""
    ways: dict[Path, Way] = {}
    for patch in patches:
        for file in patch.files:
            path = Path(file)
            first = ways[path].before if path in ways else patch.hash
            ways[path] = Way(before=first, after=patch.after or patch.hash)
    return ways


def steps(turns: Iterable[Turn]) -> dict[str, Way]:
    """What each message that changed files made of the worktree, by the message's id."""
    return {
        turn.info.id: Way(before=patches[0].hash, after=patches[-1].after or patches[-1].hash)
        for turn in turns
        if (patches := [part for part in turn.parts if isinstance(part, PatchPart)])
    }


def between(turns: Sequence[Turn], *, here: Revert | None, there: Revert | None) -> dict[Path, Way]:
    """Each file's way from one point of a session to another; None is its end."""
    places = (_states(turns, here), _states(turns, there))
    return {
        path: Way(before=tree, after=places[1][path])
        for path, tree in places[0].items()
        if tree != places[1][path]
    }


def _states(turns: Sequence[Turn], point: Revert | None) -> dict[Path, str]:
    """For each file that the session has changed, a tree that has it as it is at a point."""
    before, behind = split(turns, point)
    trees = {path: way.after for path, way in total(before).items()}
    return trees | {path: way.before for path, way in total(behind).items()}


def bounded(diffs: Sequence[FileDiff]) -> tuple[FileDiff, ...]:
    """The diffs, without their texts when these are too long to be sent around."""
    if sum(len(diff.patch) for diff in diffs) <= PATCH_LIMIT_CHARS:
        return tuple(diffs)
    return tuple(replace(diff, patch="") for diff in diffs)


def summary_of(diffs: Sequence[FileDiff]) -> SessionSummary:
    """The counts of diffs."""
    return SessionSummary(
        additions=sum(diff.additions for diff in diffs),
        deletions=sum(diff.deletions for diff in diffs),
        files=len(diffs),
    )
