"""The write tool: a whole file."""

import asyncio
import os
from pathlib import Path

from pegboard import (
    Diff,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    diff_texts,
    hookimpl,
    open_resolved,
    tool,
)
from pegboard_plugins.write.conventions import as_before, as_configured

COMPARED_BYTES = 5 << 20
"""Above this size the old content is not read for the diff."""


async def _requests(context: ToolContext, filePath: str) -> None:
    path = await context.ask_path(context.directory / filePath)
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    await context.ask("edit", [title], always=["*"], metadata={"filepath": str(path)})


@tool(permission="edit", asks=_requests)
async def write(context: ToolContext, content: str, filePath: str) -> ToolResult:
    """Write a whole file; folders are made.

    A file that exists is overwritten and has to be read first. Prefer edit for changes.
    """
    path = await context.ask_path(context.directory / filePath)
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    _encoded(content)  # what cannot be written is refused before anybody is asked
    async with context.files.writing(path):
        existed, before = await asyncio.to_thread(_current, context, path)
        content = await asyncio.to_thread(_laid_down, path, before if existed else None, content)
        diff = await asyncio.to_thread(diff_texts, before, content, name=title)
        await context.ask(
            "edit", [title], always=["*"], metadata={"filepath": str(path), "diff": diff.text}
        )
        # The user may have taken a while to approve.
        if await asyncio.to_thread(_exists, context, path) and not existed:
            raise ToolError(f"{path} has come into being in the meantime: read it first")
        try:
            await context.files.replace(path, _encoded(content))
        except OSError as error:
            raise ToolError(f"{path} cannot be written: {error}") from error
    await context.edited(path)
    return _result(path, title, diff, existed=existed)


def _laid_down(path: Path, before: str | None, content: str) -> str:
    return as_configured(path, content) if before is None else as_before(before, content)


def _encoded(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError("content holds half a letter (a lone surrogate)") from error


def _exists(context: ToolContext, path: Path) -> bool:
    """Whether there is a file already; then it must have been read as it is."""
    if path.is_dir():
        raise ToolError(f"{path} is a directory")
    if not path.exists():
        return False
    context.files.check_fresh(path)
    return True


def _current(context: ToolContext, path: Path) -> tuple[bool, str]:
    """Whether there is a file, and its text for the diff."""
    if not _exists(context, path):
        return False, ""
    with os.fdopen(open_resolved(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        return True, file.read(COMPARED_BYTES).decode(errors="replace")


def _result(path: Path, title: str, diff: Diff, *, existed: bool) -> ToolResult:
    verb = "Overwrote" if existed else "Wrote"
    return ToolResult(
        output=f"{verb} {title}: +{diff.additions} -{diff.deletions} lines.",
        title=title,
        metadata={
            "diagnostics": {},
            "filepath": str(path),
            "exists": existed,
            "diff": diff.text,
            "filediff": {
                "file": str(path),
                "additions": diff.additions,
                "deletions": diff.deletions,
            },
        },
    )


@hookimpl
async def register_tools() -> list[Tool]:
    """The write tool."""
    return [write]
