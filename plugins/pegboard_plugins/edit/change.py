"""The change of one file, by edits or as a whole: its text before, its bytes, and the report."""

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
    """A text in the place of another; an empty `old` makes a new file."""

    old: str
    new: str
    replace_all: bool = False


async def change_file(context: ToolContext, path: Path, edits: Sequence[Edit]) -> ToolResult:
    """Change a file by all edits in turn, or by none, and return the report.

    :raises ToolError: when an edit fails; the file is then unchanged.
    :raises PermissionDeniedError: when the change is not allowed.
    """
    async with context.files.lock(path):
        before = await asyncio.to_thread(_current, context, path, edits[0].old)
        old = before.text if before else ""
        text, steps = await asyncio.to_thread(_steps, context, old, edits)
        if before is not None and text == old:
            raise ToolError(f"{path} was not changed: it has the new text already")
        after = await asyncio.to_thread(_laid_down, path, before, text)
        check = partial(_unchanged, context, path, existed=before is not None)
        put = await _put(context, path, _Change(before, after), check)
    await context.record_edit(path)
    return replaced(_result(path, put), output=_edited(put, steps))


async def write_file(context: ToolContext, path: Path, content: str) -> ToolResult:
    """Write a whole file and return the report.

    :raises ToolError: when it fails; the file is then unchanged.
    :raises PermissionDeniedError: when the change is not allowed.
    """
    async with context.files.lock(path):
        before, long = await asyncio.to_thread(_overwritten, context, path)
        after = await asyncio.to_thread(_laid_out, path, before, content)
        check = partial(_still_there, context, path, existed=before is not None)
        put = await _put(context, path, _Change(before, after, long), check)
    await context.record_edit(path)
    result = _result(path, put)
    existed = before is not None
    verb = "Overwrote" if existed else "Wrote"
    note = f"\n{long.note}" if long else ""
    return replaced(
        result,
        output=f"{verb} {put.title}: {put.counts}.{put.linked}{note}",
        metadata={**result.metadata, "filepath": str(path), "exists": existed},
    )


class _LongFile(msgspec.Struct, frozen=True):
    """The old content of a file that is overwritten and too long for a diff."""

    size_bytes: int
    lines: int

    @property
    def note(self) -> str:
        """What the diff leaves out, and whether the change can be undone."""
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


class _Change(msgspec.Struct, frozen=True):
    """The text of a file before and after; `before` is the beginning of a long file."""

    before: FileText | None
    after: FileText
    long: _LongFile | None = None

    def diff(self, name: str) -> Diff:
        """Return the diff, which counts all lines of a long file as deleted."""
        old = self.before.text if self.before and not self.long else ""
        diff = diff_texts(old, self.after.text, name=name)
        return replaced(diff, deletions=self.long.lines) if self.long else diff


class _Put(msgspec.Struct, frozen=True):
    """What was written: the file's name in the project, the diff, and its other names."""

    title: str
    diff: Diff
    links: int

    @property
    def counts(self) -> str:
        """How many lines came and went."""
        return f"+{self.diff.additions} -{self.diff.deletions} lines"

    @property
    def linked(self) -> str:
        """A line about the other names, if there are some."""
        if not self.links:
            return ""
        return f"\n{self.links} other names of the file (hard links) keep the old content."


async def _put(
    context: ToolContext, path: Path, change: _Change, check: Callable[[], None]
) -> _Put:
    """Write the text, once its diff was allowed; the user may have taken a while, so `check`."""
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    after = change.after
    content = (change.before or after).encode(after.text, name=str(path))
    diff = await asyncio.to_thread(change.diff, title)
    facts = {"filepath": str(path), "diff": diff.text}
    if change.long:
        facts["text"] = change.long.note
    await context.require("edit", [title], always=["*"], metadata=facts)
    await asyncio.to_thread(check)
    try:
        links = await context.files.replace(path, content)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error}") from error
    return _Put(title, diff, links)


class Step(msgspec.Struct, frozen=True):
    """What one edit came to: the rule that found its places, and their number."""

    rule: str
    count: int


def _steps(context: ToolContext, text: str, edits: Sequence[Edit]) -> tuple[str, list[Step]]:
    """Apply all edits; return the new text and the result of each edit."""
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
    """Return the changed text; a new file follows EditorConfig."""
    return FileText(text=text, encoding=before.encoding) if before else new_text(path, text)


def _current(context: ToolContext, path: Path, old: str) -> FileText | None:
    """Read the file's text; None for a new file."""
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
    """Nothing, if the file to be edited is as it was, or still none."""
    if existed and path.stat().st_size:
        context.files.check_fresh(path)
    elif not existed and path.exists():
        raise ToolError(_NEW.format(path))


def _overwritten(context: ToolContext, path: Path) -> tuple[FileText | None, _LongFile | None]:
    """Return the content, of a long file the beginning and its size; None where no file is."""
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


def _laid_out(path: Path, before: FileText | None, content: str) -> FileText:
    """Return the written text with the marks and line ends of the file, or of a new one."""
    return before.replacement(content) if before else new_text(path, content)


def _still_there(context: ToolContext, path: Path, *, existed: bool) -> None:
    """Nothing, if the file to be written is as it was read, or still none."""
    if _is_there(context, path) and not existed:
        raise ToolError(_NEW.format(path))


def _is_there(context: ToolContext, path: Path) -> bool:
    """Whether there is a file already; then it must have been read as it is."""
    if path.is_dir():
        raise ToolError(f"{path} is a directory")
    if not path.exists():
        return False
    context.files.check_fresh(path)
    return True


def _edited(put: _Put, steps: Sequence[Step]) -> str:
    """Describe the edits for the model."""
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
