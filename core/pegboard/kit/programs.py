"""Programs that we run: found where no project can stand in for them, and started without keys."""

import hashlib
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from pegboard.kit.openat import resolved_path

_OWN_PROGRAMS = ("node_modules/.bin", ".venv/bin")
"""Where a project installs programs for itself."""
_MOST_LINKS = 40
"""As many links in a row as Linux follows."""
_MOST_INTERPRETERS = 4
"""As many scripts in a row as Linux takes for the interpreter of another (`binfmt_script`)."""
_FIRST_LINE_BYTES = 256
_MOST_WORKTREES = 100
_LONGEST_PATH_BYTES = 4096
_SECRET_NAMES = (
    *("*_API_KEY", "*_APIKEY", "*_ACCESS_KEY", "*_ACCESS_KEY_ID", "*_PRIVATE_KEY", "*_TOKEN"),
    *("*TOKEN_*", "*SECRET*", "*PASSWORD*", "*_CREDENTIALS", "PEGBOARD_*", "OPENCODE_*"),
)
_QUIET = {
    "AGENT": "pegboard",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
}


class FoundProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program's path, None where none may be run.

    `refused` says why one of the project is passed over, and what allows it; empty if none is.
    """

    path: str | None = None
    refused: str = ""


def search_path(env: Mapping[str, str], *, root: Path) -> str:
    """The PATH without entries that are relative, empty ones too, or lie in the project `root`.

    The other worktrees of its repository count as the project, here and below.
    """
    roots = worktrees(root)
    kept = (entry for entry in _absolute_entries(env) if not _inside(entry, roots))
    return os.pathsep.join(kept) or os.defpath


def find_program(name: str, env: Mapping[str, str], *more: str, root: Path) -> str | None:
    """The program of this name on the user's PATH, or in one of `more` folders behind it.

    What lies in the project `root`, or is a link to there, does not count. An entry of the PATH
    is followed only where it has such a program: this is asked for each command that is run.
    """
    entries, roots = _absolute_entries(env), worktrees(root)
    found = _outside(name, (*entries, *more), roots)
    if found is None and all(_inside(entry, roots) for entry in entries):
        return _outside(name, os.defpath.split(os.pathsep), roots)
    return found


class ProgramSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Where the programs for a project are: `trusted_by_user` when the user has said yes to it.

    One that lies in the project counts only if `allowed` has its digest, by its path from the
    `root`. `env` has the PATH, and `directory` is where the programs are started.
    """

    root: Path
    directory: Path
    trusted_by_user: bool
    env: Mapping[str, str]
    allowed: Mapping[str, str] = {}

    def find(self, command: Sequence[str], *, near: Path | None = None) -> FoundProgram:
        """The program of a command line, of the packages around the file `near` first, if given.

        A name with a slash is a path. The files of the project among the other words have to be
        trusted as well: they may be what is run. Reads a few names and files; blocks.
        """
        refused = ""
        for path in self._candidates(command[0], near):
            reason = self._refusal((path, *self._files(command[1:])))
            if not reason:
                return FoundProgram(path=path, refused=refused)
            refused = refused or reason
        return FoundProgram(refused=refused)

    def digests(self, program: str) -> dict[str, str]:
        """The digests of what of the project runs with this program: itself, its interpreters.

        Empty for one that has nothing to do with the project.

        :raises OSError: when it cannot be read.
        """
        found: dict[str, str] = {}
        roots = worktrees(self.root)
        for path in islice(self._interpreters(program), _MOST_INTERPRETERS):
            if _inside(path, roots):
                found[_name(path, self.root)] = _digest_of(path, self.root)
        return found

    def _candidates(self, name: str, near: Path | None) -> Iterator[str]:
        if "/" in name:
            path = str(self.directory / name)
            yield from [path] if os.access(path, os.X_OK) else []
            return
        folders = near.parents if near is not None and self.trusted_by_user else ()
        own = (
            str(folder / place)
            for folder in folders
            if folder.is_relative_to(self.root)
            for place in _OWN_PROGRAMS
        )
        yield from _executables(name, (*own, *_absolute_entries(self.env)))

    def _files(self, words: Sequence[str]) -> Iterator[str]:
        """The words, and the values of options, that name a file of the project."""
        roots = worktrees(self.root)
        for word in words:
            path = str(self.directory / word.rpartition("=")[2])
            if _inside(path, roots) and os.path.isfile(path):  # noqa: PTH113 - may be no path
                yield path

    def _refusal(self, paths: Sequence[str]) -> str:
        """Why the first of these that is not trusted may not run; empty if all are."""
        for path in paths:
            try:
                digests = self.digests(path)
            except OSError as error:
                return f"{path} cannot be read: {error.strerror}"
            for name, digest in digests.items():
                if self.allowed.get(name) != digest:
                    why = "has changed since it was trusted"
                    if name not in self.allowed:
                        why = "is a program of the project that nobody has trusted"
                    return f"{name} {why}; `pegboard trust program {shlex.quote(path)}` allows it"
        return ""

    def _interpreters(self, program: str) -> Iterator[str]:
        """The program, what its first line names, and so on."""
        path: str | None = program
        while path is not None:
            yield path
            with open(path, "rb") as file:  # noqa: PTH123 - as found
                first = file.readline(_FIRST_LINE_BYTES)
            path = self._interpreter(first) if first.startswith(b"#!") else None

    def _interpreter(self, first: bytes) -> str | None:
        words = os.fsdecode(first[2:]).split()
        if not words or not words[0].endswith("/env"):
            return words[0] if words else None
        named = (word for word in words[1:] if not word.startswith("-") and "=" not in word)
        entries = self.env.get("PATH", os.defpath).split(os.pathsep)
        return next(_executables(next(named, ""), entries), None)


