"""The suite for storages: SQLite passes it, and each planted fault is found."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.ids import IdSource
from pegboard.schema.event import Event
from pegboard.storage import Fence, LastIds, OnCommit, Storage
from pegboard.storage.changes import (
    AddText,
    Change,
    ChangeSession,
    CreateSession,
)
from pegboard.testing import check_shared_storage, check_storage
from pegboard_plugins.sqlite import open_sqlite
from support.storage.lone_storage import open_lone


def urls(folder: Path) -> Callable[[], str]:
    numbers = count()
    return lambda: f"sqlite://{folder}/{next(numbers)}.db"


async def test_sqlite_keeps_what_a_storage_promises(tmp_path: Path) -> None:
    assert await check_storage(open_sqlite, urls(tmp_path)) == ()


async def test_sqlite_keeps_what_a_storage_promises_that_processes_share(tmp_path: Path) -> None:
    assert await check_shared_storage(open_sqlite, urls(tmp_path)) == ()


class Faulty:
    """SQLite with a fault; all that is not written here is SQLite's."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        return await self.storage.commit(*changes, fence=fence)


class Resurrecting(Faulty):
    """An update inserts what is gone."""

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        try:
            return await self.storage.commit(*changes, fence=fence)
        except NotFoundError:
            return ()


class Halving(Faulty):
    """A commit is many."""

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        told: tuple[Event, ...] = ()
        for change in changes:
            told += await self.storage.commit(change, fence=fence)
        return told


class Unfenced(Faulty):
    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        return await self.storage.commit(*changes)


class Reversed(Faulty):
    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        return (await self.storage.commit(*changes, fence=fence))[::-1]


class Overwriting(Faulty):
    """A change of one field writes the cost anew."""

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        kept = [
            replace(each, cost=each.cost / 2) if isinstance(each, ChangeSession) else each
            for each in changes
        ]
        return await self.storage.commit(*kept, fence=fence)


class Forgetful(Faulty):
    """Text that is added is lost."""

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        kept = [each for each in changes if not isinstance(each, AddText)]
        return await self.storage.commit(*kept, fence=fence)


class Twice(Faulty):
    """A session that is there already is no error."""

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        for each in changes:
            if isinstance(each, CreateSession):
                known = await self.storage.sessions(each.session.project_id)
                if each.session.id in {session.id for session in known}:
                    return ()
        return await self.storage.commit(*changes, fence=fence)


class Orphaning(Faulty):
    """Subagents' sessions outlive the session."""

    async def children(self, session_id: str) -> tuple[Any, ...]:
        return (await self.storage.children(session_id))[::-1]


class Unordered(Faulty):
    async def sessions(self, *project: str, **filters: Any) -> tuple[Any, ...]:
        found = await self.storage.sessions(*project, **filters)
        return tuple(sorted(found, key=lambda each: each.title, reverse=True))


class Timeless(Faulty):
    async def turns(self, session_id: str, *, limit: int | None = None) -> tuple[Any, ...]:
        return (await self.storage.turns(session_id))[:limit]


class Wild(Faulty):
    async def search(self, project_id: str, text: str, *, limit: int = 50) -> tuple[Any, ...]:
        return await self.storage.search(project_id, text.replace("%", ""), limit=limit)


class Shared(Faulty):
    async def claim(self, session_id: str) -> Fence:
        return Fence(session_id, "me", 1)


class Blind(Faulty):
    async def last_ids(self, session_id: str) -> LastIds:
        return LastIds(None, None)


class Ascii(Faulty):
    async def turns_json(
        self, session_id: str, *, limit: int | None = None, before: str | None = None
    ) -> bytes:
        found = await self.storage.turns_json(session_id, limit=limit, before=before)
        return found.replace(b"\\u0000", b"")


class Loud(Faulty):
    """The events after a number begin with it."""

    async def events(self, after: int, *, limit: int = 1000) -> tuple[Event, ...]:
        return await self.storage.events(max(after - 1, 0), limit=limit)


FAULTS = [
    (Resurrecting, "gone", "ChangeSession of a deleted session does not raise NotFoundError"),
    (Halving, "whole", "half of a commit that failed is written"),
    (Unfenced, "fences", "a fence that was given back"),
    (Reversed, "commits", "in another order"),
    (Overwriting, "changes", "costs do not add up"),
    (Forgetful, "texts", "added text is not read"),
    (Twice, "sessions", "made twice does not raise InvalidInputError"),
    (Orphaning, "children", "order of creation"),
    (Unordered, "sessions", "last used first"),
    (Timeless, "turns", "`limit` does not keep the last turns"),
    (Wild, "search", "a % is taken as a wildcard"),
    (Shared, "claims", "a second claim"),
    (Blind, "turns", "last_ids differ"),
    (Ascii, "json", "another text"),
    (Loud, "events", "more than those after it"),
]


@pytest.mark.parametrize(("fault", "rule", "text"), FAULTS, ids=[f[0].__name__ for f in FAULTS])
async def test_a_fault_of_a_storage_is_found(
    fault: type[Faulty], rule: str, text: str, tmp_path: Path
) -> None:
    async def opened(url: str, *, ids: IdSource, on_commit: OnCommit | None = None) -> Any:
        return fault(await open_sqlite(url, ids=ids, on_commit=on_commit))

    findings = await check_storage(opened, urls(tmp_path))

    assert [text in each.text for each in findings if each.rule == rule] == [True], findings


class Anonymous(Faulty):
    async def claim(self, session_id: str) -> Fence:
        try:
            return await self.storage.claim(session_id)
        except SessionBusyError as error:
            raise SessionBusyError(session_id) from error


class Deaf(Faulty):
    async def events(self, after: int, *, limit: int = 1000) -> tuple[Event, ...]:
        found = await self.storage.events(after, limit=limit)
        return tuple(each for each in found if each.seq % 7 or each == found[-1])


SHARED_FAULTS: list[tuple[type[Faulty], str, str]] = [
    (Shared, "owners", "two processes claim one session"),
    (Anonymous, "owners", "does not name the owner"),
    (Unfenced, "takeovers", "the fence of an earlier owner"),
    (Deaf, "followers", "a follower misses"),
]


@pytest.mark.parametrize(
    ("fault", "rule", "text"), SHARED_FAULTS, ids=[f[0].__name__ for f in SHARED_FAULTS]
)
async def test_a_fault_of_a_shared_storage_is_found(
    fault: type[Faulty], rule: str, text: str, tmp_path: Path
) -> None:
    async def opened(url: str, *, ids: IdSource, on_commit: OnCommit | None = None) -> Any:
        return fault(await open_sqlite(url, ids=ids, on_commit=on_commit))

    findings = await check_shared_storage(opened, urls(tmp_path))

    assert [text in each.text for each in findings if each.rule == rule] == [True], findings


async def test_a_process_whose_commits_are_lost_is_found(tmp_path: Path) -> None:
    findings = await check_shared_storage(open_lone, urls(tmp_path))

    assert [(each.rule, each.text) for each in findings] == [("kill", "its claim is invisible")]
