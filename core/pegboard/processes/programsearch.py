"""Programs that a project contains, which run only if the user trusts their content."""

import hashlib
import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from pegboard import SessionView
from pegboard.processes.hostprograms import executables, lies_in, path_entries, worktrees

_OWN_PROGRAMS = ("node_modules/.bin", ".venv/bin")
"""Where a project installs programs for itself."""
_MOST_INTERPRETERS = 4
"""As many scripts in a row as Linux takes for the interpreter of another (`binfmt_script`)."""
_FIRST_LINE_BYTES = 256


class FoundProgram(msgspec.Struct, frozen=True, kw_only=True):
    """The path of a program, or None if no allowed program was found.

    `refused` is the reason why a program of the project was skipped, and how to allow it, or "".
    """

    path: str | None = None
    refused: str = ""


class ProgramSearch(msgspec.Struct, frozen=True, kw_only=True):
    """The search for programs; `trusted_by_user` is whether the user trusts the project.

    A program in the project counts only if `allowed` has its digest, by its path relative to
    `root`. `env` has the PATH. Programs are started in `directory`.
    """

    root: Path
    directory: Path
    trusted_by_user: bool
    env: Mapping[str, str]
    allowed: Mapping[str, str] = {}

    @classmethod
    def of(cls, session: SessionView, env: Mapping[str, str]) -> "ProgramSearch":
        """Return the search for a session, with the PATH of `env`."""
        return cls(
            root=session.worktree,
            directory=session.directory,
            trusted_by_user=session.trust.trusted_by_user,
            env=env,
            allowed=session.trust.allowed,
        )

    def find(self, command: Sequence[str], *, near: Path | None = None) -> FoundProgram:
        """Find the program of a command line, first in packages installed around the file `near`.

        A name with a slash is a path. Project files among the other words must be trusted too,
        because the program may run them. This blocks while it reads a few names and files.
        """
        refused = ""
        for path in self._candidates(command[0], near):
            reason = self._refusal((path, *self._files(command[1:])))
            if not reason:
                return FoundProgram(path=path, refused=refused)
            refused = refused or reason
        return FoundProgram(refused=refused)

    def digests(self, program: str) -> dict[str, str]:
        """Return the digests of the project files that would run: the program and its interpreters.

        The result is empty for a program outside of the project.

        :raises OSError: when a file cannot be read.
        """
        found: dict[str, str] = {}
        roots = worktrees(self.root)
        for path in islice(self._interpreters(program), _MOST_INTERPRETERS):
            if lies_in(path, roots):
                found[os.path.relpath(path, self.root)] = _digest_of(path, self.root)
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
        yield from executables(name, (*own, *path_entries(self.env)))

    def _files(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the files of the project that words or values of options name."""
        roots = worktrees(self.root)
        for word in words:
            path = str(self.directory / word.rpartition("=")[2])
            if lies_in(path, roots) and os.path.isfile(path):  # noqa: PTH113 - may be no path
                yield path

    def _refusal(self, paths: Sequence[str]) -> str:
        """Return why the first untrusted path may not run, or "" if all are trusted."""
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
        """Yield the program, then the interpreter that its first line names, and so on."""
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
        return next(executables(next(named, ""), entries), None)


def _digest_of(path: str, root: Path) -> str:
    """Return the digest of the file that a path resolves to, or of a path outside of `root`."""
    real = os.path.realpath(path)
    facts = os.stat(real)  # noqa: PTH116 - a text, resolved already
    if not Path(real).is_relative_to(root) or not stat.S_ISREG(facts.st_mode):
        return hashlib.sha256(os.fsencode(f"link\0{real}")).hexdigest()
    return _digest_in(
        real, (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    )


@lru_cache(maxsize=256)
def _digest_in(real: str, _state: tuple[int, ...]) -> str:
    """Return the digest of a file, cached by the file's state, because programs may be large."""
    with open(real, "rb") as file:  # noqa: PTH123 - a text, resolved already
        digest = hashlib.file_digest(file, "sha256")
    return hashlib.sha256(os.fsencode(f"program\0{real}\0{digest.hexdigest()}")).hexdigest()