def _absolute_entries(env: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(filter(os.path.isabs, env.get("PATH", os.defpath).split(os.pathsep)))


def _executables(name: str, folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        path = os.path.join(folder, name)  # noqa: PTH118 - compared as text
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - likewise
            yield path


def _outside(name: str, folders: Sequence[str], roots: Sequence[str]) -> str | None:
    """The first one of which neither the folder, which may be a link, nor itself is inside."""
    for path in _executables(name, folders):
        if not _inside(os.path.dirname(path), roots) and not _inside(path, roots):  # noqa: PTH120 - may be no path
            return path
    return None


def _inside(path: str, roots: Sequence[str]) -> bool:
    """Whether what is in one of the project's worktrees decides what is found at this path.

    A project that is the whole machine has nothing outside of it, and nothing counts as inside.
    """
    if roots[0] == "/":
        return False
    for _ in range(_MOST_LINKS):
        written = os.path.normpath(path)
        folder, name = os.path.split(written)
        path = os.path.join(resolved_path(folder), name)  # noqa: PTH118 - may be no path
        if any(_is_below(each, top) for top in roots for each in (written, path)):
            return True
        if not os.path.islink(path):  # noqa: PTH114 - likewise
            return False
        path = os.path.join(os.path.dirname(path), os.readlink(path))  # noqa: PTH115, PTH118, PTH120
    return True


def worktrees(root: Path) -> tuple[str, ...]:
    """The folder, and all others that are worktrees of the same repository, as git's files say."""
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
    """The path that one of git's files holds behind `mark`; empty where it holds none."""
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


def _is_below(path: str, root: str) -> bool:
    """As `Path.is_relative_to`, which takes twenty times as long."""
    return f"{path}/".startswith(f"{root}/")


def _name(path: str, root: Path) -> str:
    return os.path.relpath(path, root)


def _digest_of(path: str, root: Path) -> str:
    """The digest of where a path of the project leads, and of the content if that is there too."""
    real = os.path.realpath(path)
    facts = os.stat(real)  # noqa: PTH116 - a text, resolved already
    if not Path(real).is_relative_to(root) or not stat.S_ISREG(facts.st_mode):
        return hashlib.sha256(os.fsencode(f"link\0{real}")).hexdigest()
    return _digest_in(
        real, (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    )


@lru_cache(maxsize=256)
def _digest_in(real: str, _state: tuple[int, ...]) -> str:
    """Computed once for each state of a file: such programs have tens of megabytes."""
    with open(real, "rb") as file:  # noqa: PTH123 - a text, resolved already
        digest = hashlib.file_digest(file, "sha256")
    return hashlib.sha256(os.fsencode(f"program\0{real}\0{digest.hexdigest()}")).hexdigest()


def child_env(env: Mapping[str, str], *, secrets: Iterable[str] = ()) -> dict[str, str]:
    """`env` for a process of a tool: without keys, and so that no program waits for a person.

    Left out are the names in `secrets` (the variables that hold providers' keys), every name
    that looks like a credential (`*_API_KEY`, `*_TOKEN`, `*SECRET*`, `*PASSWORD*`, ...) and our
    own settings (`PEGBOARD_*`). Set are `AGENT=pegboard`, `TERM=dumb`, pagers to `cat`, git's
    editor to `true`, and no prompts of git and ssh.
    """
    return without_secrets(env, secrets) | _QUIET


def without_secrets(env: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
    """`env` without the variables that `child_env` leaves out, for a program of a person."""
    hidden = {name.upper() for name in secrets}
    return {
        name: value
        for name, value in env.items()
        if name.upper() not in hidden and not _looks_secret(name.upper())
    }


@lru_cache(maxsize=1024)
def _looks_secret(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES)
