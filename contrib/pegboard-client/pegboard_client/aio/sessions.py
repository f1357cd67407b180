"""The methods for a server's sessions: create, list, change, fork, revert and delete."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pegboard.schema.message import Turn
from pegboard.schema.session import Rule, Session, SessionStatus
from pegboard_client.address import route
from pegboard_client.aio.link import AsyncLink
from pegboard_client.wording import model_choice
from pegboard_plugins.shared.frontend import (
    ChangedTime,
    ForkBody,
    RevertBody,
    SessionBody,
    SessionChange,
    SummarizeBody,
)


class AsyncSessions:
    """The sessions of the client's project."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link

    async def create(
        self,
        *,
        title: str | None = None,
        parent_id: str | None = None,
        agent: str | None = None,
        permission: Sequence[Rule] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Create a session; the rules in `permission` can only restrict the configured rules."""
        body = SessionBody(
            title=title,
            parent_id=parent_id,
            agent=agent,
            permission=tuple(permission) or None,
            metadata=dict(metadata) if metadata is not None else None,
        )
        return await self._link.post(Session, route("session"), body)

    async def list(
        self, *, limit: int | None = None, search: str | None = None, roots: bool = True
    ) -> tuple[Session, ...]:
        """Return the project's sessions, last used first; `roots` omits subagents' sessions."""
        return await self._link.get(
            tuple[Session, ...], route("session"), limit=limit, search=search, roots=roots
        )

    async def get(self, session_id: str) -> Session:
        """Return the session with this id."""
        return await self._link.get(Session, route("session", session_id))

    async def update(
        self,
        session_id: str,
        *,
        title: str | None = None,
        archived_at: int | msgspec.UnsetType | None = msgspec.UNSET,
        permission: Sequence[Rule] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Change a session and return it; rules and metadata cannot change during a turn.

        `archived_at` is in milliseconds since the epoch; None restores an archived session.
        """
        body = SessionChange(
            title=title,
            time=None if archived_at is msgspec.UNSET else ChangedTime(archived=archived_at),
            permission=None if permission is None else tuple(permission),
            metadata=None if metadata is None else dict(metadata),
        )
        return await self._link.patch(Session, route("session", session_id), body)

    async def delete(self, session_id: str) -> bool:
        """Delete a session and its subagents' sessions with all their data; return True."""
        return await self._link.delete(bool, route("session", session_id))

    async def children(self, session_id: str) -> tuple[Session, ...]:
        """Return the sessions of the session's subagents."""
        return await self._link.get(tuple[Session, ...], route("session", session_id, "children"))

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        """Create a session with a copy of the messages before `message_id`, or of all messages."""
        body = ForkBody(message_id=message_id)
        return await self._link.post(Session, route("session", session_id, "fork"), body)

    async def abort(self, session_id: str) -> bool:
        """Stop the session's running turn, if any; return True."""
        return await self._link.post(bool, route("session", session_id, "abort"))

    async def resume(self, session_id: str) -> Turn:
        """Continue an interrupted answer, without a time limit; return the complete answer."""
        place = route("pegboard", "session", session_id, "resume")
        return await self._link.turn(Turn, place)

    async def revert(self, session_id: str, message_id: str, part_id: str | None = None) -> Session:
        """Restore the session and its files to the state before a message or part."""
        body = RevertBody(message_id=message_id, part_id=part_id)
        return await self._link.post(Session, route("session", session_id, "revert"), body)

    async def unrevert(self, session_id: str) -> Session:
        """Undo `revert` for the session and its files; return the session."""
        return await self._link.post(Session, route("session", session_id, "unrevert"))

    async def summarize(self, session_id: str, model: str) -> bool:
        """Summarise the conversation without a time limit; return True."""
        choice = model_choice(model)
        body = SummarizeBody(provider_id=choice.provider_id, model_id=choice.model_id)
        return await self._link.turn(bool, route("session", session_id, "summarize"), body)

    async def status(self) -> dict[str, SessionStatus]:
        """Return the status of each running session; idle sessions are omitted."""
        return await self._link.get(dict[str, SessionStatus], route("session", "status"))
