"""What a step costs, counted and not timed, so that it is the same on every machine."""

import asyncio
import shutil
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import apsw
import pytest
from msgspec.structs import replace

from pegboard import App, tool
from pegboard.engine.writer import FRAME_S, STORE_S
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
)
from pegboard.schema.event import PartDelta, PartUpdated
from pegboard.schema.part import Completed, CompletedSpan
from pegboard.storage.changes import Change, PutMessage, PutPart
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.models.played import USAGE, Played, ToolsPlugin, heard, opened
from support.models.stepping import GO, Stepping, per_step, repository
from support.models.written import sh
from support.storage import rows
from support.storage.slow_storage import slow_seed

STEPS = 200
EARLY, LATE = (10, 20), (180, 190)
MOST_GROWTH = 1.5
MOST_CALL_GROWTH = 1.35
"""Of the calls behind 2,000 messages: two calls for each of them would be more."""
MOST_TRANSACTIONS = 2
"""The call before it has an effect, and its result, each with all else of that moment."""
MOST_PAGES = 32
"""Of the database's log, for a step with one call; 27.5 were counted."""
MOST_CALL_PAGES = 4
"""For each further call of a step; 1.9 were counted."""
MOST_BYTES = 160 << 10
MOST_CALLS = 11_000
"""Of functions, Python's and C's, in a step with a command and all plugins; 9,000 were counted."""
MOST_PARALLEL_CALLS = 5_000
"""The same for each further command of a step; 3,900 were counted."""
PAGE_BYTES = 4096
OPERATIONS = 10
"""The database's own steps are counted in tens."""
DELTAS = 5_000


@tool(permission="read", effect="reads")
async def look(step: int) -> str:
    """Look at something."""
    return f"{step} " * 50


@contextmanager
def counting_calls(counts: Counter[str]) -> Iterator[None]:
    """Every call of a function on the event loop's thread, Python's and C's, goes to `counts`."""

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            counts["calls"] += 1

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


class Log:
    """What goes to the database's log: `pages` of so many commits."""

    def __init__(self, app: App) -> None:
        if slow_seed() is not None:
            pytest.skip("it counts what SQLite itself does")
        assert isinstance(app.storage, SqliteStorage)
        writer = app.storage._writer
        self.commits = 0
        self.pages = 0
        self._last = 0
        self._passed_on = writer._note_log
        self.db: apsw.Connection = writer._db
        self.db.set_wal_hook(self._committed)

    @property
    def bytes(self) -> int:
        return self.pages * PAGE_BYTES

    def _committed(self, db: apsw.Connection, name: str, pages: int) -> int:
        self.commits += 1
        self.pages += pages - self._last if pages > self._last else pages
        self._last = pages
        return self._passed_on(db, name, pages)


async def fill(app: App, session_id: str, messages: int) -> int:
    """So many messages in a session, every second one with a text and a call; the parts' number."""
    ids = app.storage.ids
    changes: list[Change] = []
    user_id: str = ""
    message_id: str | None = None
    part_id: str | None = None
    state = Completed(
        input={"n": 1},
        output="seen " * 50,
        title="",
        metadata={},
        time=CompletedSpan(start=1, end=2),
    )
    for number in range(messages):
        message_id = ids.new("message", after=message_id)
        if number % 2 == 0:
            user_id = message_id
            changes.append(PutMessage(rows.question(message_id, session_id=session_id)))
        else:
            answer = rows.answer(message_id, session_id=session_id, completed=2)
            changes.append(PutMessage(replace(answer, parent_id=user_id, finish="stop")))
        where = {"session_id": session_id, "message_id": message_id}
        part_id = ids.new("part", after=part_id)
        changes.append(PutPart(rows.text(part_id, content="some words " * 20, **where)))
        if number % 2:
            part_id = ids.new("part", after=part_id)
            changes.append(PutPart(rows.call(part_id, state=state, **where)))
    await app.storage.commit(*changes)
    return sum(isinstance(change, PutPart) for change in changes)


