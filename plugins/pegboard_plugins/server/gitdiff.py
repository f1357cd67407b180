"""The differences between the project's files and a commit, as git reports them."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec.structs import asdict

from pegboard import App, InvalidInputError, ToolError
from pegboard.processes import find_program, run_program
from pegboard.schema.wire import Rest
from pegboard_plugins.shared.frontend import FileChange, branch

TIME_LIMIT_S = 20.0
LONGEST_BYTES = 1 << 20
LONGEST_OUTPUT_BYTES = 64 << 20
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "diff.external=")
"""A repository may come from anywhere: nothing in its configuration may run."""
# A submodule has a configuration of its own, by which git would look into it.
_DIFF = ("diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")

_REMOTE = "origin/"
_USUAL = ("main", "master")
_BASE = ("merge-base", "--end-of-options")
"""A repository may have a branch whose name looks like an option."""


async def changes(app: App, base: str = "HEAD") -> tuple[FileChange, ...]:
    """Return the files that differ from the commit `base`; () in a project without git."""
    root = app.workspace.worktree
    if app.workspace.git_dir is None:
        return ()
    env = await _environment(root)
    counts = await _git(root, env, *_DIFF, "--numstat", "-z", base)
    states = await _git(root, env, *_DIFF, "--name-status", "-z", base)
    words = [word for word in states.split("\0") if word]
    known = dict(zip(words[1::2], words[::2], strict=False))
    found = [_parse_counts(line, known) for line in counts.split("\0") if line.count("\t") == 2]  # noqa: PLR2004 - added, removed, path
    new = await _list_untracked(root, env)
    lines = await asyncio.to_thread(lambda: [_lines(root / name) for name in new])
    added = (
        FileChange(path=name, added=count, removed=0, status="added")
        for name, count in zip(new, lines, strict=True)
    )
    return (*found, *added)


async def default_branch(app: App) -> str | None:
    """Return the default branch: the remote's, or else `main` or `master`."""
    ref = await _start(app)
    return None if ref is None else ref.removeprefix(_REMOTE)


async def find_branch_point(app: App) -> str | None:
    """Return the commit at which the branch left the default branch; None on the default branch."""
    ref = await _start(app)
    here = await asyncio.to_thread(lambda: branch(app.workspace))
    if ref is None or ref.removeprefix(_REMOTE) == here:
        return None
    told = await _git(app.workspace.worktree, _own_environment(), *_BASE, "HEAD", ref)
    return told.strip() or None


async def _start(app: App) -> str | None:
    """Return the name of the default branch, such as `origin/main` or `main`; None if unknown."""
    if app.workspace.git_dir is None:
        return None
    root, env = app.workspace.worktree, _own_environment()
    told = await _git(root, env, "symbolic-ref", "--short", f"refs/remotes/{_REMOTE}HEAD")
    if told.strip():
        return told.strip()
    heads = await _git(root, env, "for-each-ref", "--format=%(refname:short)", "refs/heads")
    return next((name for name in _USUAL if name in heads.split("\n")), None)


class FileStatus(Rest, frozen=True):
    """A file that differs from a commit, in the format of OpenCode's protocol."""

    file: str
    additions: int
    deletions: int
    status: Literal["added", "deleted", "modified"]


class FilePatch(FileStatus, frozen=True):
    """A changed file with its patch text."""

    patch: str


def status_of(change: FileChange) -> FileStatus:
    """Return the changed file in the format of OpenCode's protocol."""
    return FileStatus(
        file=change.path,
        additions=change.added,
        deletions=change.removed,
        status=change.status,
    )


async def differences(app: App, context: int, base: str = "HEAD") -> tuple[FilePatch, ...]:
    """Return each file that differs from the commit `base`, with its patch."""
    root = app.workspace.worktree
    env = await _environment(root)
    new = set(await _list_untracked(root, env)) if app.workspace.git_dir is not None else set()
    found = []
    for change in await changes(app, base):
        if change.path in new:
            patch = await asyncio.to_thread(_as_new, root, change.path)
        else:
            patch = await _git(root, env, *_DIFF, f"-U{context}", base, "--", change.path)
        found.append(FilePatch(**asdict(status_of(change)), patch=patch))
    return tuple(found)


