"""The transfer of sessions to a checkout's new folder after the checkout was moved or renamed."""

import asyncio
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard import App
from pegboard.errors import SessionBusyError, StorageError
from pegboard.schema.session import Session
from pegboard.unstable import open_workspace, temporary_beside
from pegboard_plugins.shared.frontend.copies import moved_here

MOST_FOLDERS = 1000
"""The maximum number of folders in the record; the oldest are dropped."""


async def take_sessions(app: App, file: Path, known: dict[str, str], mark: str) -> str:
    """Move the sessions of a checkout's former folders to the App's folder, and update `file`.

    `file` stores `known`, which maps each folder to a digest of its checkout. `mark` is the digest
    of the App's checkout; a former folder has the same digest and no longer exists. The result is a
    note on the moved sessions, or "".
    """
    former = await asyncio.to_thread(_gone, known, mark)
    try:
        moved = [each for old in former for each in await _moved(app, Path(old))]
    except StorageError as error:
        return f"the sessions of {', '.join(former)} did not follow the folder: {error}"
    rest = {old: other for old, other in known.items() if old not in former}
    await asyncio.to_thread(_write, file, {**rest, str(app.workspace.worktree): mark})
    if not moved:
        return ""
    what = "1 session" if len(moved) == 1 else f"{len(moved)} sessions"
    return f"{what} of {', '.join(former)} moved here with the folder"


def _gone(known: dict[str, str], mark: str) -> list[str]:
    return [old for old, other in known.items() if other == mark and not Path(old).exists()]


async def _moved(app: App, old: Path) -> list[Session]:
    """Move the sessions in and below `old` to the App's worktree, if their subfolder is there."""
    moved = []
    for session in await app.storage.sessions(roots=True):
        folder = Path(session.directory)
        if not folder.is_relative_to(old):
            continue
        new = app.workspace.worktree / folder.relative_to(old)
        if await asyncio.to_thread(new.is_dir):
            with suppress(SessionBusyError):  # another process moves it
                moved.append(await moved_here(app, session.id, open_workspace(new)))
    return moved


def _write(file: Path, known: dict[str, str]) -> None:
    """Store the known folders in `file`; ignore errors, so that a later move may go unnoticed."""
    draft = temporary_beside(file)
    with suppress(OSError):
        draft.write_bytes(msgspec.json.encode(dict(list(known.items())[-MOST_FOLDERS:])))
        draft.replace(file)