async def work(
    folder: Path, provider: Stepping, *, behind: int = 0, builtins: bool = False
) -> tuple[list[int], list[int], list[int]]:
    """At each request: the calls, the database's operations and its pages so far."""
    repository(folder)
    counts: Counter[str] = Counter()
    moments: list[tuple[int, int, int]] = []
    async with opened(folder, provider, ToolsPlugin(look), builtins=builtins) as app:
        log = Log(app)

        def progress() -> bool:
            counts["database"] += 1
            return False

        log.db.set_progress_handler(progress, OPERATIONS)
        provider.at_step = [
            lambda _: moments.append((counts["calls"], counts["database"], log.pages))
        ]
        session = await app.create_session()
        await fill(app, session.id, behind)
        with counting_calls(counts):
            await app.prompt(session.id, GO)
    calls, database, pages = (list(series) for series in zip(*moments, strict=True))
    return calls, database, pages


@pytest.mark.sqlite
async def test_the_work_of_a_step_does_not_grow(tmp_path: Path) -> None:
    for series in await work(tmp_path, Stepping(STEPS)):
        assert per_step(series, LATE) < MOST_GROWTH * per_step(series, EARLY)


@pytest.mark.sqlite
async def test_a_step_with_all_plugins_calls_few_functions(tmp_path: Path) -> None:
    calls, _, _ = await work(tmp_path, Stepping(20, name="bash"), builtins=True)

    assert per_step(calls, EARLY) < MOST_CALLS


@pytest.mark.sqlite
async def test_a_further_command_of_a_step_calls_few_functions(tmp_path: Path) -> None:
    steps = []
    for count in (1, 11):
        provider = Stepping(6, calls=count, name="bash")
        calls, _, _ = await work(tmp_path / str(count), provider, builtins=True)
        steps.append(per_step(calls, (2, 5)))

    assert steps[1] - steps[0] < 10 * MOST_PARALLEL_CALLS


@pytest.mark.sqlite
@pytest.mark.parametrize(("name", "builtins"), [("look", False), ("read", True)])
async def test_a_step_costs_the_same_behind_2000_messages(
    tmp_path: Path, name: str, builtins: bool
) -> None:
    providers = Stepping(20, name=name), Stepping(20, name=name)
    short = await work(tmp_path / "short", providers[0], builtins=builtins)
    long = await work(tmp_path / "long", providers[1], behind=1_970, builtins=builtins)

    limits = MOST_CALL_GROWTH if builtins else MOST_GROWTH, MOST_GROWTH, MOST_GROWTH
    for before, after, most in zip(short, long, limits, strict=True):
        assert per_step(after, EARLY) < most * per_step(before, EARLY)


@pytest.mark.sqlite
@pytest.mark.parametrize("calls", [1, 5])
async def test_a_step_has_two_transactions_and_few_pages(tmp_path: Path, calls: int) -> None:
    repository(tmp_path)
    moments: list[tuple[int, float, int]] = []
    provider = Stepping(30, calls=calls)
    async with opened(tmp_path, provider, ToolsPlugin(look)) as app:
        log = Log(app)
        provider.at_step = [lambda _: moments.append((log.commits, time.monotonic(), log.pages))]
        session = await app.create_session()

        await app.prompt(session.id, GO)

    (first, began, before), (last, ended, after) = moments[5], moments[25]
    # What a slow machine does not get done within a frame is stored at the frame's end.
    frames = (ended - began) / FRAME_S
    assert last - first <= 20 * MOST_TRANSACTIONS + frames
    late = max(0, last - first - 20 * MOST_TRANSACTIONS)
    pages = MOST_PAGES + (calls - 1) * MOST_CALL_PAGES
    assert after - before <= 20 * pages + late * MOST_PAGES / MOST_TRANSACTIONS


