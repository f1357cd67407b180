"""The withdrawal of a prompt that no model has read yet."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegboard.engine.history import as_seen, is_compaction
from pegboard.engine.run import Run
from pegboard.engine.sessions import SessionIds, claim_session, refuse_claimed
from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.storage import Storage
from pegboard.storage.changes import DropMessage

LOOK_EVERY_S, LOOKS = 0.02, 500
"""While the files of a prompt are read: ten seconds at the most."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The withdrawal of unread prompts of one session.

    `run` returns the session's run, or None if it is idle. `prepares` returns whether a prompt of
    the session is being stored or expanded at present.
    """

    storage: Storage
    ids: SessionIds
    run: Callable[[], Run | None]
    prepares: Callable[[], bool]

    async def of(self, session_id: str, message_id: str) -> bool:
        """Withdraw a prompt and return True, or return False if a model has already read it.

        :raises NotFoundError: when the session has no such message.
        :raises SessionBusyError: while another process runs the session, or when a prompt is
          prepared for longer than 10 seconds.
        """
        for _ in range(LOOKS):
            decided = await self._decided(session_id, message_id)
            if decided is not None:
                return decided
            await asyncio.sleep(LOOK_EVERY_S)
        raise SessionBusyError(session_id)

    async def _decided(self, session_id: str, message_id: str) -> bool | None:
        async with self.ids.changing:  # nothing is stored meanwhile, and no run begins at rest
            await refuse_claimed(self.storage, session_id)
            run = self.run()
            ours = run.history.turns if run is not None else []
            if any(turn.info.id == message_id for turn in ours):
                unread = is_unread(ours, message_id)
            else:
                unread = is_unread(as_seen(await self.storage.turns(session_id)), message_id)
                if run is not None or self.prepares():
                    return None
            if unread:  # there was no await since the look
                self.ids.withdrawn.add(message_id)
                await self._drop(run, DropMessage(session_id, message_id))
            return unread

    async def _drop(self, run: Run | None, drop: DropMessage) -> None:
        try:
            if run is None:
                async with claim_session(self.storage, drop.session_id) as fence:
                    await self.storage.commit(drop, fence=fence)
                return
            run.history.drop(drop.message_id)
            run.writer.change(drop)  # so it is told before the next answer
            if not await run.writer.store():
                await self.storage.commit(drop)
        except BaseException:
            self.ids.withdrawn.discard(drop.message_id)
            raise


def is_unread(turns: Sequence[Turn], message_id: str) -> bool:
    """Return whether the message is a prompt and no answer or compaction follows it.

    This is exact: an empty answer, or the request for a compaction, is added to the turns at the
    moment when the history is read.

    :raises NotFoundError: when no turn has this id.
    """
    place = next((n for n, turn in enumerate(turns) if turn.info.id == message_id), None)
    if place is None:
        raise NotFoundError("message", message_id)
    later = turns[place:]
    answered = any(isinstance(each.info, AssistantMessage) or is_compaction(each) for each in later)
    return isinstance(turns[place].info, UserMessage) and not answered
