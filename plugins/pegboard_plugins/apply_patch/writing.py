"""All files of a patch are changed, or none."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from pegboard import ToolContext, ToolError, move_resolved, remove_resolved, temporary_beside
from pegboard_plugins.apply_patch.changes import Change
from pegboard_plugins.apply_patch.parser import PatchError


async def write_all(context: ToolContext, changes: Sequence[Change]) -> int:
    """How many other names (hard links) keep old content, once every file is changed.

    A cancelled call waits for that.

    :raises PatchError: `io`, when a file cannot be changed; then all are as before.
    :raises ToolError: when one cannot, and another cannot be put back.
    """
    work = asyncio.create_task(_write_all(context, changes))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # No limit: these are a few writes, and half of them would be worse than all.
        await asyncio.wait({work})
        work.cancelled() or work.exception()
        raise


async def _write_all(context: ToolContext, changes: Sequence[Change]) -> int:
    links = 0
    leaving: list[tuple[Path, Path]] = []
    async with AsyncExitStack() as undo:
        undo.push_async_exit(_undone)
        try:
            for change in changes:
                links += await _write(context, change, undo, leaving)
        except OSError as error:
            raise PatchError("io", f"a file cannot be changed: {error}") from error
        undo.pop_all()
    for path, aside in leaving:
        await asyncio.to_thread(remove_resolved, aside)
        context.files.note_read(path)
    return links


async def _undone(kind: object, error: BaseException | None, trace: object) -> None:
    """Say what is left when putting back has failed too."""
    del kind, trace
    if isinstance(error, OSError):
        raise ToolError(
            f"the patch failed, and what was changed already cannot all be put back: {error}"
        ) from error


async def _write(
    context: ToolContext,
    change: Change,
    undo: AsyncExitStack,
    leaving: list[tuple[Path, Path]],
) -> int:
    """How many other names of the file keep what it was."""
    files = context.files
    if change.after is None:
        # Aside first: until all other files are written the deleted ones are still whole.
        aside = temporary_beside(change.path)
        await asyncio.to_thread(move_resolved, change.path, aside)
        undo.push_async_callback(_rename_back, context, aside, change.path)
        leaving.append((change.path, aside))
        return 0
    if change.before is None:
        _forget_folders(change.path, undo)
        await files.replace(change.path, change.after)
        undo.push_async_callback(asyncio.to_thread, remove_resolved, change.path)
        return 0
    path = change.path
    if change.target is not None:
        path = change.target
        _forget_folders(path, undo)
        await asyncio.to_thread(move_resolved, change.path, path)
        undo.push_async_callback(_rename_back, context, path, change.path)
        files.note_read(change.path)
    undo.push_async_callback(files.replace, path, change.before)
    return await files.replace(path, change.after)


async def _rename_back(context: ToolContext, now: Path, before: Path) -> None:
    await asyncio.to_thread(move_resolved, now, before)
    context.files.note_read(before)


def _forget_folders(path: Path, undo: AsyncExitStack) -> None:
    """Have the folders that a new file will make go again with it."""
    missing = [folder for folder in path.parents if not folder.exists()]
    undo.push_async_callback(asyncio.to_thread, _remove_folders, missing)


def _remove_folders(folders: Sequence[Path]) -> None:
    with suppress(OSError):  # one that somebody else has filled stays
        for folder in folders:
            remove_resolved(folder)
