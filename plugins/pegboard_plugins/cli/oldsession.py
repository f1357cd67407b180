"""The session that a run goes on with or copies."""

from pegboard import InvalidInputError
from pegboard.schema.session import Session
from pegboard_plugins.cli.backend import Backend
from pegboard_plugins.cli.runoptions import Options
from pegboard_plugins.shared.frontend import require_folder


async def old_session(backend: Backend, options: Options) -> Session:
    """Return the session that `run` goes on with or copies.

    A server runs each session in the session's own folder.

    :raises NotFoundError: when no session has the id.
    :raises InvalidInputError: when there is none to continue, or it works in another folder.
    """
    named = options.session_id
    found = await (backend.session(named) if named else backend.newest())
    if found is None:
        raise InvalidInputError("there is no session to continue in this project")
    if not options.forked and options.attach is None:
        require_folder(found, options.directory)
    return found
