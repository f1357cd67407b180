"""A tool that changes a file: it takes the lock, checks, and replaces the file at once.

Pegboard awaits `may_sort` before each call. It makes the permission requests and nothing else, so
that `pegboard explain` can show them without a call.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from pegboard import PermissionContext, Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.files import decode_text, named_path


async def may_sort(context: PermissionContext, path: str) -> Path:
    """Return the real path, once the call may leave the project for it and may edit it."""
    real = await context.require_path(named_path(context, path))
    await context.require("edit", [_pattern(context, real)], always=["*"])
    return real


def _pattern(context: PermissionContext, path: Path) -> str:
    """Return the pattern that rules for edits match: the path from the root of the repository."""
    return os.path.relpath(path, context.worktree)


@tool(permission="edit", requires=may_sort, effect="edits")
async def sort_lines(context: ToolContext, path: str) -> ToolResult:
    """Sort the lines of a text file that you have read, and drop repeated ones.

    Args:
        path: The file, absolute or relative to the working directory.
    """
    real = context.granted(may_sort)
    async with context.files.lock(real):
        context.files.check_fresh(real)
        before = decode_text(await asyncio.to_thread(real.read_bytes), name=path)
        lines = before.text.splitlines()
        distinct = sorted(set(lines))
        after = before.replacement("".join(f"{line}\n" for line in distinct))
        await context.files.replace(real, after.encode(after.text, name=path))
    await context.record_edit(real)
    dropped = len(lines) - len(distinct)
    return ToolResult(output=f"{path} is sorted; {dropped} repeated lines are gone.", title=path)


@hookimpl
async def register_tools() -> Sequence[Tool]:
    """Return the one tool."""
    return (sort_lines,)
