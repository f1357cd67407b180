"""What steps do to git's index, and the index put back as it was.

The index is read with each snapshot that finds it changed, and written only by a revert, by git
itself, under git's own lock.
"""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from pegboard.schema.part import Staged
from pegboard.storage import Left, StagedWay
from pegboard_files import name_of, stored_name
from pegboard_plugins.snapshots.git import GitError, ShadowGit
from pegboard_plugins.snapshots.objects import (
    SUBMODULE,
    Entry,
    MissingObjectError,
    Objects,
    StoredTrees,
    tree_of,
)


class _Step(NamedTuple):
    path: bytes
    expected: Entry | None
    wanted: Entry | None
    head: str


def staged(
    before: Mapping[bytes, Entry], after: Mapping[bytes, Entry], head: str, objects: Objects
) -> Staged | None:
    """What became of the index, None when nothing did; `head` is the commit before it."""
    paths = {path for path, _ in before.items() ^ after.items()}
    if not paths:
        return None
    was, now = (
        tree_of({path: index.get(path) for path in paths}, objects) for index in (before, after)
    )
    files = tuple(stored_name(os.fsdecode(path)) for path in sorted(paths))
    return Staged(hash=was, after=now, files=files, head=head)


def restage(git: ShadowGit, objects: Objects, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
    """Put paths of the index back from `before` to `after`; what was left as it is, with why.

    What somebody has staged since is left, and so is what was committed.

    :raises OSError: when git cannot be asked; nothing is changed then.
    """
    if not ways:
        return ()
    left, steps = _steps(git, ways, objects)
    now = git.listing(whole=True).indexed
    steps = [step for step in steps if now.get(step.path) != step.wanted]
    head = git.head()
    committed = git.tree_of(head, [step.path for step in steps if step.head != head])
    there = git.users_own([step.wanted.oid for step in steps if step.wanted is not None])
    todo = []
    for step in steps:
        if now.get(step.path) != step.expected:
            left.append(_left(git, step, "restaged"))
        elif step.head != head and committed.get(step.path) == step.expected:
            left.append(_left(git, step, "committed"))
        elif step.wanted and step.wanted.mode != SUBMODULE and step.wanted.oid not in there:
            left.append(_left(git, step, "unstaged"))
        else:
            todo.append(step)
    try:
        git.write_index({step.path: step.wanted for step in todo})
    except GitError:
        left += [_left(git, step, "locked") for step in todo]
    return tuple(left)


def _steps(
    git: ShadowGit, ways: Mapping[str, StagedWay], objects: Objects
) -> tuple[list[Left], list[_Step]]:
    left, steps = [], []
    trees = StoredTrees(objects)
    for path, way in ways.items():
        name = os.fsencode(name_of(path))
        try:
            before = trees.look_up(way.before, name)
            after = trees.look_up(way.after, name)
        except MissingObjectError:
            left.append(Left(path=git.worktree / name_of(path), reason="unstaged"))
            continue
        steps.append(_Step(name, before, after, way.head))
    return left, steps


def _left(
    git: ShadowGit, step: _Step, reason: Literal["restaged", "committed", "unstaged", "locked"]
) -> Left:
    return Left(path=git.worktree / os.fsdecode(step.path), reason=reason)
