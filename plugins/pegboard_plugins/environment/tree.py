"""What the checkout looked like when a session began."""

import asyncio
import os
from pathlib import Path

from pegboard import (
    ToolError,
    branch,
    find_program,
    open_workspace,
    run_program,
    running_settings,
)

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
    workspace = await asyncio.to_thread(open_workspace, directory)
    if workspace.git_dir is None:
        return None
    name = await asyncio.to_thread(branch, workspace)
    facts = [f"branch {name}" if name else "no branch (detached HEAD)"]
    if not await asyncio.to_thread(running_settings, workspace.git_dirs):
        facts += await _changes(workspace.worktree)
    return ", ".join(facts)


async def _changes(root: Path) -> list[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    program = await asyncio.to_thread(find_program, "git", env, root=root)
    if program is None:
        return []
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
