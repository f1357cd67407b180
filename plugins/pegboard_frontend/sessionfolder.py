"""The folder that a session works in."""

import shlex
from pathlib import Path

from pegboard import InvalidInputError
from pegboard.schema.session import Session


def require_folder(session: Session, folder: Path) -> None:
    """Reject a session that works in another folder than this one.

    Its paths, its snapshots and the user's approvals are those of its own folder.

    :raises InvalidInputError: with both folders and the commands that work.
    """
    own, here = Path(session.directory), folder.resolve()
    if own.resolve() == here:
        return
    if own.is_dir():
        there = f"start Pegboard there: pegboard -C {shlex.quote(session.directory)}; or"
    else:
        there = "that folder does not exist any more;"
    raise InvalidInputError(
        f"session {session.id} works in {own}, not in {here}: {there} "
        f"go on here with a copy of it: pegboard session fork {session.id}"
    )
