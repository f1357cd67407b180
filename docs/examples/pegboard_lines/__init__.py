"""A storage: all sessions in one file, to which each commit adds a line; opening reads it again.

`PEGBOARD_DATABASE=lines:///home/ada/sessions.jsonl` opens one. It is for one process at a time and
holds everything in memory. `pegboard.testing.check_storage` checks that it keeps what the protocol
promises. A distribution names it in its entry point:

    [project.entry-points.pegboard]
    lines = "pegboard_lines"
"""

import asyncio
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Unpack, get_args

import msgspec

from pegboard import hookimpl
from pegboard.app import IdSource
from pegboard.errors import NotFoundError, SessionBusyError, StorageError
from pegboard.plugins import shield
from pegboard.schema.event import Event
from pegboard.schema.message import Turn
from pegboard.schema.part import TextPart
from pegboard.schema.session import Approval, Project, Session, Todo
from pegboard.storage import (
    Change,
    Fence,
    LastIds,
    OnCommit,
    OpenStorage,
    PublishEvent,
    SearchHit,
    SessionFilters,
    SessionSize,
    Storage,
    Tell,
    end_unfinished,
    is_unfinished,
    read_properties,
    unfinished_state,
)
from pegboard_lines.tables import Tables

KINDS = {kind.__name__: kind for kind in get_args(Change)}


