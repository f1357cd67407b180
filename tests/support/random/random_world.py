"""Where random operations happen: Apps and processes on one database, and their end."""

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pegboard import App
from pegboard.schema.event import Event
from pegboard_plugins import task, title
from support.models.played import ToolsPlugin, opened
from support.random.random_model import House, Payment, Planned, tools
from support.random.random_operations import SESSIONS, Actor, Ledger, Operation, chosen
from support.tools.worktrees import git

CHILD = Path(__file__).parent / "random_child.py"
REST_S = 40.0
"""The longest until everything has come to rest."""
OPERATIONS = 40


@dataclass(frozen=True, slots=True)
class Mode:
    """Who takes part: a second App of this process, a second process, one that is killed."""

    second: bool = False
    process: bool = False
    kill: bool = False
    snapshots: bool = False

    @property
    def actors(self) -> tuple[str, ...]:
        """The names of those who do operations."""
        process = self.process or self.kill
        return ("first", *["second"] * self.second, *["process"] * process)


MODES = (
    Mode(),
    Mode(second=True),
    Mode(snapshots=True),
    Mode(kill=True),
    Mode(),
    Mode(second=True, process=True),
)
"""The mode of a seed is that of its place among these."""


@dataclass(slots=True)
class World:
    """A run, as it is once everything has come to rest."""

    seed: int
    mode: Mode
    nap: str
    operations: tuple[Operation, ...]
    ledger: Ledger = field(default_factory=Ledger)
    providers: list[Planned] = field(default_factory=list)
    apps: list[App] = field(default_factory=list)
    closed: list[App] = field(default_factory=list)
    heard: list[Event] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)


def setup(
    pay: Callable[[Payment], None], nap: str, *, snapshots: bool = False
) -> tuple[Planned, tuple[object, ...], dict[str, Any]]:
    """What an App of a random run is opened with."""
    config = {
        "model": "played/m",
        "title": "model",
        "retry": {"cap_s": 0.01},
        "snapshot": snapshots,
    }
    plugins = (House(), ToolsPlugin(*tools(nap)), task, title)
    return Planned(pay), plugins, {"allow": False, "interactive": True, "config": config}


def is_titling() -> bool:
    return any(each.get_name().startswith("title ") for each in asyncio.all_tasks())


async def rest(app: App) -> list[str]:
    """What still runs when it had all the time to end; titles are waited for, too."""
    runs = app._runs
    try:
        async with asyncio.timeout(REST_S):
            await asyncio.sleep(0.01)  # what was told last is heard
            while runs._tasks or any(
                each.get_name().startswith("title ") for each in asyncio.all_tasks()
            ):
                for request in app.permissions.pending():
                    await app.answer_permission(request.id, "once")
                await asyncio.sleep(0.01)
    except TimeoutError:
        return [f"session {each} runs without an end" for each in runs._tasks]
    return []


@asynccontextmanager
async def happened(folder: Path, seed: int, mode: Mode) -> AsyncIterator[World]:
    """The world of a seed after all its operations, its Apps still open."""
    nap = f"86400.{random.SystemRandom().randrange(10**6, 10**7)}"
    world = World(seed, mode, nap, chosen(seed, mode.actors, OPERATIONS))
    (folder / "project").mkdir()
    if mode.snapshots:
        git(folder / "project", "init", "-q")
    async with AsyncExitStack() as stack:
        for _ in range(1 + mode.second):
            provider, plugins, options = setup(world.ledger.paid, nap, snapshots=mode.snapshots)
            app = await stack.enter_async_context(opened(folder, provider, *plugins, **options))
            world.apps.append(app)
            world.providers.append(provider)
        for number in range(SESSIONS):
            world.ledger.named(f"s{number}", (await world.apps[0].create_session()).id)
        subscription = await stack.enter_async_context(world.apps[0].subscribe(limit=100_000))
        await _all_done(world, folder)
        subscription.close()
        world.heard = [event async for event in subscription]
        yield world


async def _all_done(world: World, folder: Path) -> None:
    actors = [Actor(app, world.ledger) for app in world.apps]
    try:
        async with asyncio.timeout(REST_S), asyncio.TaskGroup() as group:
            if "process" in world.mode.actors:
                ready = asyncio.Event()
                group.create_task(_process(world, folder, ready))
                await ready.wait()
            for name, actor in zip(("first", "second"), actors, strict=False):
                mine = [each for each in world.operations if each.actor == name]
                group.create_task(actor.all(mine))
    except TimeoutError:
        open_ = [each for each in world.ledger.deeds.values() if each.ended is None]
        world.stuck += [f"{each.operation} does not end" for each in open_]
    world.closed = [app for app, actor in zip(world.apps, actors, strict=True) if actor.closed]
    world.apps = [app for app in world.apps if app not in world.closed]
    for app in world.apps:
        # Who reads what a dead process has left ends it, and an answer that has ended gets a title.
        for session in await app.storage.sessions(None):
            await app.storage.turns(session.id)
        world.stuck += await rest(app)


async def _process(world: World, folder: Path, ready: asyncio.Event) -> None:
    """A second process, which ends by itself or, when it has told so much, by a kill."""
    mine = [asdict(each) for each in world.operations if each.actor == "process"]
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CHILD),
        str(folder),
        world.nap,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 22,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(f"{json.dumps([world.ledger.sessions, mine])}\n".encode())
        lives = random.Random(f"kill {world.seed}").randrange(2, 40) if world.mode.kill else -1
        while line := await child.stdout.readline():
            world.ledger.take(line)
            ready.set()
            lives -= 1
            if lives == 0:
                child.kill()
    except BaseException:
        child.kill()
        raise
    finally:
        await child.wait()
        child.stdin.close()


def descriptors() -> int:
    """How many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))
