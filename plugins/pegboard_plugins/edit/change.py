"""The change of one file: its text before, its bytes afterwards, and the report."""

import asyncio
import codecs
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pegboard import (
    Diff,
    ToolContext,
    ToolError,
    ToolResult,
    diff_texts,
    open_resolved,
)
from pegboard_plugins.edit.matching import MatchError, Replaced, replace

LIMIT_BYTES = 50 << 20
_EXACT = frozenset({"exact", "create"})
"""The rules that take oldString as it is."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A text in the place of another; an empty `old` makes a new file."""

    old: str
    new: str
    replace_all: bool = False


async def change_file(context: ToolContext, filePath: str, edits: Sequence[Edit]) -> ToolResult:
    """The report of a file's change by all edits, one after the other, or by none.

    :raises ToolError: when the file cannot be changed so; it is then as it was.
    :raises PermissionDeniedError: when the change is not allowed.
    """
    path = await context.ask_path(context.directory / filePath)
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    async with context.files.writing(path):
        before = await asyncio.to_thread(_current, context, path, edits[0].old)
        steps = await asyncio.to_thread(_steps, before or "", edits)
        after = steps[-1].text
        content = _encoded(path, before or "", after, "".join(edit.new for edit in edits))
        diff = await asyncio.to_thread(diff_texts, before or "", after, name=title)
        await context.ask(
            "edit", [title], always=["*"], metadata={"filepath": str(path), "diff": diff.text}
        )
        await asyncio.to_thread(_unchanged, context, path, existed=before is not None)
        await _write(context, path, content)
    await context.edited(path)
    return _result(path, title, diff, steps)


def _steps(text: str, edits: Sequence[Edit]) -> list[Replaced]:
    """The file after each edit."""
    steps: list[Replaced] = []
    for number, edit in enumerate(edits, start=1):
        try:
            steps.append(replace(text, edit.old, edit.new, replace_all=edit.replace_all))
        except MatchError as error:
            if len(edits) == 1:
                raise
            place = f"edit {number} of {len(edits)}"
            raise MatchError(error.kind, f"{place}: {error} No edit was made.") from error
        text = steps[-1].text
    return steps


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
    with os.fdopen(open_resolved(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        content = file.read()
    if content.startswith(_UTF16):
        raise ToolError(f"{path} is in UTF-16, which is not edited: change it with bash")
    return content.decode("utf-8", "surrogateescape")


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


def _result(path: Path, title: str, diff: Diff, steps: Sequence[Replaced]) -> ToolResult:
    count = sum(step.count for step in steps)
    places = "one place" if count == 1 else f"{count} places"
    output = f"Edited {title}: {places}, +{diff.additions} -{diff.deletions} lines."
    loose = dict.fromkeys(step.rule for step in steps if step.rule not in _EXACT)
    if loose:
        output += (
            f"\noldString was not there exactly; it was matched loosely ({', '.join(loose)})."
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
