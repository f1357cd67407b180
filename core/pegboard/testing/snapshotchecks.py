"""Checks that snapshots lose no file, and do not revert changes of other processes."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

from pegboard.files.filestates import States
from pegboard.snapshots import Restored, RestoreWay
from pegboard.testing.finding import Finding, Rule, broken, must

_SESSION = "ses_test"
_ODD_NAMES = ("with space.txt", "ünï.txt", "-rf", "new\nline.txt", "deep/er/file.txt")
_BINARY = bytes(range(256))


async def check_snapshots(
    open_snapshots: Callable[[Path], States], new_worktree: Callable[[], Path]
) -> tuple[Finding, ...]:
    """Return the faults found in a kind of snapshots, or () without faults.

    `new_worktree` returns another empty folder each time, for example a new git repository.
    `open_snapshots` opens the snapshots of such a folder, if necessary several times.
    """
    checks = (
        _tracks,
        _takes,
        _named_files,
        _others,
        _lineages,
        _diffs,
        _restores,
        _copies,
        _leaves,
        _unknown,
        _reopened,
        _collects,
    )

    def site() -> "AbstractAsyncContextManager[_Site]":
        return _open_site(open_snapshots, new_worktree())

    rules: dict[str, Rule] = {each.__name__.strip("_"): partial(each, site) for each in checks}
    return await broken("snapshots", rules)


class _Site:
    """A worktree with files of many kinds, and the snapshots of this worktree."""

    def __init__(self, opened: Callable[[Path], States], root: Path) -> None:
        self.open, self.root = opened, root
        self.text, self.program, self.link = root / "a.txt", root / "run.sh", root / "link"
        self.text.write_bytes(b"one\r\ntwo")
        (root / "binary").write_bytes(_BINARY)
        self.program.write_text("#!/bin/sh\n")
        self.program.chmod(0o755)
        self.link.symlink_to("a.txt")
        for name in _ODD_NAMES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"this is {name}")
        self.snapshots = opened(root)

    async def track(self) -> str:
        """Take a snapshot and return the id of the file state."""
        found = await self.snapshots.track(fresh=True)
        must(found, f"there is no state: {self.snapshots.refused or 'without a reason'}")
        assert found
        return found

    @contextmanager
    def writing(self, session: str = _SESSION) -> Iterator[None]:
        """Run the block as a tool call that may write any file in the worktree."""
        with self.snapshots.writing((session,), tells=False):
            yield

    async def undone(self, way: RestoreWay, *paths: Path) -> Restored:
        """Revert the change `way` of these files, and return the outcome of the restore."""
        back = RestoreWay(before=way.after, after=way.before)
        return await self.snapshots.restore(dict.fromkeys(paths, back))


_Sites = Callable[[], AbstractAsyncContextManager[_Site]]


@asynccontextmanager
async def _open_site(opened: Callable[[Path], States], root: Path) -> AsyncIterator[_Site]:
    site = _Site(opened, root)
    try:
        yield site
    finally:
        await site.snapshots.aclose()


async def _tracks(sites: _Sites) -> None:
    async with sites() as site:
        first = await site.track()
        must(await site.snapshots.track() == first, "the state is another though nothing changed")
        with site.writing():
            site.text.write_text("changed")
        must(await site.snapshots.track() != first, "a change makes no other state")


async def _takes(sites: _Sites) -> None:
    async with sites() as site:
        await site.track()
        with site.writing():
            site.text.write_text("changed")
            (site.root / "new.txt").write_text("new")
            (site.root / "binary").unlink()
        await site.snapshots.track()
        must(site.snapshots.claimed(_SESSION), "nothing is there to take after a change")
        taken = sorted(path.name for path in site.snapshots.take(_SESSION))
        must(taken == ["a.txt", "binary", "new.txt"], f"the session has changed {taken}")
        must(not site.snapshots.take(_SESSION), "a change is reported twice")


async def _named_files(sites: _Sites) -> None:
    """Check that the files that a tool call reports are recorded as changes of the call."""
    async with sites() as site:
        await site.track()
        with site.snapshots.writing((_SESSION,), tells=True) as writing:
            writing.intend(site.text)
            site.text.write_text("new")
            writing.tell(site.text)
        await site.snapshots.track()
        must(site.snapshots.take(_SESSION) == (site.text,), "a file that was reported is not taken")


async def _others(sites: _Sites) -> None:
    """Check that changes by the user or another session do not count as this session's."""
    async with sites() as site:
        await site.track()
        (site.root / "user.txt").write_text("mine")
        await site.track()
        with site.writing("ses_other"):
            site.text.write_text("theirs")
        await site.snapshots.track()
        taken = site.snapshots.take(_SESSION)
        must(not taken, f"the session has changed what others did: {[each.name for each in taken]}")


async def _lineages(sites: _Sites) -> None:
    """Check that the file changes of a subagent count also as changes of its caller."""
    async with sites() as site:
        site.snapshots.lineage(_SESSION, None)
        owners = site.snapshots.lineage("ses_child", _SESSION)
        must(owners == ("ses_child", _SESSION), f"the lineage of a subagent is {owners}")
        await site.track()
        with site.snapshots.writing(owners, tells=False):
            site.text.write_text("by a child")
        await site.snapshots.track()
        for session in owners:
            must(site.snapshots.take(session) == (site.text,), f"{session} has not changed it")


