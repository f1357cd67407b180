"""Programs of this machine, found in folders that no project can write to."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from pegboard.paths import resolved_path

_MOST_LINKS = 40
"""As many links in a row as Linux follows."""
_MOST_WORKTREES = 100
_LONGEST_PATH_BYTES = 4096
_VARIABLES = ("DYLD_LIBRARY_PATH", "HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "USER")
"""All that a trial gets: a list of what to leave out could miss a key with an odd name."""


def search_path(env: Mapping[str, str], *, root: Path) -> str:
    """Return the PATH without relative or empty entries and without entries in the project.

    Other worktrees of the repository of `root` also count as the project.
    """
    roots = worktrees(root)
    kept = (entry for entry in path_entries(env) if not lies_in(entry, roots))
    return os.pathsep.join(kept) or os.defpath


def find_program(name: str, env: Mapping[str, str], *more: str, root: Path) -> str | None:
    """Return the path of a program on the user's PATH, or in the folders `more`, or None.

    A program in the project `root`, or a link to one, is skipped. Links in an entry of the PATH are
    resolved only if the entry has such a program, because this runs for each command.
    """
    entries, roots = path_entries(env), worktrees(root)
    found = _outside(name, (*entries, *more), roots)
    if found is None and all(lies_in(entry, roots) for entry in entries):
        return _outside(name, os.defpath.split(os.pathsep), roots)
    return found


def try_program(
    argv: Sequence[str], *, timeout_s: float, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program in the locale `C` for a short time, and return its output.

    The program gets no input and no secrets. Its process group is killed when it ends or after
    `timeout_s`.

    :raises OSError: when it cannot be started.
    :raises subprocess.TimeoutExpired: after `timeout_s`.
    """
    env = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=env | {"LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as program:
        try:
            output, errors = program.communicate(timeout=timeout_s)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(program.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(argv, program.returncode, output, errors)


def path_entries(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders of the PATH that are absolute paths."""
    return tuple(filter(os.path.isabs, env.get("PATH", os.defpath).split(os.pathsep)))


def executables(name: str, folders: Sequence[str]) -> Iterator[str]:
    """Yield the paths of the programs with this name in the folders."""
    for folder in folders:
        path = os.path.join(folder, name)  # noqa: PTH118 - compared as text
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - likewise
            yield path


def _outside(name: str, folders: Sequence[str], roots: Sequence[str]) -> str | None:
    """Return the first program that, with links resolved, lies outside of the roots."""
    for path in executables(name, folders):
        if not lies_in(os.path.dirname(path), roots) and not lies_in(path, roots):  # noqa: PTH120 - may be no path
            return path
    return None


def lies_in(path: str, roots: Sequence[str]) -> bool:
    """Return whether the path lies in one of the folders `roots`, directly or through links.

    If the first root is "/", return False, since every path would lie in it.
    """
    if roots[0] == "/":
        return False
    for _ in range(_MOST_LINKS):
        written = os.path.normpath(path)
        folder, name = os.path.split(written)
        path = os.path.join(resolved_path(folder), name)  # noqa: PTH118 - may be no path
        # As `Path.is_relative_to`, in a twentieth of the time.
        if any(f"{each}/".startswith(f"{top}/") for top in roots for each in (written, path)):
            return True
        if not os.path.islink(path):  # noqa: PTH114 - likewise
            return False
        path = os.path.join(os.path.dirname(path), os.readlink(path))  # noqa: PTH115, PTH118, PTH120
    return True


def worktrees(root: Path) -> tuple[str, ...]:
    """Return the folder and the other worktrees of its git repository, read from git's files."""
    shared = own = f"{root}/.git"
    if not os.path.lexists(own):
        return (str(root),)
    if pointed := _pointed_to(own, "gitdir:"):
        own = pointed
        shared = _pointed_to(f"{own}/commondir") or own
    found = [os.path.dirname(shared)]  # noqa: PTH120 - texts
    with suppress(OSError), os.scandir(f"{shared}/worktrees") as entries:
        named = (_pointed_to(f"{entry.path}/gitdir") for entry in islice(entries, _MOST_WORKTREES))
        found += [os.path.dirname(each) for each in named if each]  # noqa: PTH120 - likewise
    there = (each for each in found if os.path.lexists(f"{each}/.git"))
    return tuple(dict.fromkeys((str(root), *there)))


def _pointed_to(file: str, mark: str = "") -> str:
    """Return the path that follows the word `mark` in one of git's files, or "" without a path."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        text = os.fsdecode(os.read(handle, _LONGEST_PATH_BYTES)).strip()
    except OSError:
        return ""  # a folder, where the repository is its own
    finally:
        os.close(handle)
    path = text.removeprefix(mark).strip() if text.startswith(mark) else ""
    return resolved_path(os.path.join(os.path.dirname(file), path)) if path else ""  # noqa: PTH118, PTH120
