"""The existing session that a run continues or copies."""

from typing import TYPE_CHECKING

from pegboard import InvalidInputError
from pegboard.schema.session import Session
from pegboard_plugins.cli.runoptions import Options
from pegboard_plugins.shared.frontend import require_folder

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Feed


async def old_session(feed: "Feed", options: Options) -> Session:
    """Return the existing session that `run` continues or copies.

    A session on a server may belong to another folder.

    :raises NotFoundError: when no session has the id.
    :raises InvalidInputError: when there is no session, or it belongs to another folder.
    """
    named = options.session_id
    found = await (feed.session(named) if named else feed.newest())
    if found is None:
        raise InvalidInputError("there is no session to continue in this project")
    if not options.forked and options.attach is None:
        require_folder(found, options.directory)
    return found
