"""The changes of files of a session, from the `patch` parts of its steps."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from pegboard.contract.backends import StagedWay, Way
from pegboard.schema.message import Turn
from pegboard.schema.part import Part, PatchPart, Staged
from pegboard.schema.session import FileDiff, Revert, SessionSummary

_Change = PatchPart | Staged
PATCH_LIMIT_CHARS = 1 << 18
"""Longer texts of all diffs of a session are left out; the counts are there all the same."""


def split(
    turns: Iterable[Turn], point: Revert | None
) -> tuple[tuple[PatchPart, ...], tuple[PatchPart, ...]]:
    """The patches before a point of a session and those after it, in order."""
    turns = tuple(turns)
    count = sum(isinstance(part, PatchPart) for part in behind(turns, point))
    patches = [part for turn in turns for part in turn.parts if isinstance(part, PatchPart)]
    place = len(patches) - count
    return tuple(patches[:place]), tuple(patches[place:])


def behind(turns: Iterable[Turn], point: Revert | None) -> list[Part]:
    """The parts after a point of a session, in order; none after its end."""
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
    """Each file's change from before the first patch to after the last one."""
    return {Path(file): way for file, way in _total(patches).items()}


def _total(changes: Iterable[_Change]) -> dict[str, Way]:
    ways: dict[str, Way] = {}
    for change in changes:
        for file in change.files:
            first = ways[file].before if file in ways else change.hash
            ways[file] = Way(before=first, after=change.after or change.hash)
    return ways


def steps(turns: Iterable[Turn]) -> dict[str, Way]:
    """The trees that the patches of a session refer to, by a name for each pair."""
    patches = (part for turn in turns for part in turn.parts if isinstance(part, PatchPart))
    return {name: way for patch in patches for name, way in ways_of(patch).items()}


def ways_of(patch: PatchPart) -> dict[str, Way]:
    """The trees that a patch refers to, of files and of the index, by a name for each pair."""
    index = {
        f"{patch.id}_index{number}": Way(before=each.hash, after=each.after)
        for number, each in enumerate(patch.staged)
    }
    return {patch.id: Way(before=patch.hash, after=patch.after or patch.hash), **index}


def between(turns: Sequence[Turn], *, here: Revert | None, there: Revert | None) -> dict[Path, Way]:
    """Each file's change from one point of a session to another; None is its end."""
    places = [_states(*split(turns, point)) for point in (here, there)]
    return {
        Path(path): Way(before=tree, after=places[1][path])
        for path, tree in places[0].items()
        if tree != places[1][path]
    }


def staged_between(
    turns: Sequence[Turn], *, here: Revert | None, there: Revert | None
) -> dict[str, StagedWay]:
    """The change of each path of git's index from one point of a session to another."""
    halves = [
        [[each for patch in half for each in patch.staged] for half in split(turns, point)]
        for point in (here, there)
    ]
    heads: dict[str, str] = {}
    for each in (*halves[0][0], *halves[0][1]):
        for file in each.files:
            heads.setdefault(file, each.head)
    places = [_states(*half) for half in halves]
    return {
        path: StagedWay(before=tree, after=places[1][path], head=heads[path])
        for path, tree in places[0].items()
        if tree != places[1][path]
    }


def _states(before: Iterable[_Change], behind: Iterable[_Change]) -> dict[str, str]:
    """For each path that the session has changed, a tree with its state at a point."""
    trees = {path: way.after for path, way in _total(before).items()}
    return trees | {path: way.before for path, way in _total(behind).items()}


def bounded(diffs: Sequence[FileDiff]) -> tuple[FileDiff, ...]:
    """The diffs, without their texts when these are too long for an event."""
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
