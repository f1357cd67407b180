"""Edits of a stored conversation: removed messages and changed parts."""

from pegboard import App
from pegboard.errors import NotFoundError
from pegboard.storage import DropMessage, DropPart, PutPart


async def edit_turn(app: App, session_id: str, change: PutPart | DropPart | DropMessage) -> None:
    """Change or remove a message or a part while the session is idle.

    :raises NotFoundError: when the session, the message or the part does not exist.
    :raises SessionBusyError: while the session runs, here or in another process.
    """
    message_id = change.part.message_id if isinstance(change, PutPart) else change.message_id
    part_id = None
    if not isinstance(change, DropMessage):
        part_id = change.part.id if isinstance(change, PutPart) else change.part_id
    async with app.hold_session(session_id) as fence:
        turn = await app.storage.turn(session_id, message_id)
        if part_id is not None and all(each.id != part_id for each in turn.parts):
            raise NotFoundError("part", part_id)
        await app.storage.commit(change, fence=fence)
