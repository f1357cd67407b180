"""The sessions of a renamed folder, moved with those of their subagents."""

from pathlib import Path

import pytest

from pegboard import App
from pegboard.errors import SessionBusyError
from pegboard.schema.message import Turn
from pegboard.schema.session import Session
from pegboard_plugins import task
from pegboard_plugins.shared.frontend.copies import moved_here
from support.models.played import opened
from support.sessions.conversing import converse, provider


async def family(app: App, session_id: str) -> list[tuple[Session, tuple[Turn, ...]]]:
    """Return the session and its subagents' sessions, each with its messages."""
    members = [await app.session(session_id), *await app.children(session_id)]
    return [(each, await app.list_turns(each.id)) for each in members]


async def test_a_moved_session_keeps_its_ids_messages_list_and_subagents(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        before, todos = await family(app, session.id), await app.storage.todos(session.id)

        await moved_here(app, session.id)

        assert await family(app, session.id) == before
        assert await app.storage.todos(session.id) == todos
        assert len(before) == 2
        assert todos


async def test_a_session_that_runs_is_not_moved(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        before = await family(app, session.id)
        fence = await app.storage.claim(session.id)

        with pytest.raises(SessionBusyError):
            await moved_here(app, session.id)

        await app.storage.release(fence)
        assert await family(app, session.id) == before
