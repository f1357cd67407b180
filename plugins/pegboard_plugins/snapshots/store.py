"""The storage of snapshots: references that protect snapshots, a quota, and deletion."""

import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pegboard_plugins.snapshots.objects import FOLDER, Objects, TreeEntry, tree_entries

COLLECT_EVERY_S = 24 * 3600.0
KEPT_S = 30 * 24 * 3600.0
"""How long a change can be undone."""
ORPHANS_KEPT_S = 7 * 24 * 3600.0
"""How long the snapshots of a directory stay after its last session is gone."""
QUOTA_BYTES = 1 << 30
"""The objects of one worktree are cut to this by dropping the oldest references."""
REPLACED = "replaced"
"""The references of copies that reverts have made, which stand where those of a session do."""
_YOUNG_S = 3600.0
"""Objects younger than this may be about to get a reference, from any process."""
_TREE = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NAME = re.compile(r"[0-9A-Za-z_-]{1,80}")


class Store:
    """The Git references and objects of a shadow repository; its methods block."""

    def __init__(self, folder: Path, objects: Objects) -> None:
        self._folder = folder
        self._refs = folder / "refs" / "pegboard"
        self._objects = objects

    def keep(self, session_id: str, step: str, *, before: str, after: str) -> None:
        """Protect two trees with their content, until the session is forgotten or gets too old."""
        assert _NAME.fullmatch(session_id)
        assert _NAME.fullmatch(step)
        folder = self._refs / session_id
        folder.mkdir(parents=True, exist_ok=True)
        for name, tree in (("before", before), ("after", after)):
            temporary = folder / f".{step}.{os.urandom(6).hex()}"
            temporary.write_text(f"{tree}\n")
            temporary.replace(folder / f"{step}-{name}")

    def keep_copies(self, session_id: str, steps: Mapping[str, tuple[str, str]]) -> None:
        """Protect the trees before and after each step; skip values that are not tree ids."""
        for step, (before, after) in steps.items():
            if _TREE.fullmatch(before) and _TREE.fullmatch(after):
                self.keep(session_id, step, before=before, after=after)

    def forget(self, session_id: str) -> None:
        """Drop the references of a session."""
        for place in tuple((self._refs / session_id).glob("*")):
            place.unlink(missing_ok=True)
        with suppress(OSError):
            (self._refs / session_id).rmdir()

    def size_bytes(self) -> int:
        """Return the total size of all objects in bytes."""
        return sum(facts.st_size for _, facts in self._objects.all())

    def collect(self, *, kept_s: float = KEPT_S, quota_bytes: int = QUOTA_BYTES) -> int:
        """Delete old references and unreferenced objects; return the number of freed bytes.

        Nothing happens while another process does the same.
        """
        with self._alone() as alone:
            if not alone:
                return 0
            self._drop_older(time.time() - kept_s)
            freed = self._sweep()
            steps = self._steps()
            while steps and self.size_bytes() > quota_bytes:
                oldest, steps = steps[: len(steps) // 3 + 1], steps[len(steps) // 3 + 1 :]
                for place in (place for step in oldest for place in step):
                    place.unlink(missing_ok=True)
                freed += self._sweep()
            return freed

    def is_due(self) -> bool:
        """Return whether old snapshots should be deleted now; if so, record the time."""
        stamp = self._folder / "collected"
        try:
            due = time.time() - stamp.stat().st_mtime > COLLECT_EVERY_S
        except FileNotFoundError:
            stamp.touch()
            return False
        if due:
            stamp.touch()
        return due

    def _steps(self) -> list[list[Path]]:
        """Return a list of references for each step, the oldest steps first."""
        steps: dict[str, list[Path]] = {}
        for place in sorted(self._all_refs(), key=lambda place: place.stat().st_mtime):
            step = place.name.rpartition("-")[0]  # of `<step>-before` or `<step>-after`
            steps.setdefault(f"{place.parent.name}/{step}", []).append(place)
        return list(steps.values())

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "gc.lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _all_refs(self) -> list[Path]:
        return [place for place in self._refs.glob("*/*") if not place.name.startswith(".")]

    def _drop_older(self, limit: float) -> None:
        for place in self._all_refs():
            if place.stat().st_mtime < limit:
                place.unlink(missing_ok=True)

    def _sweep(self) -> int:
        wanted = self._reachable()
        old = time.time() - _YOUNG_S
        freed = self._objects.sweep(old)
        for oid, facts in tuple(self._objects.all()):
            if oid not in wanted and facts.st_mtime < old:
                self._objects.drop(oid)
                freed += facts.st_size
        return freed

    def _reachable(self) -> set[bytes]:
        found: set[bytes] = set()
        waiting = [TreeEntry(FOLDER, place.read_bytes().strip()) for place in self._all_refs()]
        while waiting:
            entry = waiting.pop()
            if entry.oid in found:
                continue
            found.add(entry.oid)
            content = self._objects.get(entry.oid) if entry.mode == FOLDER else None
            if content is not None:
                waiting.extend(tree_entries(content, self._objects.algorithm).values())
        return found


def place_of(worktree: Path, folder: Path) -> Path:
    """Return the folder with the snapshots of a worktree."""
    return folder / hashlib.sha1(bytes(worktree), usedforsecurity=False).hexdigest()


def drop_orphans(folder: Path, directories: Iterable[Path]) -> int:
    """Delete old snapshots of directories that no session uses; return the freed bytes."""
    used = {place_of(place, folder) for each in directories for place in (each, *each.parents)}
    freed = 0
    for path in folder.iterdir():
        old = path.lstat().st_mtime < time.time() - ORPHANS_KEPT_S
        if path not in used and old and path.is_dir():
            freed += sum(each.lstat().st_size for each in path.rglob("*") if each.is_file())
            shutil.rmtree(path)
    return freed
