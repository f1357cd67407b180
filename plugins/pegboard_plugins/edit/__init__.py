"""The edit tool: one text of a file in the place of another."""

import asyncio
import os
from pathlib import Path

from pegboard import Diff, Tool, ToolContext, ToolError, ToolResult, diff_texts, hookimpl, tool
from pegboard_plugins.edit.matching import Replaced, replace

LIMIT_BYTES = 50 << 20


@tool
async def edit(
    context: ToolContext, filePath: str, oldString: str, newString: str, *, replaceAll: bool = False
) -> ToolResult:
    """Replace text in a file that you have read.

    oldString is copied exactly from the file, indentation included, without read's line
    numbers, and long enough to occur once; with replaceAll every occurrence is changed. An
    empty oldString makes a new file.
    """
    path = await context.ask_path(context.directory / filePath)
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    async with context.files.writing(path):
        before = await asyncio.to_thread(_current, context, path, oldString)
        done = await asyncio.to_thread(
            replace, before or "", oldString, newString, replace_all=replaceAll
        )
        content = _encoded(path, before or "", done.text, newString)
        diff = await asyncio.to_thread(diff_texts, before or "", done.text, name=title)
        await context.ask(
            "edit", [title], always=["*"], metadata={"filepath": str(path), "diff": diff.text}
        )
        await asyncio.to_thread(_unchanged, context, path, existed=before is not None)
        await _write(context, path, content)
    await context.edited(path)
    return _result(path, title, diff, done)


def _current(context: ToolContext, path: Path, old: str) -> str | None:
    """The file's text, with other bytes than UTF-8 as surrogates; None for a file to be made."""
    if path.is_dir():
        raise ToolError(f"{path} is a directory")
    if not path.exists():
        if old:
            raise ToolError(f"{path} does not exist; an empty oldString would make it")
        return None
    if old or path.stat().st_size:
        context.files.check_fresh(path)
    if path.stat().st_size > LIMIT_BYTES:
        raise ToolError(f"{path} is larger than {LIMIT_BYTES >> 20} MiB: change it with bash")
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _unchanged(context: ToolContext, path: Path, *, existed: bool) -> None:
    """The user may have taken a while to approve."""
    if existed and path.stat().st_size:
        context.files.check_fresh(path)
    elif not existed and path.exists():
        raise ToolError(f"{path} has come into being in the meantime: read it first")


def _encoded(path: Path, before: str, after: str, new: str) -> bytes:
    """The bytes of the changed text; those that are no UTF-8 stay as they were."""
    if not before.isascii() and not new.isascii() and not _is_unicode(before):
        raise ToolError(
            f"{path} is not in UTF-8: letters beyond ASCII would be written in another encoding"
            " than the rest of the file"
        )
    if not _is_unicode(new):
        raise ToolError("newString holds half a letter (a lone surrogate)")
    return after.encode("utf-8", "surrogateescape")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def _write(context: ToolContext, path: Path, content: bytes) -> None:
    try:
        await context.files.replace(path, content)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error}") from error


def _result(path: Path, title: str, diff: Diff, done: Replaced) -> ToolResult:
    places = "one place" if done.count == 1 else f"{done.count} places"
    output = f"Edited {title}: {places}, +{diff.additions} -{diff.deletions} lines."
    if done.rule not in ("exact", "create"):
        output += (
            f"\noldString was not there exactly; it was matched loosely ({done.rule})."
            f" Check the change:\n\n{diff.text}"
        )
    return ToolResult(
        output=output,
        title=title,
        metadata={
            "diff": diff.text,
            "filediff": {
                "file": str(path),
                "additions": diff.additions,
                "deletions": diff.deletions,
            },
            "diagnostics": {},
        },
    )


@hookimpl
async def register_tools() -> list[Tool]:
    """The edit tool."""
    return [edit]
