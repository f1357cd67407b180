"""The change of one file: its text before, its bytes afterwards, and the report."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pegboard import ToolContext, ToolError, ToolResult
from pegboard.kit import named_path
from pegboard_files import Diff, FileText, decode_text, diff_texts, new_text, open_resolved
from pegboard_plugins.edit.matching import MatchError, replace

LIMIT_BYTES = 50 << 20
_EXACT = frozenset({"exact", "create"})
"""The rules that take oldString as it is."""


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
    path = await context.ask_path(named_path(context, filePath))
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    async with context.files.writing(path):
        before = await asyncio.to_thread(_current, context, path, edits[0].old)
        old = before.text if before else ""
        text, steps = await asyncio.to_thread(_steps, context, old, edits)
        after = await asyncio.to_thread(_laid_down, path, before, text)
        content = (before or after).encoded(after.text, name=str(path))
        diff = await asyncio.to_thread(diff_texts, old, after.text, name=title)
        await context.ask(
            "edit", [title], always=["*"], metadata={"filepath": str(path), "diff": diff.text}
        )
        await asyncio.to_thread(_unchanged, context, path, existed=before is not None)
        links = await _write(context, path, content)
    await context.edited(path)
    return _result(path, title, diff, steps, links)


class Step(msgspec.Struct, frozen=True):
    """What one edit came to: the rule that found its places, and their number."""

    rule: str
    count: int


def _steps(context: ToolContext, text: str, edits: Sequence[Edit]) -> tuple[str, list[Step]]:
    """The file after all edits, of which no text between is kept, and what each came to."""
    steps: list[Step] = []
    for number, edit in enumerate(edits, start=1):
        if context.cancelled:
            raise ToolError("stopped before the file was changed")
        try:
            done = replace(text, edit.old, edit.new, replace_all=edit.replace_all)
        except MatchError as error:
            if len(edits) == 1:
                raise
            place = f"edit {number} of {len(edits)}"
            raise MatchError(error.kind, f"{place}: {error} No edit was made.") from error
        text = done.text
        steps.append(Step(done.rule, done.count))
    return text, steps


def _laid_down(path: Path, before: FileText | None, text: str) -> FileText:
    """The changed text; a file that is made follows EditorConfig."""
    return FileText(text=text, encoding=before.encoding) if before else new_text(path, text)


def _current(context: ToolContext, path: Path, old: str) -> FileText | None:
    """What stands in the file; None for a file to be made."""
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
    return decode_text(content, name=str(path))


def _unchanged(context: ToolContext, path: Path, *, existed: bool) -> None:
    """The user may have taken a while to approve."""
    if existed and path.stat().st_size:
        context.files.check_fresh(path)
    elif not existed and path.exists():
        raise ToolError(f"{path} has come into being in the meantime: read it first")


async def _write(context: ToolContext, path: Path, content: bytes) -> int:
    """How many other names of the file keep the old content."""
    try:
        return await context.files.replace(path, content)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error}") from error


def _result(path: Path, title: str, diff: Diff, steps: Sequence[Step], links: int) -> ToolResult:
    count = sum(step.count for step in steps)
    places = "one place" if count == 1 else f"{count} places"
    output = f"Edited {title}: {places}, +{diff.additions} -{diff.deletions} lines."
    loose = dict.fromkeys(step.rule for step in steps if step.rule not in _EXACT)
    if loose:
        output += (
            f"\noldString was not there exactly; it was matched loosely ({', '.join(loose)})."
            f" Check the change:\n\n{diff.text}"
        )
    if links:
        output += f"\n{links} other names of the file (hard links) keep the old content."
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
