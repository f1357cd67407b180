"""A process whose sessions work without end, and tell what is done; run by tests only.

`session_child.py <folder> <nap> <session>...` goes on with these sessions and begins new ones.
Each line on stdout is a fact that must outlive the process:

`session <id>`, `prompt <session> <message>`, `answer <session> <message>`: the call returned;
`started <session> <call>`: the tool runs;
`result <session> <call>`: the model was asked with the call's result;
`message <session> <id>` and `part <session> <id> <rank>`: an event told it.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path

sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).parents[2]))

from pegboard import App, Prompt, ToolContext, tool
from pegboard.contract.tools import Tool
from pegboard.providers import (
    Call,
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Result,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
)
from pegboard.schema.event import Event, MessageUpdated, PartUpdated
from pegboard.schema.part import Completed, Failed, Part, Running, TextInput, ToolPart
from support.models.played import USAGE, Played, ToolsPlugin, opened

SESSIONS = 3
STEPS = 4
PAUSE_S = 0.002


def told(*words: object) -> None:
    """Says it to the test, at once and in one piece."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def unpaired(messages: Sequence[ModelMessage]) -> list[str]:
    """The calls of a request that are not answered by the very next message."""
    bad: list[str] = []
    for at, message in enumerate(messages):
        asked = [item.id for item in message.content if isinstance(item, Call)]
        behind = messages[at + 1].content if at + 1 < len(messages) else ()
        given = [item.id for item in behind if isinstance(item, Result)]
        bad += [call_id for call_id in asked if given.count(call_id) != 1]
    return bad


def rank(part: Part) -> int:
    """How far a part is; it never goes back."""
    state = part.state if isinstance(part, ToolPart) else None
    match state:
        case Completed() | Failed():
            return 2
        case Running():
            return 1
        case _:
            return 0


class Working(Played):
    """A model that thinks, speaks and makes three calls at once, and stops after four steps."""

    def __init__(self, nap: str) -> None:
        super().__init__()
        self._nap = nap
        self._results: set[str] = set()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if bad := unpaired(request.messages):
            told("unpaired", request.session_id, *bad)
        self._tell_results(request)
        step = _steps_since_prompt(request)
        yield ReasoningStart("r")
        for number in range(5):
            yield ReasoningDelta("r", f"thought {number} ")
            await asyncio.sleep(PAUSE_S)
        yield ReasoningEnd("r")
        yield TextStart("t")
        for number in range(20):
            yield TextDelta("t", f"word {number} ")
            await asyncio.sleep(PAUSE_S)
        yield TextEnd("t")
        if step >= STEPS:
            yield StreamFinish("stop", USAGE)
            return
        for name, more in (("put", {}), ("put", {}), ("doze", {"nap": self._nap})):
            call_id = f"call_{os.urandom(8).hex()}"
            yield ToolInputStart(call_id, name)
            await asyncio.sleep(PAUSE_S)
            path = f"{request.session_id}/{call_id}"
            yield ToolCall(call_id, name, json.dumps({"path": path, **more}))
        yield StreamFinish("tool-calls", USAGE)

    def _tell_results(self, request: ModelRequest) -> None:
        for message in request.messages:
            for item in message.content:
                if isinstance(item, Result) and item.id not in self._results:
                    self._results.add(item.id)
                    told("result", request.session_id, item.id)


def _steps_since_prompt(request: ModelRequest) -> int:
    steps = 0
    for message in reversed(request.messages):
        if message.role == "user":
            break
        steps += message.role == "tool"
    return steps


def tools() -> tuple[Tool, ...]:
    """A tool that writes a file, and one whose process leaves another one behind."""

    @tool(permission="edit", effect="edits")
    async def put(path: str, context: ToolContext) -> str:
        """Write a file."""
        _begin(context)
        place = context.directory / path
        await context.files.replace(place, path.encode())
        await context.record_edit(place)
        return f"written {path}"

    @tool(permission="read", effect="reads")
    async def doze(path: str, nap: str, context: ToolContext) -> str:
        """Run a process for a moment."""
        _begin(context)
        await context.run(["/bin/sh", "-c", f"sleep {nap} & sleep 0.05"])
        return f"slept {path}"

    return put, doze


def _begin(context: ToolContext) -> None:
    told("started", context.session.id, context.call_id)


async def listen(app: App) -> None:
    """Tells what the events say."""
    async with app.subscribe(limit=1_000_000) as subscription:
        async for event in subscription:
            _tell_event(event)


def _tell_event(event: Event) -> None:
    match event.properties:
        case MessageUpdated(info=info):
            told("message", info.session_id, info.id)
        case PartUpdated(part=part):
            told("part", part.session_id, part.id, rank(part))
        case _:
            pass


async def work(app: App, session_id: str | None) -> None:
    """Prompts one session for as long as the process lives."""
    if session_id is None:
        session_id = (await app.create_session()).id
    told("session", session_id)
    for number in count():
        said = (TextInput(text=f"prompt {number}"),)
        note = await app.prompt(session_id, Prompt(parts=said, no_reply=True))
        told("prompt", session_id, note.info.id)
        answer = await app.prompt(session_id, Prompt(parts=said))
        told("answer", session_id, answer.info.id)


async def main(folder: str, nap: str, *sessions: str) -> None:
    """Works until the process is killed."""
    async with opened(Path(folder), Working(nap), ToolsPlugin(*tools())) as app:
        told("open")
        async with asyncio.TaskGroup() as group:
            group.create_task(listen(app))
            for number in range(SESSIONS):
                session_id = sessions[number] if number < len(sessions) else None
                group.create_task(work(app, session_id))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
