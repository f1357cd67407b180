"""The change of one file, by edits or as a whole: old text, new bytes, report for the model."""

import asyncio
import codecs
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace as replaced

from pegboard import ToolContext, ToolError, ToolResult
from pegboard.files import Diff, FileText, decode_text, diff_texts, new_text, open_resolved
from pegboard.unstable import COPIED_LIMIT_BYTES
from pegboard_plugins.edit.matching import MatchError, replace

LIMIT_BYTES = 50 << 20
COMPARED_BYTES = 5 << 20
"""Above this size the old content of a file that is overwritten is not in the diff."""
_CHUNK_BYTES = 1 << 20
_NEW = "{} has come into being in the meantime: read it first"
_EXACT = frozenset({"exact", "create"})
"""The rules that take oldString as it is."""

_LONGEST_PATCH = 1 << 20
"""Characters of a diff that the metadata repeat as the patch of `filediff`: both have to fit."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A text to replace and its replacement; an empty `old` creates a file."""

    old: str
    new: str
    replace_all: bool = False


async def change_file(context: ToolContext, path: Path, edits: Sequence[Edit]) -> ToolResult:
    """Apply all edits to a file in turn, or none of them; return a report for the model.

    :raises ToolError: when an edit fails; the file is then unchanged.
    :raises PermissionDeniedError: when the change is not allowed.
    """
    async with context.files.lock(path):
        plan, steps = await asyncio.to_thread(_edits_planned, context, path, edits)
        check = partial(_unchanged, context, path, existed=plan.existed)
        put = await _put(context, path, plan, check)
    await context.record_edit(path)
    return replaced(_result(path, put), output=_edited(put, steps))


async def write_file(context: ToolContext, path: Path, content: str) -> ToolResult:
    """Write a whole file; return a report for the model.

    :raises ToolError: when the write fails; the file is then unchanged.
    :raises PermissionDeniedError: when the change is not allowed.
    """
    async with context.files.lock(path):
        plan = await asyncio.to_thread(_writing_planned, context, path, content)
        check = partial(_still_there, context, path, existed=plan.existed)
        put = await _put(context, path, plan, check)
    await context.record_edit(path)
    result = _result(path, put)
    verb = "Overwrote" if plan.existed else "Wrote"
    note = f"\n{plan.note}" if plan.note else ""
    return replaced(
        result,
        output=f"{verb} {put.title}: {put.counts}.{put.linked}{note}",
        metadata={**result.metadata, "filepath": str(path), "exists": plan.existed},
    )


class _LongFile(msgspec.Struct, frozen=True):
    """The size in bytes and lines of an overwritten file, if it is too long for a diff."""

    size_bytes: int
    lines: int

    @property
    def note(self) -> str:
        """A note that the diff lacks the old content, and whether the change can be undone."""
        note = (
            f"The old content, {self.lines:,} lines in {self.size_bytes:,} bytes, is replaced as a"
            " whole; the diff has the new content alone."
        )
        if self.size_bytes <= COPIED_LIMIT_BYTES:
            return note
        limit = f"{COPIED_LIMIT_BYTES >> 20} MiB"
        return (
            f"{note} Undo can restore it only if git has it committed: Pegboard makes no copy of a"
            f" file larger than {limit}."
        )


class _Plan(msgspec.Struct, frozen=True):
    """A planned change of a file: the path in the project, the new bytes, and the diff."""

    title: str
    content: bytes
    diff: Diff
    existed: bool
    note: str = ""


class _Put(msgspec.Struct, frozen=True):
    """A written file: its path in the project, its diff, and its number of other hard links."""

    title: str
    diff: Diff
    links: int

    @property
    def counts(self) -> str:
        """The numbers of added and removed lines, as text."""
        return f"+{self.diff.additions} -{self.diff.deletions} lines"

    @property
    def linked(self) -> str:
        """A line on hard links that keep the file's old content; "" if there are none."""
        if not self.links:
            return ""
        return f"\n{self.links} other names of the file (hard links) keep the old content."


async def _put(context: ToolContext, path: Path, plan: _Plan, check: Callable[[], None]) -> _Put:
    """Write the file once the user approves the diff and `check` finds it still unchanged."""
    facts = {"filepath": str(path), "diff": plan.diff.text}
    if plan.note:
        facts["text"] = plan.note
    await context.require("edit", [plan.title], always=["*"], metadata=facts)
    await asyncio.to_thread(check)
    try:
        links = await context.files.replace(path, plan.content)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error}") from error
    return _Put(plan.title, plan.diff, links)


