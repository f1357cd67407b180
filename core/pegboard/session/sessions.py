"""New sessions."""

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace

from pegboard.schema.permission import Rule
from pegboard.schema.session import Session, SessionTime
from pegboard.session.engine import Engine
from pegboard.storage.changes import PutSession

TITLE_LENGTH = 60
_VERSION = "0.1.0"
_NEW = "New session - "


async def new_session(
    engine: Engine,
    *,
    title: str | None = None,
    parent_id: str | None = None,
    agent: str | None = None,
    permission: tuple[Rule, ...] = (),
) -> Session:
    """A stored session; without a title it gets one from its first prompt."""
    now = engine.now()
    session_id = engine.ids.new("session")
    workspace = engine.workspace
    session = Session(
        id=session_id,
        slug=session_id[-8:].lower(),
        project_id=workspace.project_id,
        directory=str(workspace.directory),
        path=str(workspace.directory.relative_to(workspace.worktree)).removeprefix("."),
        title=title or _NEW + _instant(now),
        version=_VERSION,
        time=SessionTime(created=now, updated=now),
        parent_id=parent_id,
        agent=agent,
        permission=permission,
    )
    await engine.storage.commit(PutSession(session))
    return session


def _instant(at_ms: int) -> str:
    """The instant as the protocol's clients know a title that is only a place-holder by."""
    text = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def placed(engine: Engine, session: Session, session_id: str) -> Session:
    """A session of somewhere else as one of this App's directory, under a new id."""
    workspace = engine.workspace
    return replace(
        session,
        id=session_id,
        slug=session_id[-8:].lower(),
        project_id=workspace.project_id,
        directory=str(workspace.directory),
        path=str(workspace.directory.relative_to(workspace.worktree)).removeprefix("."),
        version=_VERSION,
    )


def revision(*, title: str | None, archived: bool | None, now: int) -> Callable[[Session], Session]:
    """What gives a session this title and puts it away, or takes it out; None leaves it."""

    def revised(session: Session) -> Session:
        at = session.time.archived if archived is None else now if archived else None
        return replace(
            session,
            title=session.title if title is None else title.strip() or session.title,
            time=replace(session.time, archived=at),
        )

    return revised


def title_from(text: str) -> str | None:
    """A title made from a prompt: its first line, cut between words; None if it has no text."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), None)
    if line is None or len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0].rstrip() + "…"


def is_untitled(session: Session) -> bool:
    """Whether nobody has given the session a title yet."""
    return session.title.startswith(_NEW)
