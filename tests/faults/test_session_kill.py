"""Whole sessions whose process is killed at any moment: nothing that was said is lost."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest

from pegboard import App
from pegboard.providers import Result
from pegboard.schema.event import MessageUpdated, PartUpdated
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import Completed, Failed, PatchPart, ToolPart
from pegboard.storage.rows import INTERRUPTED_CALL, NEVER_RAN
from pegboard_plugins.shared.frontend import reverted, unreverted
from support.models.played import Played, ToolsPlugin, as_told, opened, text
from support.processes.forks import PIPE, environment, start
from support.sessions.session_child import SESSIONS, rank, tools, unpaired
from support.storage import stored
from support.tools.worktrees import git

CHILD = Path(__file__).parents[1] / "support/sessions/session_child.py"
KILLS = int(os.environ.get("PEGBOARD_KILLS", "25"))
ROUND_LIMIT_S = 60
LIFE_LINES, LIFE_S = 120, 0.05
"""The longest that a child lives after it has begun to work: so many lines, and so long then."""
START_S = 0.2
"""What a child takes to begin its work, and a little."""
KILLS_OF_ONE_DATABASE = 25
INTERRUPTED = {INTERRUPTED_CALL, NEVER_RAN}


@dataclass(slots=True)
class Told:
    """What a child has said before it was killed."""

    sessions: list[str] = field(default_factory=list)
    messages: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    parts: dict[tuple[str, str], int] = field(default_factory=dict)
    started: list[tuple[str, str]] = field(default_factory=list)
    results: set[tuple[str, str]] = field(default_factory=set)
    unpaired: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        kind, *words = line.split()
        match kind:
            case "session":
                self.sessions.append(words[0])
            case "prompt" | "answer" | "message":
                self.messages[words[0]].add(words[1])
            case "started":
                self.started.append((words[0], words[1]))
            case "result":
                self.results.add((words[0], words[1]))
            case "part":
                key = (words[0], words[1])
                self.parts[key] = max(self.parts.get(key, 0), int(words[2]))
            case "unpaired":
                self.unpaired.append(line)
            case _:
                assert kind == "open"


def killed(folder: Path, nap: str, sessions: Sequence[str], chance: random.Random) -> Told:
    """What a child told until it was killed, at work or, now and then, while it starts."""
    command = [sys.executable, str(CHILD), str(folder), nap, *sessions]
    with start(command, cwd=folder, env=environment(), stdout=PIPE) as child:
        assert child.stdout is not None
        lines: list[bytes] = []
        if chance.random() < 0.8:
            lines = [child.stdout.readline() for _ in range(chance.randint(1, LIFE_LINES))]
            time.sleep(chance.uniform(0.0, LIFE_S))
        else:
            time.sleep(chance.uniform(0.0, START_S))
        child.kill()
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    told = Told()
    for line in lines:
        if line.endswith(b"\n"):
            told.take(line.decode())
    return told


def alive(nap: str) -> list[int]:
    """The processes that sleep for so long: no others on this machine do."""
    wanted = f"sleep\0{nap}\0".encode()
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            if (place / "cmdline").read_bytes() == wanted:
                found.append(int(place.name))
        except OSError:
            continue
    return found


async def nothing_runs(nap: str) -> None:
    async with asyncio.timeout(ROUND_LIMIT_S):
        while alive(nap):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.02)


def calls_of(turns: Sequence[Turn]) -> dict[str, ToolPart]:
    return {
        part.call_id: part for turn in turns for part in turn.parts if isinstance(part, ToolPart)
    }


def check_kept(session: str, told: Told, turns: Sequence[Turn], project: Path) -> None:
    """Every message, part, call and result that was acknowledged is there, as far or further."""
    parts = {part.id: part for turn in turns for part in turn.parts}
    calls = calls_of(turns)
    assert told.messages[session] <= {turn.info.id for turn in turns}
    for (owner, part_id), far in told.parts.items():
        if owner == session:
            assert rank(parts[part_id]) >= far
    assert {call for owner, call in told.started if owner == session} <= set(calls)
    for owner, call in told.results:
        if owner == session:
            state = calls[call].state
            assert isinstance(state, Completed | Failed)
            assert isinstance(state, Completed) or state.error in INTERRUPTED
            if calls[call].tool == "put" and isinstance(state, Completed):
                name = f"{session}/{call}"
                assert state.output == f"written {name}"
                assert (project / name).read_text() == name


def check_ended(turns: Sequence[Turn]) -> None:
    """Nothing is unfinished; what was interrupted says so."""
    for turn in turns:
        if isinstance(turn.info, UserMessage):
            assert turn.parts
            continue
        assert isinstance(turn.info, AssistantMessage)
        assert turn.info.time.completed is not None
        for call in calls_of([turn]).values():
            if not isinstance(call.state, Completed):
                assert isinstance(call.state, Failed)
                assert call.state.error in INTERRUPTED
                assert turn.info.error is not None


async def check_events(app: App, turns: dict[str, tuple[Turn, ...]]) -> None:
    """Each event has its number once, and the last of a thing is what its row says."""
    events = await app.storage.events(0, limit=100_000)
    assert len({event.seq for event in events}) == len(events)
    told: dict[str, object] = {}
    for event in events:
        match event.properties:
            case MessageUpdated(info=info) if info.session_id in turns:
                told[info.id] = info
            case PartUpdated(part=part) if part.session_id in turns:
                told[part.id] = as_told(part)
            case _:
                pass
    rows: dict[str, object] = {turn.info.id: turn.info for each in turns.values() for turn in each}
    parts = (part for each in turns.values() for turn in each for part in turn.parts)
    rows |= {part.id: as_told(part) for part in parts}
    assert told.items() <= rows.items()


async def check_goes_on(app: App, provider: Played, session: str) -> None:
    """The session takes a prompt, and the model hears of every call with its result."""
    interrupted = {
        name: part.state.error
        for name, part in calls_of(await app.list_turns(session)).items()
        if isinstance(part.state, Failed) and part.state.error == INTERRUPTED_CALL
    }

    answer = await app.prompt(session, "go on")

    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is None
    messages = provider.requests[-1].messages
    assert unpaired(messages) == []
    results = [item for message in messages for item in message.content if isinstance(item, Result)]
    heard = {item.id: item.output for item in results}
    assert {name: heard.get(name) for name in interrupted} == interrupted


async def check_files(app: App, session: str) -> None:
    """What the finished steps did to files can be undone, and done again."""
    turns = await app.list_turns(session)
    patches = [part for turn in turns for part in turn.parts if isinstance(part, PatchPart)]
    files = {Path(file) for patch in patches for file in patch.files}
    if not files:
        return

    undone = await reverted(app, session, turns[0].info.id)
    assert (set(undone.files.changed), undone.files.left) == (files, ())
    assert not any(file.exists() for file in files)

    redone = await unreverted(app, session)
    assert (set(redone.files.changed), redone.files.left) == (files, ())


async def check_round(folder: Path, told: Told) -> None:
    provider = Played(text("I go on."))
    project = folder / "project"
    async with opened(folder, provider, ToolsPlugin(*tools())) as app:
        assert app.storage.warnings == ()
        assert await stored.running(app.storage) == ()
        turns = {session: await app.list_turns(session) for session in told.sessions}
        await check_events(app, turns)
        for number, (session, each) in enumerate(turns.items()):
            check_kept(session, told, each, project)
            check_ended(each)
            if number == 0:
                await check_files(app, session)
            await check_goes_on(app, provider, session)


def check_database(path: Path) -> None:
    db = apsw.Connection(str(path))
    assert db.pragma("integrity_check") == "ok"
    assert db.pragma("foreign_key_check") is None
    db.close()


@pytest.mark.long
@pytest.mark.timeout(60 + KILLS * ROUND_LIMIT_S)
async def test_killed_sessions_keep_all_that_was_acknowledged_and_go_on(tmp_path: Path) -> None:
    chance = random.Random(KILLS)
    nap = f"86400.{random.SystemRandom().randrange(10**6, 10**7)}"
    begun: list[tuple[str, str]] = []
    sessions: list[str] = []
    prompts = 0

    for number in range(KILLS):
        folder = tmp_path / str(number // KILLS_OF_ONE_DATABASE)
        if number % KILLS_OF_ONE_DATABASE == 0:
            sessions = []
            (folder / "project").mkdir(parents=True)
            git(folder / "project", "init", "-q")
        told = await asyncio.to_thread(killed, folder, nap, sessions, chance)
        await nothing_runs(nap)
        await check_round(folder, told)
        check_database(folder / "data" / "pegboard.db")
        assert told.unpaired == []
        begun += told.started
        prompts += sum(map(len, told.messages.values()))
        # One session goes on in the next child, the others make room for new ones.
        sessions = told.sessions[:1] if len(told.sessions) == SESSIONS else sessions

    await nothing_runs(nap)  # nor has anything begun meanwhile
    assert len(set(begun)) == len(begun)  # no call ran twice
    assert len(begun) > KILLS
    assert prompts > KILLS
