"""The permission mode of a run."""

from pegboard.schema.session import Session
from pegboard_plugins.cli.backend import Backend
from pegboard_plugins.shared.frontend import mode_of


async def take_mode(backend: Backend, session: Session, *, chosen: str | None) -> None:
    """Give the session the chosen mode; without one its own, or the default.

    The default is that of a user who is there to be asked.
    """
    if chosen or not mode_of(session):
        await backend.change_mode(session, chosen)
