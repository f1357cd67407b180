"""The writing of a patch: all of its files are changed, or none."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from pegboard import ToolContext, ToolError
from pegboard.files import remove_resolved
from pegboard.plugins import shield
from pegboard.unstable import move_resolved, temporary_beside
from pegboard_plugins.apply_patch.changes import PatchedFile
from pegboard_plugins.apply_patch.parser import PatchError

_Undo = list[tuple[Path, Callable[[], Awaitable[object]]]]
"""What puts each path back, the last one first."""


async def write_all(context: ToolContext, changes: Sequence[PatchedFile]) -> int:
    """Write all changed files; return how many hard links still have the old content.

    If the call is cancelled, the writing is completed, and the error says how it ended.

    :raises PatchError: `io`, when a file cannot be changed; all files then have their old content.
    :raises ToolError: when a file cannot be changed and an already changed file cannot be restored.
    """
    try:
        # No limit: these are a few writes, and half of them would be worse than all.
        return await shield(_write_all(context, changes))
    except asyncio.CancelledError as error:
        text = "The patch is applied whole: all its files are changed."
        raise asyncio.CancelledError(str(error.__cause__ or text)) from error


async def _write_all(context: ToolContext, changes: Sequence[PatchedFile]) -> int:
    links = 0
    undo: _Undo = []
    leaving: list[tuple[Path, Path]] = []
    try:
        for change in changes:
            links += await _write(context, change, undo, leaving)
    except OSError as error:
        stand = await _put_back(undo)
        if stand:
            text = f"the patch failed ({error}), and these files could not be put back"
            raise ToolError(f"{text}: {', '.join(map(str, stand))}") from error
        raise PatchError("io", f"a file cannot be changed: {error}") from error
    except BaseException:
        await _put_back(undo)
        raise
    for path, aside in leaving:
        await asyncio.to_thread(remove_resolved, aside)
        context.files.note_read(path)
    return links


async def _put_back(undo: _Undo) -> list[Path]:
    """Undo the writes to files, the newest first; return the paths that could not be restored."""
    stand: dict[Path, None] = {}
    for path, put in reversed(undo):
        try:
            await put()
        except OSError:
            stand[path] = None
    return list(stand)


async def _write(
    context: ToolContext, change: PatchedFile, undo: _Undo, leaving: list[tuple[Path, Path]]
) -> int:
    """Write, move or delete one file; return how many hard links still have the old content.

    `undo` gets the steps that restore the file. `leaving` gets a deleted file's path and the path
    to which it is moved until all files are written.
    """
    files = context.files
    if change.after is None:
        await files.will_change(change.path)
        # Aside first: until all other files are written the deleted ones are still whole.
        aside = temporary_beside(change.path)
        await asyncio.to_thread(move_resolved, change.path, aside)
        undo.append((change.path, partial(_rename_back, context, aside, change.path)))
        leaving.append((change.path, aside))
        return 0
    if change.before is None:
        _forget_folders(change.path, undo)
        await files.replace(change.path, change.after)
        undo.append((change.path, partial(asyncio.to_thread, remove_resolved, change.path)))
        return 0
    path = change.path
    if change.target is not None:
        path = change.target
        await files.will_change(change.path)
        await files.will_change(path)
        _forget_folders(path, undo)
        await asyncio.to_thread(move_resolved, change.path, path)
        undo.append((change.path, partial(_rename_back, context, path, change.path)))
        files.note_read(change.path)
    links = await files.replace(path, change.after)  # as before, when it fails
    undo.append((change.path, partial(files.replace, path, change.before)))
    return links


async def _rename_back(context: ToolContext, now: Path, before: Path) -> None:
    await asyncio.to_thread(move_resolved, now, before)
    context.files.note_read(before)


def _forget_folders(path: Path, undo: _Undo) -> None:
    """Add a step to the undo that removes the folders which the new file at `path` creates."""
    missing = [folder for folder in path.parents if not folder.exists()]
    undo.append((path, partial(asyncio.to_thread, _remove_folders, missing)))


def _remove_folders(folders: Sequence[Path]) -> None:
    with suppress(OSError):  # one that somebody else has filled stays
        for folder in folders:
            remove_resolved(folder)
