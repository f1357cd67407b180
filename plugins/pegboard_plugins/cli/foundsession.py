"""The session for a command: by id, by the beginning of an id, or by the user's choice."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard import InvalidInputError
from pegboard.errors import NotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.session import Session

if TYPE_CHECKING:
    from pegboard import App

_SHOWN = 5
_SEARCHED = 500
"""The newest sessions, among which a misspelt id is looked for."""


def _choose(found: Sequence[Session]) -> Session:
    """Return the session used last, or the one that the user chooses from the newest."""
    if not found:
        raise InvalidInputError("there is no session in this project yet")
    from pegboard_plugins.cli.picking import can_pick, pick

    if len(found) == 1 or not can_pick():
        return found[0]
    rows = [(each.id, each.title) for each in found]
    chosen = pick("session", rows)
    return next(each for each in found if each.id == chosen)


async def find_session(app: "App", session_id: str | None, *, whole: bool = False) -> Session:
    """Return the session with this id or unique beginning of one; by default the last used.

    On a terminal without an id, the user chooses. With `whole` an id must be given in full.

    :raises NotFoundError: with the nearest ids, when there is none.
    :raises InvalidInputError: when several begin so, or the project has none at all.
    """
    if session_id is None:
        return _choose(await app.sessions(limit=_SEARCHED))
    try:
        return await app.session(session_id)
    except NotFoundError as error:
        every = await app.sessions(roots=False)
        meant = [each for each in every if session_id and each.id.startswith(session_id)]
        if len(meant) == 1 and not whole:
            return meant[0]
        if len(meant) == 1:
            text = f"{session_id} is the beginning of an id; give all of it: {meant[0].id}"
            raise InvalidInputError(text) from error
        if len(meant) > 1:
            shown = ", ".join(each.id for each in meant[:_SHOWN])
            text = f"{len(meant)} sessions begin with {session_id}: {shown}"
            raise InvalidInputError(text) from error
        hint = nearest_names(session_id, [each.id for each in every[:_SEARCHED]])
        raise NotFoundError("session", session_id, suggestions=hint) from error


async def newest_session(app: "App") -> Session | None:
    """Return the session used last in the App's folder, else in the project."""
    project, folder = app.workspace.project_id, str(app.workspace.directory)
    here = await app.storage.sessions(project, roots=True, limit=1, directory=folder)
    found = here or await app.sessions(limit=1)
    return found[0] if found else None
