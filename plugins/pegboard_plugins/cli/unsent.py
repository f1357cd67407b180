"""Prompts that are stored and were not sent."""

from pegboard import PegboardError
from pegboard.errors import ServerUnreachableError
from pegboard_plugins.cli.backend import Backend


async def kept_in(
    session_id: str, backend: Backend, attach: str | None, error: PegboardError
) -> str:
    """Return where the prompt is, if it was stored before its model or agent was not found."""
    if isinstance(error, ServerUnreachableError) or not await backend.is_begun(session_id):
        return ""
    place = f"--attach {attach} " if attach else ""
    text = str(error)  # all that a server's error has
    other = "--agent NAME" if "agent not found" in text else "-m PROVIDER/MODEL"
    stop = "" if text.endswith((".", "?")) else "."
    way_on = f"pegboard run {place}-s {session_id} {other} go on"
    return f"{stop} The prompt is saved in session {session_id}: {way_on}"
