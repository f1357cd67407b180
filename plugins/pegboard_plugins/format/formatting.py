"""The formatting of the files that a tool call has changed."""

import asyncio
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

import pegboard.unstable
from pegboard import ToolContext, ToolError, ToolResult
from pegboard.files import diff_texts, open_resolved, remove_resolved
from pegboard.plugins import StashKey
from pegboard.processes import ProcessResult
from pegboard_plugins.format.known import Formatter, fitting, installed

FILE_S = 10.0
"""How long one formatter may take for one file."""
CALL_S = 40.0
"""After this time no further file of a call is formatted."""
SHOWN_LINES = 60
REASON_CHARS = 500
_TOLD = StashKey[set[str]]()
"""The reasons why programs of the project do not run; each is reported once."""


class FormattedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a file, and the file's permission bits."""

    content: bytes
    mode: int


def written(path: Path) -> FormattedFile | None:
    """Read a regular file of at most 5 MiB; return None for any other file and for a link."""
    try:
        number = open_resolved(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    facts = os.fstat(number)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > LIMIT_BYTES:
        os.close(number)
        return None
    with os.fdopen(number, "rb") as file:
        return FormattedFile(content=file.read(), mode=stat.S_IMODE(facts.st_mode))


def lost(before: FormattedFile, after: FormattedFile) -> str:
    """Describe damage that a formatter cannot have intended, or return ""."""
    if before.content.strip() and not after.content.strip():
        return "it left nothing of the file"
    if _letters(after.content) < _letters(before.content) * LEFT_SHARE:
        return "it left less than half of the file"
    return "it left no text in UTF-8" if _is_text(before) and not _is_text(after) else ""


def set_mode(path: Path, mode: int) -> None:
    """Set the permission bits of a file; do nothing if the file is gone or has become a link."""
    with suppress(OSError):
        number = open_resolved(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fchmod(number, mode)
        finally:
            os.close(number)


def _letters(content: bytes) -> int:
    return len(content.translate(None, _NO_LETTERS))


def _is_text(file: FormattedFile) -> bool:
    """Return whether the file's content is UTF-8 without zero bytes.

    In older encodings, the count of letters that `lost` compares would not detect damage.
    """
    if b"\0" in file.content:
        return False
    try:
        file.content.decode()
    except UnicodeDecodeError:
        return False
    return True


class _FormatOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of running a formatter; `failure` says why the file was not formatted.

    `spoilt` says why the file's old content could not be restored after a failure.
    """

    before: bytes
    after: bytes
    failure: str = ""
    spoilt: str = ""


async def formatted(context: ToolContext, result: ToolResult) -> ToolResult | None:
    """Format the files that a tool call changed; return the result with notes, or None if none."""
    notes: list[str] = []
    until = time.monotonic() + CALL_S
    for path in context.changed:
        if time.monotonic() > until:
            notes.append(f"({path.name} and what follows were not formatted: it took too long)")
            break
        notes.extend(await _formatted(context, path))
    if not notes:
        return None
    return replace(result, output="\n\n".join((result.output, *notes)))


async def _formatted(context: ToolContext, path: Path) -> list[str]:
    """Format one file; return notes for the model on what changed and what failed."""
    session = context.session
    wanted = await asyncio.to_thread(fitting, path, session.worktree, session.config.formatter)
    if not wanted:  # the environment of programs costs one
        return []
    search = pegboard.unstable.ProgramSearch.of(session, await context.process_env())
    chosen = await asyncio.to_thread(installed, wanted, path, search)
    notes: list[str] = []
    told = context.stash.setdefault(_TOLD, set)
    for formatter in chosen:
        if formatter.refused and formatter.refused not in told:
            told.add(formatter.refused)
            notes.append(f"({formatter.name}: {formatter.refused})")
        if not formatter.command:
            continue
        async with context.files.lock(path):
            outcome = await _run(context, formatter, path)
        if outcome is None:
            continue
        if outcome.spoilt:
            notes.append(
                f"({formatter.name} failed at {path.name}: {outcome.failure}. What was there cannot"
                f" be put back: {outcome.spoilt}. Look at it before you go on)"
            )
        elif outcome.failure:
            notes.append(
                f"({formatter.name} could not format {path.name}, which is as it was written:"
                f" {outcome.failure})"
            )
        elif outcome.after != outcome.before:
            await context.record_edit(path)
            notes.append(await asyncio.to_thread(_note, formatter, path, outcome))
    return notes


async def _run(context: ToolContext, formatter: Formatter, path: Path) -> _FormatOutcome | None:
    """Run a formatter on a file; restore the file if the formatter fails or is cancelled."""
    before = await asyncio.to_thread(written, path)
    if before is None:
        return None
    try:
        return await _outcome(context, formatter, path, before)
    except asyncio.CancelledError:
        await _put_back(context, path, before)
        raise


async def _outcome(
    context: ToolContext, formatter: Formatter, path: Path, before: FormattedFile
) -> _FormatOutcome:
    try:
        done = await context.run(
            formatter.command, env=formatter.environment, timeout_s=FILE_S, limit_bytes=1 << 14
        )
        failure = _failure(done)
    except ToolError as error:
        failure = str(error)
    after = await asyncio.to_thread(written, path)
    if after is None or (failure := failure or lost(before, after)):
        spoilt = "" if after == before else await _put_back(context, path, before)
        return _FormatOutcome(
            before=before.content,
            after=before.content,
            failure=failure or "it left no file there, or a link, or a very long one",
            spoilt=spoilt,
        )
    if after.mode != before.mode:
        await asyncio.to_thread(set_mode, path, before.mode)
    if after != before:
        context.files.note_read(path)
    return _FormatOutcome(before=before.content, after=after.content)


async def _put_back(context: ToolContext, path: Path, before: FormattedFile) -> str:
    """Restore the file's content and mode; return "", or the reason why restoring failed."""
    try:
        if await asyncio.to_thread(path.is_symlink):
            await asyncio.to_thread(remove_resolved, path)
        await context.files.replace(path, before.content)
        await asyncio.to_thread(set_mode, path, before.mode)
    except OSError as error:
        return str(error)
    return ""


def _failure(done: ProcessResult) -> str:
    if done.timed_out:
        return f"it took longer than {FILE_S:g} s"
    if done.exceeded:
        return f"it was stopped: {done.exceeded}"
    if done.exit_code != 0:
        return done.output.strip()[:REASON_CHARS] or f"exit code {done.exit_code}"
    return ""


def _note(formatter: Formatter, path: Path, outcome: _FormatOutcome) -> str:
    before, after = outcome.before.decode(errors="replace"), outcome.after.decode(errors="replace")
    diff = diff_texts(before, after, name=path.name)
    changed = f"{formatter.name} formatted {path.name}: +{diff.additions} -{diff.deletions} lines"
    if diff.text.count("\n") > SHOWN_LINES:
        return f"{changed}. Read it again before you edit it."
    return f"{changed}.\n\n{diff.text}"


LIMIT_BYTES = 5 << 20
"""A longer file is left as it is."""
LEFT_SHARE = 0.5
"""Formatters move blanks, marks and lines; of letters and digits at least so many stay."""
_NO_LETTERS = bytes(byte for byte in range(0x80) if not chr(byte).isalnum())