def counted_git(folder: Path) -> tuple[Path, dict[str, str]]:
    """A file that gets a line for each process of git, and the environment that does it."""
    log = folder / "processes"
    log.touch()
    (folder / "bin").mkdir()
    shim = folder / "bin/git"
    shim.write_text(f'#!/bin/sh\necho x >> {log}\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    return log, {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder)}


@pytest.mark.parametrize(("name", "most"), [("look", 0), ("sh", 1)])
async def test_a_step_has_one_process_of_git_at_most(tmp_path: Path, name: str, most: int) -> None:
    repository(tmp_path)
    processes: list[int] = []
    provider = Stepping(12, calls=3, name=name)
    log, env = counted_git(tmp_path)
    provider.at_step = [lambda _: processes.append(len(log.read_text().split()))]
    async with opened(tmp_path, provider, ToolsPlugin(look, sh), env=env) as app:
        session = await app.create_session()

        await app.prompt(session.id, GO)

    # One look at the files as the user has left them; a snapshot is taken beside its step, so
    # that a request may go before the look that belongs to the step before.
    assert all(so_far <= 1 + most * step for step, so_far in enumerate(processes))


async def test_each_message_is_encoded_once(tmp_path: Path) -> None:
    encoded: list[int] = []

    def encode(request: ModelRequest) -> None:
        new = [message for message in request.messages if "test" not in message.encoded]
        encoded.append(len(new))
        for message in new:
            message.encoded["test"] = repr(message.content).encode()

    provider = Stepping(20)
    provider.at_step = [encode]
    async with opened(tmp_path, provider, ToolsPlugin(look)) as app:
        session = await app.create_session()

        await app.prompt(session.id, GO)
        await app.prompt(session.id, GO)

    answer_and_result = 2
    assert encoded == [1, *([answer_and_result] * 20), sum(encoded[:21]) + 2]


def streamed(pause_s: float | None) -> Callable[[ModelRequest], AsyncIterator[StreamEvent]]:
    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextStart("t")
        for number in range(DELTAS):
            yield TextDelta("t", "a word ")
            if pause_s is not None and number % 50 == 0:
                await asyncio.sleep(pause_s)
        yield TextEnd("t")
        yield StreamFinish("stop", USAGE)

    return answer


@pytest.mark.sqlite
@pytest.mark.parametrize("pause_s", [None, 0.01])
async def test_a_delta_writes_its_own_bytes_a_few_times(
    tmp_path: Path, pause_s: float | None
) -> None:
    async with opened(tmp_path, Played(streamed(pause_s))) as app:
        log = Log(app)
        session = await app.create_session()
        listening = asyncio.create_task(heard(app, lambda event: event.type == "session.idle"))
        await asyncio.sleep(0)
        before, began = log.bytes, time.monotonic()

        await app.prompt(session.id, GO)

        lasted_s = time.monotonic() - began
        written = log.bytes - before
        events = [event.properties for event in await listening]

    whole = len("a word ") * DELTAS
    stores = 2 + lasted_s / STORE_S
    deltas = sum(isinstance(event, PartDelta) for event in events)
    updates = sum(isinstance(event, PartUpdated) for event in events)
    # Each time of storing writes the pages that the new text touches, and the end all of it.
    assert written < 3 * whole + stores * MOST_BYTES
    assert deltas <= 2 + lasted_s / FRAME_S
    assert updates <= 6


@contextmanager
def counting_rows() -> Iterator[Counter[bool]]:
    """How many rows are read by connections that are opened meanwhile: by those that only read."""
    found: Counter[bool] = Counter()

    def opened_one(db: apsw.Connection) -> None:
        only_reads = bool(db.open_flags & apsw.SQLITE_OPEN_READONLY)

        def note(_: object, row: tuple[object, ...]) -> tuple[object, ...]:
            found[only_reads] += 1
            return row

        db.row_trace = note

    apsw.connection_hooks.append(opened_one)
    try:
        yield found
    finally:
        apsw.connection_hooks.remove(opened_one)


@pytest.mark.sqlite
async def test_opening_a_long_session_reads_each_row_once(tmp_path: Path) -> None:
    async with opened(tmp_path, Stepping(1)) as app:
        session = (await app.create_session()).id
        parts = await fill(app, session, 2_000)

    with counting_rows() as found:
        async with opened(tmp_path, Stepping(1), ToolsPlugin(look)) as app:
            await app.prompt(session, GO)

    new = 2
    assert 2_000 + parts + new <= found[True] <= 2_000 + parts + 20
