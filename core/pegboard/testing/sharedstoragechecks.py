"""Checks that several processes can use a database at the same time."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from itertools import count
from operator import attrgetter

from pegboard.errors import SessionBusyError
from pegboard.ids import IdSource
from pegboard.schema.event import Custom
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime
from pegboard.schema.part import Failed, Pending, Running, TextPart, TimeSpan, ToolPart
from pegboard.schema.session import Session, SessionTime, Tokens
from pegboard.storage import (
    Change,
    ChangeSession,
    CreateSession,
    Fence,
    OpenStorage,
    PublishEvent,
    PutMessage,
    PutPart,
    Storage,
    follow,
)
from pegboard.storage.rows import INTERRUPTED_CALL, NEVER_RAN
from pegboard.testing.finding import Finding, broken, must
from pegboard.testing.storagesite import NOW_MS, PROJECT, StorageSite, check_refusal, storage_site

_WRITERS = 4
_COMMITS = 40
_LEAST = 20
_LOOK_S = 0.05


async def check_shared_storage(
    open_storage: OpenStorage, new_url: Callable[[], str]
) -> tuple[Finding, ...]:
    """Return the faults found in a kind of database that several processes use at once.

    The arguments are those of `check_storage`, which must also find no faults. `open_storage` must
    be a function that other processes can import, because a process is started and killed while it
    writes.
    """
    rules: dict[str, Callable[[_Shared], Awaitable[None]]] = {
        "owners": _owners,
        "takeovers": _takeovers,
        "updates": _updates,
        "followers": _followers,
        "kill": _kill,
    }

    async def check(rule: Callable[[_Shared], Awaitable[None]]) -> None:
        async with storage_site(open_storage, new_url()) as site:
            await rule(_Shared(site))

    return await broken("storage", {name: partial(check, rule) for name, rule in rules.items()})


class _Shared:
    """A database that several processes use at the same time."""

    def __init__(self, site: StorageSite) -> None:
        self.site = site

    @asynccontextmanager
    async def other(self) -> AsyncIterator[Storage]:
        """Open the database a second time."""
        storage = await self.site.open(self.site.url, ids=IdSource())
        try:
            yield storage
        finally:
            await storage.aclose()


async def _owners(shared: _Shared) -> None:
    """Check that only one process can claim a session, and that others learn its owner."""
    site = shared.site
    session = await site.with_session()
    async with shared.other() as other:
        fence = await site.storage.claim(session.id)
        try:
            await other.claim(session.id)
        except SessionBusyError as error:
            must(error.owner == fence.owner, "a claim that is refused does not name the owner")
        else:
            must(holds=False, text="two processes claim one session")
        must(await other.is_claimed_elsewhere(session.id), "the claim of another is invisible")
        mine = await site.storage.is_claimed_elsewhere(session.id)
        must(not mine, "an own claim counts as that of another process")
        await site.storage.release(fence)
        must(not await other.is_claimed_elsewhere(session.id), "a right that was given back stays")
        await other.release(await other.claim(session.id))


async def _takeovers(shared: _Shared) -> None:
    """Check that closing a storage releases its claims, the exclusive rights to sessions.

    A commit with the fence, the proof of a claim, of an earlier owner must be refused.
    """
    site = shared.site
    session = await site.with_session()
    async with shared.other() as other:
        stale = await other.claim(session.id)
    fence = await site.storage.claim(session.id)
    must(fence.epoch > stale.epoch, "the epoch of a later owner is not greater")
    late = site.storage.commit(ChangeSession(session_id=session.id, title="Late"), fence=stale)
    await check_refusal(SessionBusyError, late, "a commit with the fence of an earlier owner")


async def _updates(shared: _Shared) -> None:
    """Check that changes of a session by several processes are all counted."""
    site = shared.site
    session = await site.with_session()
    change = ChangeSession(session_id=session.id, cost=1.0)
    async with shared.other() as other:
        both = (site.storage, other)
        await asyncio.gather(*(each.commit(change) for _ in range(_COMMITS) for each in both))
    found = await site.storage.session(session.id)
    must(found.cost == 2 * _COMMITS, f"{2 * _COMMITS} changes of a cost add up to {found.cost}")


async def _followers(shared: _Shared) -> None:
    """Check that `follow` yields each event of each process once, in order."""
    site, numbers, more = shared.site, list[int](), asyncio.Event()

    async def follow_events() -> None:
        async for event in follow(site.storage, 0, every_s=_LOOK_S):
            numbers.append(event.seq)
            more.set()

    async with AsyncExitStack() as stack:
        writers = [await stack.enter_async_context(shared.other()) for _ in range(_WRITERS)]
        following = asyncio.create_task(follow_events())
        try:
            published = await asyncio.gather(*map(_publish, writers))
            last = max(map(max, published))
            while not numbers or numbers[-1] < last:  # each rule of a suite has a time limit
                more.clear()
                await more.wait()
        finally:
            following.cancel()
            await asyncio.wait({following})
    must(numbers == sorted(set(numbers)), "a follower gets events out of order")
    wanted = {seq for each in published for seq in each}
    missed = len(wanted - set(numbers))
    must(not missed, f"a follower misses {missed} of {len(wanted)} events")


async def _publish(storage: Storage) -> list[int]:
    """Store several events, one by one, and return the numbers of the events."""
    change = PublishEvent(Custom(name="check.published", data={}))
    return [event.seq for _ in range(_COMMITS) for event in await storage.commit(change)]


async def _kill(shared: _Shared) -> None:
    """Check that a killed process loses its claim to a session, but no change it has stored."""
    site = shared.site
    opener = f"{site.open.__module__}:{site.open.__qualname__}"  # type: ignore[attr-defined]  # a function
    command = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as own; own.write_on()"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", command, opener, site.url, stdout=PIPE
    )
    try:
        session_id, *numbers = [await _line(child) for _ in range(_LEAST)]
        must(await site.storage.is_claimed_elsewhere(session_id), "its claim is invisible")
    finally:
        child.kill()
        rest, _ = await child.communicate()
    numbers += [line.decode() for line in rest.split(b"\n")[:-1]]
    fence = await _claim(site.storage, session_id)
    turns = {turn.info.id: turn for turn in await site.storage.turns(session_id)}
    lost = [number for number in numbers if f"msg_{number}" not in turns]
    must(not lost, f"{len(lost)} of {len(numbers)} acknowledged commits are lost")
    for id_, turn in turns.items():
        texts = [part.text for part in turn.parts if isinstance(part, TextPart)]
        must(texts == [f"text of {id_}"], "a commit of a killed process is there in part")
        states = [part.state for part in turn.parts if isinstance(part, ToolPart)]
        errors = [state.error if isinstance(state, Failed) else "" for state in states]
        wanted = [INTERRUPTED_CALL, NEVER_RAN]
        must(errors == wanted, f"calls of a killed process say {errors}, not {wanted}")
        ended = isinstance(turn.info, AssistantMessage) and turn.info.error is not None
        must(ended, "an answer of a killed process has no error")
    await site.storage.release(fence)


async def _line(child: Process) -> str:
    assert child.stdout is not None
    line = await child.stdout.readline()
    must(line.endswith(b"\n"), "a process that writes has ended; see its errors")
    return line.decode().strip()


async def _claim(storage: Storage, session_id: str) -> Fence:
    """Claim the session of a dead process, as soon as the storage notices the process's death."""
    while True:  # each rule of a suite has a time limit
        try:
            return await storage.claim(session_id)
        except SessionBusyError:
            await asyncio.sleep(_LOOK_S)


