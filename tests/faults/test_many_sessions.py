"""Many sessions at once in one process: nothing is mixed up, lost or kept for ever."""

import asyncio
import gc
import json
import re
import sys
import zlib
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from pegboard import App, ToolContext, tool
from pegboard.contract.tools import Tool
from pegboard.engine.bus import Subscription
from pegboard.engine.history import History
from pegboard.engine.run import Run
from pegboard.engine.step import Step
from pegboard.providers import (
    Call,
    Content,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Result,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from pegboard.schema.event import MessageUpdated, PartUpdated
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Completed, Part, ToolPart
from pegboard.schema.wire import encode
from support.models.played import USAGE, Played, ToolsPlugin, as_told, opened
from support.storage import stored
from support.tools.worktrees import git

SESSIONS = 20
STEPS = 50
EARLY = 10
MOST_BLOCKS_PER_STEP = 250
"""A step stays in memory as its message, its parts and what the model sees of them."""
MOST_BYTES_PER_STEP = 32 << 10
TAG = re.compile(r"tag-\d+")


def said_in(content: Sequence[Content]) -> str:
    """All that a message says."""
    found: list[str] = []
    for item in content:
        match item:
            case Text(text=said):
                found.append(said)
            case Call(input=arguments):
                found.append(json.dumps(dict(arguments)))
            case Result(output=output):
                found.append(output)
            case _:
                pass
    return " ".join(found)


class Busy(Played):
    """A model that speaks and makes two calls at once, fifty times in each session.

    `foreign` is what a session was told of another; `blocks` and `bytes` are the memory in use
    after so many steps of all sessions together.
    """

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.blocks: dict[int, int] = {}
        self.bytes: dict[int, int] = {}
        self._steps = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        tag = said_in(request.messages[0].content)
        for message in request.messages[-2:]:
            tags = set(TAG.findall(said_in(message.content)))
            self.foreign += sorted(tags - {tag})
        self._count()
        yield ReasoningStart("r")
        yield ReasoningDelta("r", f"{tag} thinks")
        yield ReasoningEnd("r")
        yield TextStart("t")
        for number in range(5):
            yield TextDelta("t", f"{tag} {number} ")
            await asyncio.sleep(0)
        yield TextEnd("t")
        step = len(request.messages) // 2
        if step == STEPS:
            yield StreamFinish("stop", USAGE)
            return
        for name in ("note", "look"):
            arguments = json.dumps({"tag": tag, "step": step})
            yield ToolCall(f"{name}_{step}", name, arguments)  # the same ids in every session
        yield StreamFinish("tool-calls", USAGE)

    def _count(self) -> None:
        self._steps += 1
        if self._steps % SESSIONS == 0:
            gc.collect()
            self.blocks[self._steps] = sys.getallocatedblocks()
            self.bytes[self._steps] = resident_bytes()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096


def tools() -> tuple[Tool, ...]:
    @tool(permission="edit", effect="edits")
    async def note(tag: str, step: int, context: ToolContext) -> str:
        """Write a file."""
        place = context.directory / tag / f"{step}.txt"
        await context.files.replace(place, f"{tag} {step}".encode())
        await context.record_edit(place)
        return f"{tag} {step} {context.session.id}"

    @tool(permission="read", effect="reads")
    async def look(tag: str, step: int, context: ToolContext) -> str:
        """Take a moment."""
        context.progress(title=tag)
        await asyncio.sleep(0.001 * (step % 3))
        return f"{tag} {step} {context.session.id}"

    return note, look


class Heard:
    """What a subscriber has been told, in little room: numbers, and the last state of things."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.states: dict[str, int] = {}

    async def listen(self, subscription: Subscription) -> None:
        async for event in subscription:
            if event.seq:
                self.numbers.append(event.seq)
            match event.properties:
                case MessageUpdated(info=info):
                    self.states[info.id] = state_of(info)
                case PartUpdated(part=part):
                    self.states[part.id] = state_of(as_told(part))
                case _:
                    pass


def state_of(thing: object) -> int:
    return zlib.crc32(encode(thing))


def check_own(session: str, tag: str, turns: Sequence[Turn], project: Path) -> None:
    """The session has its own fifty steps, and nothing of any other."""
    answers = [turn for turn in turns if isinstance(turn.info, AssistantMessage)]
    assert len(answers) == STEPS + 1
    for step, turn in enumerate(answers[:-1]):
        assert set(TAG.findall(encode(turn.parts).decode())) == {tag}
        assert [state(part) for part in turn.parts if isinstance(part, ToolPart)] == [
            f"{tag} {step} {session}"
        ] * 2
        assert (project / tag / f"{step}.txt").read_text() == f"{tag} {step}"


def state(part: Part) -> str:
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, Completed)
    return part.state.output


async def check_events(app: App, heard: Heard, turns: Sequence[Turn]) -> None:
    """Every change was heard once, in order, and the last of each thing is its row."""
    last = await stored.last_seq(app.storage)
    assert heard.numbers == list(range(heard.numbers[0], last + 1))
    rows = {turn.info.id: state_of(turn.info) for turn in turns}
    rows |= {part.id: state_of(as_told(part)) for turn in turns for part in turn.parts}
    assert rows == heard.states


def check_memory(provider: Busy) -> None:
    """From the tenth to the fiftieth step there is no more than the steps themselves."""
    early, middle, late = (SESSIONS * step for step in (EARLY, (EARLY + STEPS) // 2, STEPS))
    for first, last in pairwise((early, middle, late)):
        steps = last - first
        assert provider.blocks[last] - provider.blocks[first] < steps * MOST_BLOCKS_PER_STEP
        assert provider.bytes[last] - provider.bytes[first] < steps * MOST_BYTES_PER_STEP


def kept() -> set[int]:
    """What is in memory of runs, of other tests' too."""
    gc.collect()
    return {id(thing) for thing in gc.get_objects() if isinstance(thing, Run | History | Step)}


@pytest.mark.long
@pytest.mark.timeout(900)  # a busy machine took five minutes
async def test_twenty_sessions_of_fifty_steps_at_once(tmp_path: Path) -> None:
    before = kept()
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    provider, heard = Busy(), Heard()
    async with opened(tmp_path, provider, ToolsPlugin(*tools())) as app:
        sessions = {(await app.create_session()).id: f"tag-{n}" for n in range(SESSIONS)}

        async with app.subscribe(limit=10_000) as subscription, asyncio.TaskGroup() as group:
            listening = group.create_task(heard.listen(subscription))
            async with asyncio.TaskGroup() as prompts:
                for session, tag in sessions.items():
                    prompts.create_task(app.prompt(session, tag))
            subscription.close()
            await listening
            assert subscription.missed == 0

        check_memory(provider)
        assert kept() <= before, "of a run that has ended nothing is kept"
        assert provider.foreign == []
        stored = {session: await app.list_turns(session) for session in sessions}
        for session, tag in sessions.items():
            check_own(session, tag, stored[session], project)
        await check_events(app, heard, [turn for turns in stored.values() for turn in turns])
