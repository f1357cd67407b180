"""What the checkout looked like when a session began."""

import asyncio
import os
from pathlib import Path
from typing import NamedTuple

from pegboard import ToolError
from pegboard.kit import branch, find_program, open_workspace, run_program, running_settings

TIME_LIMIT_S = 1.0
"""A tree that takes longer to look through is not told about: the prompt waits for this."""
LONGEST_OUTPUT_BYTES = 16 << 20
_STATUS = (
    *("-c", "core.fsmonitor=false", "status", "--porcelain", "-z"),
    *("--no-renames", "--ignore-submodules=all", "--untracked-files=normal"),
)
_UNTRACKED = "?? "


async def tree_state(directory: Path) -> str | None:
    """The branch, and how many files differ from its last commit; None without git.

    Git is not asked where the repository's own settings would have it run programs.
    """
    found = await asyncio.to_thread(_checkout, directory)
    if found is None:
        return None
    facts = [f"branch {found.branch}" if found.branch else "no branch (detached HEAD)"]
    if found.git is not None:
        facts += await _changes(found.git, found.root)
    return ", ".join(facts)


class _Checkout(NamedTuple):
    """A worktree; `git` is the program that may look at its files, None where none may."""

    root: Path
    branch: str | None
    git: str | None


def _checkout(directory: Path) -> _Checkout | None:
    workspace = open_workspace(directory)
    if workspace.git_dir is None:
        return None
    root, git = workspace.worktree, None
    if not running_settings(workspace.git_dirs):
        git = find_program("git", os.environ, root=root)
    return _Checkout(root, branch(workspace), git)


async def _changes(program: str, root: Path) -> list[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = await run_program(
            [program, *_STATUS],
            cwd=root,
            env={**env, "GIT_OPTIONAL_LOCKS": "0"},
            timeout_s=TIME_LIMIT_S,
            limit_bytes=LONGEST_OUTPUT_BYTES,
        )
    except ToolError:
        return []
    if done.exit_code != 0 or done.flooded:
        return []
    entries = [entry for entry in done.output.decode(errors="replace").split("\0") if entry]
    new = sum(entry.startswith(_UNTRACKED) for entry in entries)
    if not entries:
        return ["no uncommitted changes"]
    return [f"{len(entries) - new} changed and {new} untracked files, which are the user's"]