class LineStorage:
    """`Storage` over a file of lines; each is a commit."""

    def __init__(self, path: Path, ids: IdSource, on_commit: OnCommit | None) -> None:
        self.ids = ids
        self.warnings: tuple[str, ...] = ()
        self._on_commit = on_commit
        self._tables = Tables()
        self._fences: dict[str, Fence] = {}
        self._epoch = 0
        self._writing = asyncio.Lock()
        self._path = path
        self._file = _open_locked(path)
        for line in self._lines():
            draft = self._tables.copy()
            for written in line["changes"]:
                list(draft.apply(_decode(*written), line["at"]))
            self._tables = draft

    def _lines(self) -> Iterator[Any]:
        """Yield the lines; one that a crash has cut off was never acknowledged."""
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            yield json.loads(line)
        self._file.truncate(whole)
        self._file.seek(whole)

    @property
    def files(self) -> tuple[Path, ...]:
        return (self._path,)

    async def recover(self) -> None:
        """End the work that an earlier process has left unfinished."""
        for session_id, content in self._tables.sessions.items():
            parts = [part for part in content.parts() if unfinished_state(part)]
            turns = content.turns.values()
            messages = [turn.info for turn in turns if is_unfinished(turn.info)]
            if parts or messages or content.requests:
                requests = tuple(content.requests)
                changes = end_unfinished(
                    session_id, parts=parts, messages=messages, requests=requests
                )
                await self.commit(*changes)

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        """Write all changes, or none; a caller that is cancelled does not stop it."""
        return await shield(self._commit(changes, fence))

    async def _commit(self, changes: tuple[Change, ...], fence: Fence | None) -> tuple[Event, ...]:
        async with self._writing:
            if fence is not None and self._fences.get(fence.session_id) != fence:
                raise SessionBusyError(fence.session_id)
            draft, at = self._tables.copy(), time.time_ns() // 1_000_000
            events = tuple(event for change in changes for event in draft.apply(change, at))
            line = {"at": at, "changes": [_encode(change) for change in changes]}
            await asyncio.to_thread(self._write, msgspec.json.encode(line) + b"\n")
            self._tables = draft
            if events and self._on_commit is not None:
                self._on_commit(events)
            return events

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StorageError(f"{self._file.name} cannot be written: {error}") from error

    async def session(self, session_id: str) -> Session:
        return self._tables.content(session_id).session

    async def sessions(
        self, project_id: str | None = None, **filters: Unpack[SessionFilters]
    ) -> tuple[Session, ...]:
        search, since = (filters.get("search") or "").casefold(), filters.get("since") or 0
        found = [
            each
            for each in (content.session for content in self._tables.sessions.values())
            if project_id in (None, each.project_id)
            and search in each.title.casefold()
            and not (filters.get("roots") and each.parent_id)
            and each.time.updated >= since
            and filters.get("directory") in (None, each.directory)
        ]
        found.sort(key=lambda each: (each.time.updated, each.id), reverse=True)
        return tuple(found[: filters.get("limit")])

    async def sessions_json(
        self, project_id: str | None = None, **filters: Unpack[SessionFilters]
    ) -> bytes:
        return msgspec.json.encode(await self.sessions(project_id, **filters))

    async def search(self, project_id: str, text: str, *, limit: int = 50) -> tuple[SearchHit, ...]:
        titled = await self.sessions(project_id, search=text)
        hits = {each.id: SearchHit(session=each) for each in titled}
        for session in await self.sessions(project_id):
            for part in self._tables.content(session.id).parts():
                if isinstance(part, TextPart) and text.lower() in part.text.lower():
                    hit = SearchHit.in_message(session, part.message_id, part.text, text)
                    hits.setdefault(session.id, hit)
        return tuple(hits.values())[:limit]

    async def children(self, session_id: str) -> tuple[Session, ...]:
        every = (content.session for content in self._tables.sessions.values())
        return tuple(each for each in every if each.parent_id == session_id)

    async def projects(self) -> tuple[Project, ...]:
        return tuple(self._tables.projects.values())

    async def turns(self, session_id: str, *, limit: int | None = None) -> tuple[Turn, ...]:
        content = self._tables.sessions.get(session_id)
        turns = tuple(content.turns.values()) if content else ()
        return turns if limit is None else turns[len(turns) - limit :]

    async def turns_json(
        self, session_id: str, *, limit: int | None = None, before: str | None = None
    ) -> bytes:
        turns = await self.turns(session_id, limit=limit if before is None else None)
        if before is not None:
            ids = [turn.info.id for turn in turns]
            turns = turns[: ids.index(before)] if before in ids else ()
            turns = turns[max(0, len(turns) - limit) :] if limit is not None else turns
        return msgspec.json.encode(turns)

    async def turn(self, session_id: str, message_id: str) -> Turn:
        content = self._tables.sessions.get(session_id)
        if content is None or message_id not in content.turns:
            raise NotFoundError("message", message_id)
        return content.turns[message_id]

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        content = self._tables.sessions.get(session_id)
        return content.todos if content else ()

    async def state(self, session_id: str, key: str) -> object:
        content = self._tables.sessions.get(session_id)
        return content.state.get(key) if content else None

    async def approvals(self, *keys: str) -> tuple[Approval, ...]:
        return tuple(each for each in self._tables.approvals if each.key in keys)

    async def session_approvals(self, project_id: str) -> tuple[Approval, ...]:
        own = {each.id for each in await self.sessions(project_id)}
        return tuple(each for each in self._tables.approvals if each.key in own)

    async def events(self, after: int, *, limit: int = 1000) -> tuple[Event, ...]:
        later = tuple(each for each in self._tables.events if each.seq > after)
        return later[:limit]

    async def last_ids(self, session_id: str) -> LastIds:
        turns = await self.turns(session_id)
        parts = [part.id for turn in turns for part in turn.parts]
        messages = [turn.info.id for turn in turns]
        return LastIds(max(messages, default=None), max(parts, default=None))

    async def sizes(self) -> tuple[SessionSize, ...]:
        found = [
            SessionSize(
                each.id,
                each.project_id,
                each.title,
                each.directory,
                len(await self.turns_json(each.id)),
            )
            for each in await self.sessions()
        ]
        return tuple(sorted(found, key=lambda each: each.size_bytes, reverse=True))

    async def problems(self) -> tuple[str, ...]:
        return ()

    async def vacuum(self) -> int:
        return 0  # the file is a log, and never shrinks

    async def claim(self, session_id: str) -> Fence:
        self._tables.content(session_id)
        if session_id in self._fences:
            raise SessionBusyError(session_id)
        self._epoch += 1
        self._fences[session_id] = Fence(session_id, str(os.getpid()), self._epoch)
        return self._fences[session_id]

    async def is_claimed_elsewhere(self, session_id: str) -> bool:  # noqa: ARG002 - the protocol's
        return False  # the file is locked: there is no other process

    async def release(self, fence: Fence) -> None:
        if self._fences.get(fence.session_id) == fence:
            del self._fences[fence.session_id]

    async def aclose(self) -> None:
        async with self._writing:
            self._fences.clear()
            self._file.close()


def _open_locked(path: Path) -> BinaryIO:
    """Return the file, open for this process alone."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        raise StorageError(f"{path} cannot be opened: {error}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise StorageError(f"{path} is open in another process") from error
    file.seek(0)
    return file


def _encode(change: Change) -> tuple[str, Any]:
    name = type(change).__name__
    if isinstance(change, PublishEvent | Tell):
        event = Event(properties=change.properties)
        return name, (event.type, event.payload())
    return name, change


def _decode(name: str, fields: Any) -> Change:  # noqa: ANN401 - JSON
    kind = KINDS[name]
    if kind in (PublishEvent, Tell):
        name, payload = fields
        fields = {"properties": read_properties(name, msgspec.json.encode(payload))}
        return PublishEvent(**fields) if kind is PublishEvent else Tell(**fields)
    change: Change = msgspec.convert(fields, kind)
    return change


async def open_lines(
    url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """Open the storage at `lines:///path`."""
    path = Path(str(url).removeprefix("lines://"))
    storage = await asyncio.to_thread(LineStorage, path, ids, on_commit)
    await storage.recover()
    return storage


@hookimpl
async def register_storage() -> dict[str, OpenStorage]:
    """Return the scheme of the URL and the function that opens it."""
    return {"lines": open_lines}