class EditStep(msgspec.Struct, frozen=True):
    """The outcome of one edit: the rule by which the text was found, and the number of places."""

    rule: str
    count: int


def _steps(context: ToolContext, text: str, edits: Sequence[Edit]) -> tuple[str, list[EditStep]]:
    """Apply all edits; return the new text and the outcome of each edit."""
    steps: list[EditStep] = []
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
        steps.append(EditStep(done.rule, done.count))
    return text, steps


def _edits_planned(
    context: ToolContext, path: Path, edits: Sequence[Edit]
) -> tuple[_Plan, list[EditStep]]:
    """Return the planned change, and the outcome of each edit; a new file follows EditorConfig."""
    before = _current(context, path, edits[0].old)
    old = before.text if before else ""
    text, steps = _steps(context, old, edits)
    if before is None:
        return _planned(context, path, None, new_text(path, text)), steps
    if text == old:
        raise ToolError(f"{path} was not changed: it has the new text already")
    after = FileText(text=text, encoding=before.encoding)
    return _planned(context, path, before, after), steps


def _writing_planned(context: ToolContext, path: Path, content: str) -> _Plan:
    """Return the change to this content, with the file's byte order mark and line ends."""
    before, long = _overwritten(context, path)
    after = before.replacement(content) if before else new_text(path, content)
    return _planned(context, path, before, after, long)


def _planned(
    context: ToolContext,
    path: Path,
    before: FileText | None,
    after: FileText,
    long: _LongFile | None = None,
) -> _Plan:
    """Return the planned change; if the old file is `long`, its diff has only the new lines."""
    title = os.path.relpath(path, context.worktree)
    content = (before or after).encode(after.text, name=str(path))
    diff = diff_texts(before.text if before and not long else "", after.text, name=title)
    if long:
        diff = replaced(diff, deletions=long.lines)
    return _Plan(title, content, diff, before is not None, long.note if long else "")


def _current(context: ToolContext, path: Path, old: str) -> FileText | None:
    """Return the file's text, or None if it does not exist yet."""
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
    """Check that an existing file is as it was read, and that a new file still does not exist."""
    if existed and path.stat().st_size:
        context.files.check_fresh(path)
    elif not existed and path.exists():
        raise ToolError(_NEW.format(path))


def _overwritten(context: ToolContext, path: Path) -> tuple[FileText | None, _LongFile | None]:
    """Return the old text, and the size of a long file; (None, None) for a new file."""
    if not _is_there(context, path):
        return None, None
    with os.fdopen(open_resolved(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        content = file.read(COMPARED_BYTES)
        size = os.fstat(file.fileno()).st_size
        before = decode_text(content, name=str(path), whole=size <= COMPARED_BYTES)
        if size <= COMPARED_BYTES:
            return before, None
        file.seek(0)
        chunks = iter(partial(file.read, _CHUNK_BYTES), b"")
        lines, last = 0, ""
        for text in codecs.iterdecode(chunks, before.encoding or "latin-1", "replace"):
            lines, last = lines + text.count("\n"), text[-1]
    return before, _LongFile(size, lines + (last != "\n"))


def _still_there(context: ToolContext, path: Path, *, existed: bool) -> None:
    """Check that an existing file is as it was read, and that a new file still does not exist."""
    if _is_there(context, path) and not existed:
        raise ToolError(_NEW.format(path))


def _is_there(context: ToolContext, path: Path) -> bool:
    """Return whether the file exists; raise an error if it has changed since it was read."""
    if path.is_dir():
        raise ToolError(f"{path} is a directory")
    if not path.exists():
        return False
    context.files.check_fresh(path)
    return True


def _edited(put: _Put, steps: Sequence[EditStep]) -> str:
    """Return a report about the edits for the model."""
    count = sum(step.count for step in steps)
    places = "one place" if count == 1 else f"{count} places"
    output = f"Edited {put.title}: {places}, {put.counts}."
    loose = dict.fromkeys(step.rule for step in steps if step.rule not in _EXACT)
    if loose:
        output += (
            f"\noldString was not there exactly; it was matched loosely ({', '.join(loose)})."
            f" Check the change:\n\n{put.diff.text}"
        )
    return output + put.linked


def _result(path: Path, put: _Put) -> ToolResult:
    diff = put.diff
    return ToolResult(
        output="",
        title=put.title,
        metadata={
            "diff": diff.text,
            "filediff": {
                "file": str(path),
                "patch": diff.text if len(diff.text) <= _LONGEST_PATCH else "",
                "additions": diff.additions,
                "deletions": diff.deletions,
            },
            "diagnostics": {},
        },
    )
