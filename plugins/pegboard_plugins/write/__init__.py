"""The write tool: a whole file."""

import asyncio
import os
from pathlib import Path

from msgspec.structs import replace

import pegboard_files
from pegboard import Tool, ToolContext, ToolError, ToolResult, hookimpl, tool
from pegboard.kit import named_path

COMPARED_BYTES = 5 << 20
"""Above this size the old content is not read for the diff."""


async def _requests(context: ToolContext, filePath: str) -> None:
    path = await context.ask_path(named_path(context, filePath))
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    await context.ask("edit", [title], always=["*"], metadata={"filepath": str(path)})


_ALIASES = {
    **dict.fromkeys(("path", "file", "filename"), "filePath"),
    **dict.fromkeys(("contents", "file_text", "text"), "content"),
}


@tool(permission="edit", asks=_requests, aliases=_ALIASES, effect="edits")
async def write(context: ToolContext, filePath: str, content: str) -> ToolResult:
    """Write a whole file: a new one, or most of one anew; for small changes use edit.

    Folders are made. A file that exists is overwritten and has to be read first.

    Args:
        filePath: absolute, or relative to the working directory.
        content: all of the file.
    """
    path = await context.ask_path(named_path(context, filePath))
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    async with context.files.writing(path):
        before = await asyncio.to_thread(_current, context, path)
        after = await asyncio.to_thread(_laid_down, path, before, content)
        written = (before or after).encoded(after.text, name=str(path))
        old = before.text if before else ""
        diff = await asyncio.to_thread(pegboard_files.diff_texts, old, after.text, name=title)
        await context.ask(
            "edit", [title], always=["*"], metadata={"filepath": str(path), "diff": diff.text}
        )
        # The user may have taken a while to approve.
        if await asyncio.to_thread(_exists, context, path) and before is None:
            raise ToolError(f"{path} has come into being in the meantime: read it first")
        try:
            links = await context.files.replace(path, written)
        except OSError as error:
            raise ToolError(f"{path} cannot be written: {error}") from error
    await context.edited(path)
    result = _result(path, title, diff, existed=before is not None)
    return replace(result, output=f"{result.output}{_linked(links)}")


def _laid_down(
    path: Path, before: "pegboard_files.FileText | None", content: str
) -> "pegboard_files.FileText":
    return before.replacement(content) if before else pegboard_files.new_text(path, content)


def _exists(context: ToolContext, path: Path) -> bool:
    """Whether there is a file already; then it must have been read as it is."""
    if path.is_dir():
        raise ToolError(f"{path} is a directory")
    if not path.exists():
        return False
    context.files.check_fresh(path)
    return True


def _current(context: ToolContext, path: Path) -> "pegboard_files.FileText | None":
    """What stands in the file, or begins a long one; None where there is no file."""
    if not _exists(context, path):
        return None
    with os.fdopen(pegboard_files.open_resolved(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        content = file.read(COMPARED_BYTES)
        whole = not file.read(1)
    return pegboard_files.decode_text(content, name=str(path), whole=whole)


def _linked(links: int) -> str:
    return f"\n{links} other names of the file (hard links) keep the old content." if links else ""


def _result(path: Path, title: str, diff: "pegboard_files.Diff", *, existed: bool) -> ToolResult:
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
