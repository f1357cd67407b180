"""The database for the checks of a storage, and the content that the checks write."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from pegboard.errors import PegboardError
from pegboard.ids import IdSource
from pegboard.schema.event import Event
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.part import ModelChoice, Part, TextPart
from pegboard.schema.session import Project, ProjectTime, Session, SessionTime
from pegboard.storage import OpenStorage, Storage
from pegboard.storage.changes import CreateSession, PutMessage, PutPart, PutProject
from pegboard.testing.finding import must

_LOOK_S = 0.02
NOW_MS = 1_772_366_400_000
PROJECT = Project(
    id="project",
    worktree="/project",
    time=ProjectTime(created=NOW_MS, updated=NOW_MS),
    sandboxes=(),
)


class StorageSite:
    """A database that contains one project, with the events of all commits to the database."""

    def __init__(self, open_storage: OpenStorage, url: str) -> None:
        self.open, self.url = open_storage, url
        self.ids = IdSource()
        self.events: list[Event] = []
        self.storage: Storage

    async def reopen(self) -> Storage:
        """Open the database, for the first time or again, and return the storage."""
        self.storage = await self.open(self.url, ids=self.ids, on_commit=self.events.extend)
        return self.storage

    def session(self, title: str = "Title", *, parent: str | None = None) -> Session:
        """Return a new session of the project; the session is not stored."""
        return Session(
            id=self.ids.new("session"),
            slug="slug",
            project_id=PROJECT.id,
            directory="/project",
            title=title,
            version="0",
            time=SessionTime(created=NOW_MS, updated=NOW_MS),
            parent_id=parent,
        )

    async def with_session(self, title: str = "Title", *, parent: str | None = None) -> Session:
        """Store a new session and return the session."""
        session = self.session(title, parent=parent)
        await self.storage.commit(CreateSession(session))
        return session

    def message(self, session: Session) -> UserMessage:
        """Return a new message of the session; the message is not stored."""
        return UserMessage(
            id=self.ids.new("message"),
            session_id=session.id,
            time=MessageTime(created=NOW_MS),
            agent="tester",
            model=ModelChoice(provider_id="p", model_id="m"),
        )

    def part(self, message: UserMessage, text: str) -> TextPart:
        """Return a new text part of the message; the part is not stored."""
        part_id = self.ids.new("part")
        return TextPart(id=part_id, session_id=message.session_id, message_id=message.id, text=text)

    async def with_turn(self, session: Session, *texts: str) -> Turn:
        """Store a new message with a part for each text, and return the turn."""
        message = self.message(session)
        parts: tuple[Part, ...] = tuple(self.part(message, each) for each in texts)
        await self.storage.commit(PutMessage(message), *map(PutPart, parts))
        return Turn(info=message, parts=parts)

    async def stored_events(self, after: int, *, last: int) -> tuple[Event, ...]:
        """Return the stored events after the number `after`, once the event `last` is visible.

        Where several processes write, events can become visible late; see `Storage.events`.
        """
        while True:  # each rule of a suite has a time limit
            found = await self.storage.events(after)
            if found and found[-1].seq >= last:
                return found
            await asyncio.sleep(_LOOK_S)


Sites = Callable[[], AbstractAsyncContextManager[StorageSite]]
"""Opens another empty database, and closes it."""


@asynccontextmanager
async def storage_site(open_storage: OpenStorage, url: str) -> AsyncIterator[StorageSite]:
    """Open a database, store a project in the database, and close it after the block."""
    site = StorageSite(open_storage, url)
    await (await site.reopen()).commit(PutProject(PROJECT))
    try:
        yield site
    finally:
        await site.storage.aclose()


async def check_refusal(wanted: type[PegboardError], asked: Awaitable[object], what: str) -> None:
    """Check that awaiting `asked` raises an error of the type `wanted`; `what` names it."""
    try:
        await asked
    except wanted:
        return
    must(holds=False, text=f"{what} does not raise {wanted.__name__}")