async def make_repository(directory: Path) -> None:
    """Make a git repository in a directory.

    :raises InvalidInputError: when git is not there, or fails.
    """
    env = _own_environment()
    program = await asyncio.to_thread(find_program, "git", env, root=directory)
    if program is None:
        raise InvalidInputError(f"no repository was made in {directory}: git is not installed")
    done = await run_program(
        [program, *_SAFE, "init", "--quiet"],
        cwd=directory,
        env=env,
        timeout_s=TIME_LIMIT_S,
        limit_bytes=LONGEST_OUTPUT_BYTES,
    )
    if done.exit_code != 0:
        reason = done.output.decode("utf-8", "replace").strip()[-400:]
        raise InvalidInputError(f"no repository was made in {directory}: {reason}")


async def _list_untracked(root: Path, env: Mapping[str, str]) -> list[str]:
    told = await _git(root, env, "ls-files", "-z", "--others", "--exclude-standard")
    return [name for name in told.split("\0") if name]


def _parse_counts(line: str, states: dict[str, str]) -> FileChange:
    added, removed, path = line.split("\t")
    kinds: dict[str, Literal["added", "deleted"]] = {"A": "added", "D": "deleted"}
    return FileChange(
        path=path,
        added=int(added) if added.isdecimal() else 0,
        removed=int(removed) if removed.isdecimal() else 0,
        status=kinds.get(states.get(path, "M"), "modified"),
    )


def _lines(path: Path) -> int:
    """Return the number of lines of a small text file, or 0 for any other file."""
    text = _read(path)
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def _read(path: Path) -> str:
    """Return the content of a small text file, or "" for any other file."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LONGEST_BYTES:
            return ""
        content = path.read_bytes()
    except OSError:
        return ""
    return "" if b"\0" in content else content.decode("utf-8", "replace")


def _as_new(root: Path, name: str) -> str:
    """Return git's patch for a new file."""
    text = _read(root / name)
    ended = text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n"
    if not text:
        return head
    body = "".join(f"+{line}\n" for line in lines)
    rest = "" if ended else "\\ No newline at end of file\n"
    span = "1" if len(lines) == 1 else f"1,{len(lines)}"
    return f"{head}--- /dev/null\n+++ b/{name}\n@@ -0,0 +{span} @@\n{body}{rest}"


async def _environment(root: Path) -> dict[str, str]:
    """Return an environment in which git runs no filter and fetches no missing object.

    Each filter has to be unset by its name.
    """
    env = _own_environment()
    told = await _git(root, env, "config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    names = list(dict.fromkeys(name for name in told.split("\0") if name))
    for at, name in enumerate(names):
        env[f"GIT_CONFIG_KEY_{at}"] = name
        env[f"GIT_CONFIG_VALUE_{at}"] = "false" if name.endswith(".required") else ""
    return {**env, "GIT_CONFIG_COUNT": str(len(names))}


def _own_environment() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**env, "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": ""}


async def _git(root: Path, env: Mapping[str, str], *arguments: str) -> str:
    """Run git and return its output; "" if git fails, exceeds a limit or is missing."""
    program = await asyncio.to_thread(find_program, "git", env, root=root)
    if program is None:
        return ""
    try:
        done = await run_program(
            [program, *_SAFE, *arguments],
            cwd=root,
            env=env,
            timeout_s=TIME_LIMIT_S,
            limit_bytes=LONGEST_OUTPUT_BYTES,
        )
    except ToolError:  # the folder has gone meanwhile
        return ""
    whole = done.exit_code == 0 and not done.flooded
    return done.output.decode("utf-8", "replace") if whole else ""
