"""The resumption of sessions that an earlier server process left unfinished."""

import asyncio
import logging
from pathlib import Path

from pegboard import PegboardError
from pegboard.errors import AbortedError, SessionBusyError
from pegboard_plugins.server.serverstate import ServerState

_log = logging.getLogger("pegboard.server")


async def resume_all(state: ServerState) -> None:
    """Continue the sessions that an earlier server has left unfinished, concurrently."""
    left = await asyncio.to_thread(state.running.left)
    async with asyncio.TaskGroup() as group:
        for session_id, directory in left:
            group.create_task(_resume(state, session_id, directory), name=f"resume {session_id}")


async def _resume(state: ServerState, session_id: str, directory: Path) -> None:
    try:
        app = await state.pool.app(directory)
        session = await app.session(session_id)
        if session.parent_id is None and app.config.resume_on_restart:
            _log.info("going on with session %s of %s", session_id, directory)
            with state.pool.hold(app):
                await app.resume(session_id)
            return
    except (SessionBusyError, AbortedError):
        return  # another process runs it, or somebody has stopped it
    except PegboardError as error:
        _log.warning("session %s of %s does not go on: %s", session_id, directory, error)
    # A subagent's session goes on when its caller asks.
    await asyncio.to_thread(state.running.drop, session_id)
