"""Several tools, sessions and subagents write one file at the same time."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.unstable import LocalLedger
from pegboard_plugins import apply_patch, edit, read, task
from support.models.played import Played, ToolsPlugin, call, calls, opened, text

HI = "hi"
LINES = [f"line {number}" for number in range(8)]


def delegate(number: int) -> list[StreamEvent]:
    arguments = {"description": "w", "prompt": f"change {number}", "subagent_type": "helper"}
    return call("task", json.dumps(arguments), call_id=f"c{number}")


def patch(number: int) -> list[StreamEvent]:
    body = f"@@\n-line {number}\n+changed {number}"
    arguments = {"patchText": f"*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch"}
    return call("apply_patch", json.dumps(arguments))


def change(number: int, call_id: str = "call_0") -> list[StreamEvent]:
    arguments = {"filePath": "f", "oldString": f"line {number}", "newString": f"changed {number}"}
    return call("edit", json.dumps(arguments), call_id=call_id)


def said(request: ModelRequest) -> str:
    """The prompt that the request is about."""
    prompts = [message for message in request.messages if message.role == "user"]
    return str(prompts[-1].content)


async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
    """The parent starts a subagent for each line; each reads, and changes until it could."""
    prompt, last = said(request), str(request.messages[-1].content)
    number = next((n for n in range(len(LINES)) if f"change {n}" in prompt), None)
    is_result = request.messages[-1].role == "tool"
    if number is None:
        events = text("done") if is_result else calls(*(delegate(n) for n in range(8)))
    elif not is_result or "read it again" in last:
        events = calls(call("read", '{"filePath": "f"}'))
    elif "<file>" in last:
        events = calls(patch(number) if number % 2 else change(number))
    else:
        events = text("changed")
    for event in events:
        yield event


@pytest.mark.timeout(50)
async def test_of_subagents_that_change_one_file_none_loses_its_change(tmp_path: Path) -> None:
    path = tmp_path / "project" / "f"
    path.parent.mkdir()
    path.write_text("\n".join(LINES) + "\n")
    path.chmod(0o640)
    both = ToolsPlugin(edit.edit, apply_patch.apply_patch)  # no model is offered both
    async with opened(tmp_path, Played(answer), read, both, task) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        sessions = await app.sessions(roots=False)
        ledger = app._engine.files
        states = [
            part.state
            for each in sessions
            for turn in await app.list_turns(each.id)
            for part in turn.parts
            if isinstance(part, ToolPart)
        ]

    assert sorted(path.read_text().splitlines()) == [f"changed {n}" for n in range(8)]
    assert isinstance(ledger, LocalLedger)
    assert ledger._gates == {}
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in path.parent.iterdir()] == ["f"]
    assert all(isinstance(state, Completed | Failed) for state in states)


async def test_of_two_parallel_edits_in_one_answer_both_are_there(tmp_path: Path) -> None:
    path = tmp_path / "project" / "f"
    path.parent.mkdir()
    path.write_text("\n".join(LINES) + "\n")
    edits = [change(number, f"e{number}") for number in range(len(LINES))]
    provider = Played(calls(call("read", '{"filePath": "f"}')), calls(*edits), text("done"))
    async with opened(tmp_path, provider, read, edit) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    assert path.read_text().splitlines() == [f"changed {n}" for n in range(8)]