async def _diffs(sites: _Sites) -> None:
    async with sites() as site:
        before = await site.track()
        new, gone = site.root / "new.txt", site.root / "with space.txt"
        with site.writing():
            site.text.write_bytes(b"one\r\nTWO")
            new.write_text("a\nb\n")
            gone.unlink()
        way = RestoreWay(before=before, after=await site.track())
        same = site.root / "binary"
        found = await site.snapshots.diff(dict.fromkeys((site.text, new, gone, same), way))
        kinds = {Path(each.file).name: (each.status, each.additions) for each in found}
        wanted = {
            "a.txt": ("modified", 1),
            "new.txt": ("added", 2),
            "with space.txt": ("deleted", 0),
        }
        must(kinds == wanted, f"what became of files is {kinds}, not {wanted}")


async def _restores(sites: _Sites) -> None:
    """Check that every kind of file is restored byte for byte, and new files are removed."""
    async with sites() as site:
        paths = [site.text, site.program, site.link, site.root / "binary", site.root / "new.txt"]
        paths += [site.root / name for name in _ODD_NAMES]
        before, as_it_was = await site.track(), _facts_of(paths)
        with site.writing():
            for path in paths:
                path.unlink(missing_ok=True)
            site.text.write_text("changed")
            site.program.write_text("#!/bin/sh\n")
            site.link.symlink_to("binary")
            (site.root / "new.txt").write_text("new")
        restored = await site.undone(RestoreWay(before=before, after=await site.track()), *paths)
        must(not restored.left, f"left alone: {[str(each.path) for each in restored.left]}")
        found = _facts_of(paths)
        other = [name for name in found if found[name] != as_it_was[name]]
        must(not other, f"not as it was: {other}")


async def _copies(sites: _Sites) -> None:
    """Check that `copy_out` writes every kind of file elsewhere, and leaves the worktree as is."""
    async with sites() as site:
        paths = [site.text, site.program, site.link, site.root / "binary", site.root / "new.txt"]
        before, as_it_was = await site.track(), _facts_of(paths)
        with site.writing():
            for path in paths:
                path.unlink(missing_ok=True)
                path.write_text("changed")
        await site.track()
        now = _facts_of(paths)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "copy")
            shutil.copytree(site.root, folder, symlinks=True, ignore=lambda *_: {".git"})
            lost = await site.snapshots.copy_out(dict.fromkeys(paths, before), folder)
            must(not lost, f"lost: {[str(each) for each in lost]}")
            found = _facts_of([folder / path.relative_to(site.root) for path in paths])
        other = [name for name in found if found[name] != as_it_was[name]]
        must(not other, f"not as it was in the copy: {other}")
        must(_facts_of(paths) == now, "the worktree is changed, too")


async def _leaves(sites: _Sites) -> None:
    """Check that files which changed after the session's change are left alone and named."""
    async with sites() as site:
        before = await site.track()
        with site.writing():
            site.text.write_text("by the session")
        after = await site.track()
        site.text.write_text("by the user")
        restored = await site.undone(RestoreWay(before=before, after=after), site.text)
        must(site.text.read_text() == "by the user", "what the user wrote is overwritten")
        named = [(each.path, each.reason) for each in restored.left]
        must(named == [(site.text, "changed")], f"what was left is named as {named}")


async def _unknown(sites: _Sites) -> None:
    """Check that restoring an unknown state changes no file."""
    async with sites() as site:
        after = await site.track()
        gone = RestoreWay(before="0" * 40, after=after)
        restored = await site.undone(gone, site.text)
        must(site.text.read_bytes() == b"one\r\ntwo", "a file is lost with its state")
        must(restored.left, "a file that could not be put back is not named")


async def _reopened(sites: _Sites) -> None:
    """Check that the next process can restore stored states."""
    async with sites() as site:
        before = await site.track()
        with site.writing():
            site.text.write_text("changed")
        way = RestoreWay(before=before, after=await site.track())
        await site.snapshots.keep(_SESSION, "msg_1", way)
        await site.snapshots.aclose()
        site.snapshots = site.open(site.root)
        await site.track()
        await site.undone(way, site.text)
        must(site.text.read_bytes() == b"one\r\ntwo", "a stored state is gone after a restart")


async def _collects(sites: _Sites) -> None:
    """Check that the removal of unused file states keeps the states that are in use."""
    async with sites() as site:
        before = await site.track()
        with site.writing():
            site.text.write_text("changed")
        way = RestoreWay(before=before, after=await site.track())
        await site.snapshots.keep(_SESSION, "msg_1", way)
        freed = await site.snapshots.collect({site.root})
        must(freed >= 0, f"{freed} bytes were freed")
        await site.undone(way, site.text)
        must(site.text.read_bytes() == b"one\r\ntwo", "a collection has taken a state in use")
        await site.snapshots.forget(_SESSION)


def _facts_of(paths: list[Path]) -> dict[str, object]:
    """Return the content and the mode of each file, by file name."""
    return {path.name: _facts(path) for path in paths}


def _facts(path: Path) -> object:
    if path.is_symlink():
        return path.readlink()
    return (path.read_bytes(), path.stat().st_mode & 0o100) if path.exists() else None
