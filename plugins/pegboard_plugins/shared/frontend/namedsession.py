"""The lookup of a session by its id or the beginning of its id, and of the newest session."""

from pegboard import App, InvalidInputError
from pegboard.errors import NotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.session import Session

_SHOWN = 5
LISTED = 500
"""The number of newest sessions that are listed, and searched for a misspelt id."""


async def named_session(app: App, session_id: str, *, whole: bool = False) -> Session:
    """Return the session with this id or, unless `whole`, with this unique beginning of an id.

    :raises NotFoundError: when no session matches; it names the nearest ids.
    :raises InvalidInputError: when several ids begin with `session_id`, or when `whole` is true and
        `session_id` is only the beginning of an id.
    """
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
        hint = nearest_names(session_id, [each.id for each in every[:LISTED]])
        raise NotFoundError("session", session_id, suggestions=hint) from error


async def newest_session(app: App) -> Session | None:
    """Return the most recently used session of the App's folder, or else of the project."""
    project, folder = app.workspace.project_id, str(app.workspace.directory)
    here = await app.storage.sessions(project, roots=True, limit=1, directory=folder)
    found = here or await app.sessions(limit=1)
    return found[0] if found else None
