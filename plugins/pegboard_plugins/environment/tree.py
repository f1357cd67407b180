"""What the checkout looked like when a session began."""

import os
import subprocess
from pathlib import Path

from pegboard import branch, find_program, open_workspace, running_settings

TIME_LIMIT_S = 1.0
"""A tree that takes longer to look through is not told about: the prompt waits for this."""
_STATUS = (
    *("-c", "core.fsmonitor=false", "status", "--porcelain", "-z"),
    *("--no-renames", "--ignore-submodules=all", "--untracked-files=normal"),
)
_UNTRACKED = "?? "


def tree_state(directory: Path) -> str | None:
    """The branch, and how many files differ from its last commit; None without git. It blocks.

    Git is not asked where the repository's own settings would have it run programs.
    """
    workspace = open_workspace(directory)
    if workspace.git_dir is None:
        return None
    name = branch(workspace)
    facts = [f"branch {name}" if name else "no branch (detached HEAD)"]
    if not running_settings(workspace.git_dirs):
        facts += _changes(workspace.worktree)
    return ", ".join(facts)


def _changes(root: Path) -> list[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    program = find_program("git", env)
    if program is None:
        return []
    try:
        done = subprocess.run(
            [program, *_STATUS],
            cwd=root,
            env={**env, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    entries = [entry for entry in done.stdout.decode(errors="replace").split("\0") if entry]
    new = sum(entry.startswith(_UNTRACKED) for entry in entries)
    if not entries:
        return ["no uncommitted changes"]
    return [f"{len(entries) - new} changed and {new} untracked files, which are the user's"]
