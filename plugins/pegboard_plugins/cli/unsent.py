"""The hint on how to send a prompt that was stored but could not be sent to a model."""

from typing import TYPE_CHECKING

from pegboard import PegboardError
from pegboard.errors import ServerUnreachableError

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Feed


async def kept_in(session_id: str, feed: "Feed", attach: str | None, error: PegboardError) -> str:
    """Return a hint on how to send the prompt again, or "" if the session has not stored it."""
    if isinstance(error, ServerUnreachableError) or not await feed.turns(session_id, limit=1):
        return ""
    place = f"--attach {attach} " if attach else ""
    text = str(error)  # all that a server's error has
    other = "--agent NAME" if "agent not found" in text else "-m PROVIDER/MODEL"
    stop = "" if text.endswith((".", "?")) else "."
    way_on = f"pegboard run {place}-s {session_id} {other} go on"
    return f"{stop} The prompt is saved in session {session_id}: {way_on}"
