"""What the model reads of a call that was stopped: its report, then that it was stopped."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import App
from pegboard.providers import ModelRequest, Result, StreamEvent
from pegboard.schema.part import Failed, Running, ToolPart
from pegboard_plugins import bash as bash_plugin
from pegboard_plugins import task as task_plugin
from support.models.played import HI, Played, calls, opened, text
from support.models.played import call as call_events

LIMIT_S = 60
STOPPED = "The call was stopped before it ended."


def results(request: ModelRequest) -> list[str]:
    """The results of calls that the model reads."""
    content = (each for message in request.messages for each in message.content)
    return [each.output for each in content if isinstance(each, Result)]


@pytest.mark.parametrize("stop", ["abort", "time limit"])
async def test_the_model_reads_the_output_of_a_command_that_was_stopped(
    tmp_path: Path, stop: str
) -> None:
    read: list[str] = []

    async def again(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        read.extend(results(request))
        for event in text("seen"):
            yield event

    line = '{"command": "printf \'important\\\\n\'; exec sleep 4713"}'
    provider = Played(call_events("bash", line), again)
    budget = {"budget": {"run": {"minutes": 0.1}}} if stop == "time limit" else {}
    config = {"model": "played/m", **budget}
    async with opened(tmp_path, provider, bash_plugin, config=config) as app:
        session = await app.create_session()
        prompting = asyncio.create_task(app.prompt(session.id, HI))
        async with asyncio.timeout(LIMIT_S):
            while stop == "abort" and not await _printed(app, session.id):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        if stop == "abort":
            await app.abort(session.id)
        turn = await prompting
        await app.prompt(session.id, HI)

    [part] = [each for each in turn.parts if isinstance(each, ToolPart)]
    assert isinstance(part.state, Failed)
    assert (part.state.metadata or {})["output"] == "important\n"
    assert read == [f"important\n\n{STOPPED}"]


async def _printed(app: App, session_id: str, end: str = "\n") -> bool:
    turns = await app.list_turns(session_id)
    parts = [each for turn in turns for each in turn.parts if isinstance(each, ToolPart)]
    shown = [(each.state.metadata or {}) for each in parts if isinstance(each.state, Running)]
    return any(str(each.get("output", "")).endswith(end) for each in shown)


async def test_a_long_output_of_a_stopped_command_is_cut_for_the_model(tmp_path: Path) -> None:
    line = '{"command": "seq 1 100000; exec sleep 4714"}'
    async with opened(tmp_path, Played(call_events("bash", line)), bash_plugin) as app:
        session = await app.create_session()
        prompting = asyncio.create_task(app.prompt(session.id, HI))
        async with asyncio.timeout(LIMIT_S):
            while not await _printed(app, session.id, "100000\n"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await app.abort(session.id)
        turn = await prompting

    [part] = [each for each in turn.parts if isinstance(each, ToolPart)]
    assert isinstance(part.state, Failed)
    assert part.state.error.startswith("[the last 30,000 of ")
    assert part.state.error.endswith(f"100000\n\n{STOPPED}")
    assert len(part.state.error.encode()) < 51_200 + 1_000


async def test_the_model_reads_the_session_of_a_subagent_that_was_stopped_with_its_caller(
    tmp_path: Path,
) -> None:
    begun = asyncio.Event()
    read: list[str] = []
    order = '{"description": "d", "prompt": "work", "subagent_type": "general"}'

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if "work" in str(request.messages[-1].content):
            begun.set()
            await asyncio.sleep(LIMIT_S)
        if found := results(request):
            read.extend(found)
            events = text("on")
        else:
            events = calls(call_events("task", order))
        for event in events:
            yield event

    async with opened(tmp_path, Played(answer), task_plugin, builtins=True) as app:
        session = await app.create_session()
        prompting = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.wait_for(begun.wait(), LIMIT_S)
        [child] = await app.storage.children(session.id)
        await app.abort(session.id)
        await prompting
        await app.prompt(session.id, HI)

    assert read == [f"<task_metadata>\nsession_id: {child.id}\n</task_metadata>\n\n{STOPPED}"]
