"""The session of a command: by id, by the beginning of an id, or by the user's choice."""

from pegboard import App, InvalidInputError
from pegboard.schema.session import Session
from pegboard_plugins.cli.picking import can_pick, pick
from pegboard_plugins.shared.frontend import LISTED, named_session


async def find_session(app: App, session_id: str | None, *, whole: bool = False) -> Session:
    """Return the session with this id or unique beginning of an id.

    Without an id, the user chooses one on a terminal; otherwise the most recently used one is
    returned. With `whole`, a given id must be complete.

    :raises NotFoundError: when no session matches; it names the nearest ids.
    :raises InvalidInputError: when several ids begin so, or the project has no session.
    """
    if session_id is not None:
        return await named_session(app, session_id, whole=whole)
    found = await app.sessions(limit=LISTED)
    if not found:
        raise InvalidInputError("there is no session in this project yet")
    if len(found) == 1 or not can_pick():
        return found[0]
    chosen = pick("session", [(each.id, each.title) for each in found])
    return next(each for each in found if each.id == chosen)
