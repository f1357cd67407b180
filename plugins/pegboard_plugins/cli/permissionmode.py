"""The permission mode of a run."""

from typing import TYPE_CHECKING

from pegboard.schema.session import Session
from pegboard_plugins.shared.frontend import mode_of

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Feed


async def take_mode(feed: "Feed", session: Session, *, chosen: str | None) -> None:
    """Set the session's permission mode to `chosen`, or keep its mode if `chosen` is None.

    A session without a mode gets the feed's default mode, which assumes a user to ask.
    """
    if chosen or not mode_of(session):
        await feed.change_mode(session.id, chosen or feed.mode)
