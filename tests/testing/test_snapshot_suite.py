"""The suite for snapshots: git's pass it, and each planted fault is found."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard.snapshots import Restored, RestoreWay
from pegboard.testing import check_snapshots
from pegboard.unstable import States
from pegboard.workspace import open_workspace
from pegboard_plugins.snapshots.worktree import GitSnapshots
from support.tools.worktrees import git


def worktrees(folder: Path) -> Callable[[], Path]:
    numbers = count()

    def new() -> Path:
        root = folder / str(next(numbers))
        root.mkdir()
        git(root, "init", "-q")
        return root

    return new


def opened(root: Path) -> GitSnapshots:
    env = {"PATH": os.environ["PATH"], "HOME": str(root.parent / "home")}
    return GitSnapshots(open_workspace(root), folder=root.parent / "data", env=env)


async def test_the_snapshots_of_git_keep_their_promises(tmp_path: Path) -> None:
    assert await check_snapshots(opened, worktrees(tmp_path)) == ()


class Faulty:
    """Git's snapshots with a fault; all that is not written here is git's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.real: States = opened(root)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Overwriting(Faulty):
    """What the user has changed since is overwritten."""

    async def restore(self, ways: Mapping[Path, RestoreWay]) -> Restored:
        now = await self.real.track(fresh=True)
        assert now
        return await self.real.restore({path: replace(w, before=now) for path, w in ways.items()})


class Silent(Faulty):
    async def restore(self, ways: Mapping[Path, RestoreWay]) -> Restored:
        return replace(await self.real.restore(ways), left=())


class Lazy(Faulty):
    async def restore(self, ways: Mapping[Path, RestoreWay]) -> Restored:
        return Restored(changed=tuple(ways))


class Plain(Faulty):
    """Modes of files are not kept."""

    async def restore(self, ways: Mapping[Path, RestoreWay]) -> Restored:
        found = await self.real.restore(ways)
        for path in ways:
            if path.is_file() and not path.is_symlink():
                path.chmod(0o644)
        return found


class Misplacing(Faulty):
    """The worktree itself is written to."""

    async def copy_out(self, states: Mapping[Path, str], folder: Path) -> tuple[Path, ...]:
        (self.root / "a.txt").write_text("other")
        return await self.real.copy_out(states, folder)


class Idle(Faulty):
    async def copy_out(self, states: Mapping[Path, str], folder: Path) -> tuple[Path, ...]:
        return ()


class Greedy(Faulty):
    """Every change is everybody's."""

    def take(self, session_id: str) -> tuple[Path, ...]:
        return (self.root / "a.txt", *self.real.take(session_id))


class Forgetful(Faulty):
    def take(self, session_id: str) -> tuple[Path, ...]:
        return self.real.take(session_id)[:1]


class Childless(Faulty):
    def lineage(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        return (session_id,)


class Stale(Faulty):
    """The first state is the state for ever."""

    first: str | None = None

    async def track(self, *, fresh: bool = False) -> str | None:
        self.first = self.first or await self.real.track(fresh=fresh)
        return self.first


class Restless(Faulty):
    """Each look is another state."""

    async def track(self, *, fresh: bool = False) -> str | None:
        return f"{await self.real.track(fresh=fresh)}-{os.urandom(4).hex()}"


class Flat(Faulty):
    async def diff(self, ways: Mapping[Path, RestoreWay]) -> tuple[Any, ...]:
        return tuple(replace(each, status="modified") for each in await self.real.diff(ways))


class Refusing(Faulty):
    refused = "too many files"

    async def track(self, *, fresh: bool = False) -> str | None:
        return None


class Collecting(Faulty):
    async def collect(self, directories: Collection[Path]) -> int:
        (self.root / "a.txt").write_text("gone")
        return 1


FAULTS: Iterable[tuple[type[Faulty], str, str]] = [
    (Overwriting, "leaves", "what the user wrote is overwritten"),
    (Silent, "leaves", "what was left is named as []"),
    (Lazy, "restores", "not as it was"),
    (Plain, "restores", "not as it was: ['run.sh']"),
    (Misplacing, "copies", "the worktree is changed, too"),
    (Idle, "copies", "not as it was in the copy"),
    (Greedy, "others", "the session has changed what others did"),
    (Forgetful, "takes", "the session has changed ['a.txt']"),
    (Childless, "lineages", "the lineage of a subagent"),
    (Stale, "tracks", "a change makes no other state"),
    (Restless, "tracks", "the state is another though nothing changed"),
    (Flat, "diffs", "what became of files"),
    (Refusing, "tracks", "there is no state: too many files"),
    (Collecting, "collects", "a collection has taken a state in use"),
]


@pytest.mark.parametrize(("fault", "rule", "text"), FAULTS, ids=[f[0].__name__ for f in FAULTS])
async def test_a_fault_of_snapshots_is_found(
    fault: type[Faulty], rule: str, text: str, tmp_path: Path
) -> None:
    findings = await check_snapshots(fault, worktrees(tmp_path))  # type: ignore[arg-type]

    assert [text in each.text for each in findings if each.rule == rule] == [True], findings
