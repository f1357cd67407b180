"""A git worktree for one run, so that the user's files stay unchanged."""

import os
import secrets
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pegboard import InvalidInputError
from pegboard.processes import find_program
from pegboard.unstable import open_workspace, try_program
from pegboard_plugins.cli.render import Line
from pegboard_plugins.shared.frontend import running_settings

LIMIT_S = 120.0
"""The time limit of one git command."""
BRANCH = "pegboard"


class Worktree:
    """A git worktree on a new branch, which starts at the checked-out commit.

    An unchanged worktree is removed at the end.
    """

    def __init__(self, git: "_Git", root: Path, folder: Path, branch: str, directory: Path) -> None:
        self._git = git
        self._root = root
        self._folder = folder
        self._branch = branch
        self._start = git(folder, "rev-parse", "HEAD")
        self.directory = directory

    @classmethod
    def make(cls, directory: Path) -> "Worktree":
        """Create a worktree of the repository around the directory; blocks.

        :raises InvalidInputError: when there is no repository or no commit, or git fails.
        """
        workspace = open_workspace(directory)
        root = workspace.worktree
        if workspace.git_dir is None:
            raise InvalidInputError(
                f"--worktree: {directory} is in no git repository; make one with git init, "
                "or run without --worktree"
            )
        git = _Git(root, workspace.git_dirs)
        if not git(root, "rev-parse", "--verify", "--quiet", "HEAD", may_fail=True):
            raise InvalidInputError(
                f"--worktree: {root} has no commit to begin at; make one, or run without --worktree"
            )
        name = secrets.token_hex(4)
        branch = f"{BRANCH}/{name}"
        # Beside the repository: in Pegboard's own folders no tool may change anything.
        folder = root.parent / f"{root.name}.worktrees" / name
        git(root, "worktree", "add", "--quiet", "-b", branch, str(folder), "HEAD")
        inside = folder / workspace.directory.relative_to(root)
        # A folder without a file that git knows is not there yet.
        inside.mkdir(parents=True, exist_ok=True)
        return cls(git, root, folder, branch, inside)

    def begin_lines(self) -> tuple[Line, ...]:
        """Return lines with the worktree's path, and a note if it lacks uncommitted changes."""
        place = Line(head="worktree", text=f"{self._folder} on {self._branch}", style="tool")
        if not self._git(self._root, "status", "--porcelain", may_fail=True):
            return (place,)
        left = "what you have not committed is not in it"
        return place, Line(text=left, style="dim", indent=1)

    def _head(self) -> str:
        return self._git(self._folder, "rev-parse", "HEAD", may_fail=True)

    def end_lines(self) -> tuple[Line, ...]:
        """Remove an unchanged worktree; for a changed one, return lines about its use."""
        changed = self._git(self._folder, "status", "--porcelain", may_fail=True)
        if not changed and self._head() == self._start:
            self._git(self._root, "worktree", "remove", str(self._folder), may_fail=True)
            self._git(self._root, "branch", "--delete", "--quiet", self._branch, may_fail=True)
            with suppress(OSError):  # there are others in it
                self._folder.parent.rmdir()
            return (
                Line(text="(nothing was changed in the worktree, and it is gone)", style="dim"),
            )
        place = Line(head="worktree", text=f"{self._folder} on {self._branch}", style="tool")
        return place, *(
            Line(head=f"to {what} it", text=way, style="dim", indent=1)
            for what, way in self._ways(changed=bool(changed)).items()
        )

    def _ways(self, *, changed: bool) -> Mapping[str, str]:
        """Return shell commands, for any folder, that show, apply or drop the changes."""
        here, there = (shlex.quote(str(each)) for each in (self._root, self._folder))
        drop = (
            f"git -C {here} worktree remove --force {there} && "
            f"git -C {here} branch -D {self._branch}"
        )
        if not changed:
            see, take = f"diff HEAD...{self._branch}", f"merge {self._branch}"
            return {"see": f"git -C {here} {see}", "take": f"git -C {here} {take}", "drop": drop}
        everything = f"git -C {there} add -A && git -C {there} diff --cached"
        return {
            "see": f"{everything} {self._start}",
            "take": f"{everything} --binary {self._start} | git -C {here} apply --3way",
            "drop": drop,
        }


class _Git:
    """A runner of git that prevents the repository's settings from running programs.

    :raises InvalidInputError: when git is missing, or the repository's settings contain filters.
    """

    def __init__(self, root: Path, git_dirs: Iterable[Path]) -> None:
        settings = running_settings(git_dirs)
        if filters := [name for name in settings if name.startswith(("filter.", "include"))]:
            raise InvalidInputError(
                f"--worktree: git would run what this repository sets ({', '.join(filters)}); "
                "make the worktree with git worktree add, and run in it"
            )
        program = find_program("git", os.environ, root=root)
        if program is None:
            raise InvalidInputError("--worktree needs git, which is not installed")
        self._program = program

    def __call__(self, folder: Path, *words: str, may_fail: bool = False) -> str:
        """Run git and return its output without surrounding blanks, or "" after an allowed failure.

        Git gets no API keys, and its child processes end with it.

        :raises InvalidInputError: when git fails and `may_fail` is False.
        """
        # No hook of the repository runs: nobody was asked about its code.
        safe = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
        try:
            argv = [self._program, "-C", str(folder), *safe, *words]
            done = try_program(argv, timeout_s=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise InvalidInputError(f"git {words[0]} took more than {LIMIT_S:g} s") from error
        if done.returncode and not may_fail:
            errors = done.stderr.decode(errors="replace").strip()
            raise InvalidInputError(f"git {' '.join(words[:2])}: {errors}")
        return "" if done.returncode else done.stdout.decode(errors="replace").strip()
