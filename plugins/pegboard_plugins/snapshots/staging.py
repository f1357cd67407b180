"""The changes that a session's steps make to git's index, and how they are reverted.

A snapshot reads the index if it has changed. Only a revert writes it: git itself does, under its
own lock.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pegboard.schema.part import Staged
from pegboard.snapshots import Left, StagedWay
from pegboard.unstable import name_of, stored_name
from pegboard_plugins.snapshots.git import (
    GitError,
    Listing,
    ShadowGit,
)
from pegboard_plugins.snapshots.objects import (
    SUBMODULE,
    MissingObjectError,
    Objects,
    StoredTrees,
    TreeEntry,
    path_and_stage,
    stage_name,
    tree_of,
)

_Reason = Literal["restaged", "committed", "unstaged", "locked"]


class _StagedStep(NamedTuple):
    name: bytes
    path: bytes
    expected: TreeEntry | None
    wanted: TreeEntry | None
    head: str


def staged(before: Listing, after: Listing, head: str, objects: Objects) -> Staged | None:
    """Return the changes of git's index, or None without any; `head` is the commit before them."""
    paths = {path for path, _ in before.indexed.items() ^ after.indexed.items()}
    names = {stage_name(path) for path in paths}
    names |= {name for name, _ in before.unmerged.items() ^ after.unmerged.items()}
    if not names:
        return None
    was, now = (
        tree_of({name: _entry(index, name) for name in names}, objects) for index in (before, after)
    )
    files = tuple(stored_name(os.fsdecode(name)) for name in sorted(names))
    return Staged(hash=was, after=now, files=files, head=head)


def restage(git: ShadowGit, objects: Objects, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
    """Restore paths of the index from `before` to `after`.

    Return the paths that were not restored, with reasons. A path that was staged or committed again
    in the meantime is not restored. Of a path in a merge conflict, all versions are restored
    together, or none.

    :raises OSError: when git fails; the index is then unchanged.
    """
    if not ways:
        return ()
    lost, steps = _steps(ways, objects)
    index = git.listing(whole=True)
    different = {step.path for step in steps if _entry(index, step.name) != step.wanted}
    steps = [step for step in steps if step.path in different]
    reasons: dict[bytes, _Reason] = dict.fromkeys(lost, "unstaged")
    for path, reason in _obstacles(git, steps, index).items():
        reasons.setdefault(path, reason)
    todo = {step.name: step.wanted for step in steps if step.path not in reasons}
    try:
        git.write_index(todo)
    except GitError:
        reasons |= dict.fromkeys((path_and_stage(name)[0] for name in todo), "locked")
    places = ((git.worktree / os.fsdecode(path), reason) for path, reason in reasons.items())
    return tuple(Left(path=path, reason=reason) for path, reason in places)


def _obstacles(
    git: ShadowGit, steps: Sequence[_StagedStep], index: Listing
) -> dict[bytes, _Reason]:
    """Return the paths that must not be restored, each with the reason."""
    head = git.head()
    committed = git.tree_of(head, [step.path for step in steps if step.head != head])
    there = git.users_own([step.wanted.oid for step in steps if step.wanted is not None])
    resolved = {step.name: step.expected for step in steps}
    names = {step.name for step in steps}
    reasons: dict[bytes, _Reason] = {}
    for name in index.unmerged.keys() - names:
        reasons[path_and_stage(name)[0]] = "restaged"
    for step in steps:
        if _entry(index, step.name) not in (step.expected, step.wanted):
            reasons[step.path] = "restaged"
        elif step.head != head and committed.get(step.path) == resolved.get(stage_name(step.path)):
            reasons.setdefault(step.path, "committed")
        elif step.wanted and step.wanted.mode != SUBMODULE and step.wanted.oid not in there:
            reasons.setdefault(step.path, "unstaged")
    return {path: reasons[path] for path in {step.path for step in steps} & reasons.keys()}


def _entry(index: Listing, name: bytes) -> TreeEntry | None:
    path, stage = path_and_stage(name)
    return index.indexed.get(path) if stage == b"0" else index.unmerged.get(name)


def _steps(
    ways: Mapping[str, StagedWay], objects: Objects
) -> tuple[list[bytes], list[_StagedStep]]:
    """Return the paths with a state that is no longer stored, and changes for all other paths."""
    lost, steps = [], []
    trees = StoredTrees(objects)
    for stored, way in ways.items():
        name = os.fsencode(name_of(stored))
        path, _ = path_and_stage(name)
        try:
            before, after = trees.look_up(way.before, name), trees.look_up(way.after, name)
        except MissingObjectError:
            lost.append(path)
            continue
        steps.append(_StagedStep(name, path, before, after, way.head))
    return lost, steps
