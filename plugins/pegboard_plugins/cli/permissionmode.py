"""The permission mode of a run."""

from typing import TYPE_CHECKING

from pegboard.schema.session import Session
from pegboard_plugins.shared.frontend import mode_of

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Feed


async def take_mode(feed: "Feed", session: Session, *, chosen: str | None) -> None:
    """Set the session's permission mode: the chosen one, its own, or the feed's default.

    The default is that of a user who is there to be asked.
    """
    if chosen or not mode_of(session):
        await feed.change_mode(session.id, chosen or feed.mode)