def write_on() -> None:
    """Write into a database until this process is killed; print the number of each stored commit.

    The program's arguments are the function that opens the database, as `module:name`, and the URL.
    """
    opener, url = sys.argv[1:]
    module, _, name = opener.partition(":")
    asyncio.run(_write_on(attrgetter(name)(import_module(module)), url))


async def _write_on(open_storage: OpenStorage, url: str) -> None:
    ids = IdSource()
    storage = await open_storage(url, ids=ids)
    session = Session(
        id=ids.new("session"),
        slug="slug",
        project_id=PROJECT.id,
        directory="/project",
        title="Killed",
        version="0",
        time=SessionTime(created=NOW_MS, updated=NOW_MS),
    )
    await storage.commit(CreateSession(session))
    fence = await storage.claim(session.id)
    sys.stdout.write(f"{session.id}\n")
    for number in count(1):
        await storage.commit(*_turn(session.id, f"msg_{number}"), fence=fence)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def _turn(session_id: str, message_id: str) -> tuple[Change, ...]:
    """Return the changes that store an unfinished answer: a text, a running and a pending call."""
    message = AssistantMessage(
        id=message_id,
        session_id=session_id,
        parent_id="msg_0",
        model_id="m",
        provider_id="p",
        mode="tester",
        agent="tester",
        path=MessagePath(cwd="/project", root="/project"),
        cost=0.0,
        tokens=Tokens(),
        time=MessageTime(created=NOW_MS),
    )
    running = Running(input={"command": "make"}, time=TimeSpan(start=NOW_MS))
    text = f"text of {message_id}"
    return (
        PutMessage(message),
        PutPart(
            TextPart(id=f"{message_id}a", session_id=session_id, message_id=message_id, text=text)
        ),
        *(
            PutPart(
                ToolPart(
                    id=f"{message_id}{end}",
                    session_id=session_id,
                    message_id=message_id,
                    call_id=end,
                    tool="launch",
                    state=state,
                )
            )
            for end, state in (("b", running), ("c", Pending(input={}, raw="{}")))
        ),
    )
