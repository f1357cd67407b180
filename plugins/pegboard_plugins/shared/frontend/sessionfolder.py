"""The check that a session belongs to a folder, and the move of a renamed folder's sessions."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pegboard import App, InvalidInputError
from pegboard.schema.session import Session
from pegboard_plugins.shared.frontend.copies import moved_here

_SHOWN = 3


def require_folder(session: Session, folder: Path) -> None:
    """Reject a session that belongs to another folder.

    Its paths, its snapshots and the user's approvals belong to its own folder.

    :raises InvalidInputError: with both folders and the commands that work.
    """
    own, here = Path(session.directory), folder.resolve()
    if own.resolve() == here:
        return
    if own.is_dir():
        way = f"start Pegboard there: `pegboard -C {shlex.quote(session.directory)}`; or"
    else:
        way = (
            f"that folder does not exist any more; if this is its new name, {_adopting(own)}"
            " makes its sessions those of this folder; or"
        )
    raise InvalidInputError(
        f"session {session.id} works in {own}, not in {here}: {way} "
        f"go on here with a copy of it: `pegboard session fork {session.id}`"
    )


def _adopting(folder: Path) -> str:
    return f"`pegboard session adopt {shlex.quote(str(folder))}`"


async def gone_folders(app: App) -> dict[Path, int]:
    """Return the missing folders that have sessions, each with its number of sessions.

    The folder of the most recently used session comes first.
    """
    count = Counter(Path(each.directory) for each in await app.storage.sessions(roots=True))
    return {folder: number for folder, number in count.items() if not folder.is_dir()}


def gone_note(folders: Mapping[Path, int]) -> str:
    """Return a sentence that names the missing folders, and how to move their sessions."""
    shown = ", ".join(f"{folder} ({number})" for folder, number in [*folders.items()][:_SHOWN])
    more = f" and {len(folders) - _SHOWN} more" if len(folders) > _SHOWN else ""
    return (
        f"there are sessions of folders that do not exist any more: {shown}{more}. If one of them"
        f" is the old name of this folder, make its sessions those of this folder:"
        f" {_adopting(next(iter(folders)))}"
    )


async def adopt_folder(app: App, folder: Path) -> tuple[Session, ...]:
    """Move the sessions of a missing folder to the App's folder.

    :raises InvalidInputError: when the folder exists, or no session worked in it.
    :raises SessionBusyError: while one of the sessions runs.
    """
    old = await asyncio.to_thread(folder.resolve)
    if await asyncio.to_thread(old.is_dir):
        raise InvalidInputError(
            f"{old} exists, and its sessions work there: copy single ones to here with"
            " `pegboard session fork ID`"
        )
    found = await app.storage.sessions(roots=True, directory=str(old))
    if not found:
        raise InvalidInputError(
            f"no session worked in {old}; `pegboard session list --all-projects` shows the folders"
        )
    return tuple([await moved_here(app, each.id) for each in found])
