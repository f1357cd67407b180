"""The bundles of a project, which are active once the user trusts all of their files."""

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from pegboard.app import UserFolders
from pegboard.unstable import read_bounded
from pegboard_plugins.shared import BUNDLE_PLACES
from pegboard_plugins.shared.frontend.bundlemanifest import Bundle, BundleError, read_bundle

MOST_BUNDLES = 50
MOST_FILES = 500
MOST_BYTES = 8 << 20
"""The maximum size of one bundle, because its files are read whenever the project is opened."""
_Stamp = tuple[int, int, int, int]


class ProjectBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of a project that may be a bundle.

    `files` are all its files, with symlinks resolved. `problem` says why it is unusable, or is "".
    """

    folder: Path
    place: str
    files: tuple[Path, ...] = ()
    problem: str = ""

    def is_trusted(self, trusted: Mapping[Path, bytes]) -> bool:
        """Return whether the user trusts exactly the files that the folder now has."""
        if self.problem or not self.files:
            return False
        inside = self.folder.resolve()
        known = {path for path in trusted if path.is_relative_to(inside)}
        return known <= set(self.files) and all(
            path in trusted and _digest_now(path) == _digest(trusted[path]) for path in self.files
        )

    def read(self, places: UserFolders, worktree: Path) -> Bundle:
        """Parse the bundle; none of its code runs.

        :raises BundleError: when the folder is not a usable bundle.
        """
        if self.problem:
            raise BundleError(self.problem)
        owner = hashlib.sha256(str(worktree.resolve()).encode()).hexdigest()[:16]
        storage = places.data / "bundle-data" / ".projects" / owner
        bundle = read_bundle(self.folder, storage / self.folder.name)
        # Bytecode next to a script would be a change of the bundle.
        clean = {"PYTHONDONTWRITEBYTECODE": "1"}
        servers = {
            name: {**each, "environment": {**each["environment"], **clean}}
            if "environment" in each
            else each
            for name, each in bundle.servers.items()
        }
        return msgspec.structs.replace(bundle, servers=servers)


def project_bundles(worktree: Path) -> Iterator[ProjectBundle]:
    """Yield the subfolders of the project's bundle folders, sorted by path; blocks."""
    root = worktree.resolve()
    found = (path for name in BUNDLE_PLACES for path in _folders(worktree / name))
    for folder in islice(found, MOST_BUNDLES):
        place = folder.relative_to(worktree).as_posix()
        files, problem = _files(folder, root)
        yield ProjectBundle(
            folder=folder, place=place, files=files, problem=problem and f"{place} {problem}"
        )


def active_bundles(
    places: UserFolders, worktree: Path, trusted: Mapping[Path, bytes], *, taken: set[str]
) -> tuple[list[Bundle], list[str]]:
    """Return a project's trusted bundles, and a line for each bundle that is not loaded; blocks.

    A bundle with a name in `taken` is not loaded. The names of loaded bundles are added to `taken`.
    """
    active: list[Bundle] = []
    problems = []
    for each in project_bundles(worktree):
        try:
            bundle = each.read(places, worktree)
        except BundleError as error:
            problems.append(f"a bundle of this project does not act: {error}")
            continue
        if bundle.name in taken:
            problems.append(f"{each.place} does not act: another bundle is {bundle.name}")
        elif each.is_trusted(trusted):
            taken.add(bundle.name)
            active.append(bundle)
        else:
            command = f"pegboard plugins bundle trust {shlex.quote(each.place)}"
            problems.append(
                f"the bundle {each.place} of this project is not trusted as it is;"
                f" `{command}` shows and trusts it"
            )
    return active, problems


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(path for path in place.iterdir() if path.is_dir())
    except OSError:
        return []


def _files(folder: Path, root: Path) -> tuple[tuple[Path, ...], str]:
    """Return all files of a folder, and why the folder cannot be a bundle, or "" if it can."""
    if not folder.resolve().is_relative_to(root):
        return (), "is a link that leads out of the project; copy the folder"
    found = list(islice((path for path in folder.rglob("*") if path.is_file()), MOST_FILES + 1))
    try:
        size = sum(path.stat().st_size for path in found)
    except OSError as error:
        return (), f"cannot be read: {error}"
    if len(found) > MOST_FILES or size > MOST_BYTES:
        return (), f"has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB; leave some out"
    return tuple(sorted({path.resolve() for path in found})), ""


def _digest_now(path: Path) -> str:
    try:
        facts = path.stat()
    except OSError:
        return ""
    return _read_digest(path, (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns))


@lru_cache(maxsize=4 * MOST_FILES)
def _read_digest(path: Path, stamp: _Stamp) -> str:  # noqa: ARG001 - the key
    content, why = read_bounded(path)
    return "" if why else _digest(content)


@lru_cache(maxsize=4 * MOST_FILES)
def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
