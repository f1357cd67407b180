"""Subagents as a model meets them: through the task tool, in sessions of their own."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import App
from pegboard.errors import ProviderError
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.event import PartUpdated
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import Rule
from pegboard_plugins import rules as rules_plugin
from pegboard_plugins import task as task_plugin
from pegboard_plugins.edit import write_plugin
from support.models.played import HI, Answer, Played, calls, opened, text, tools_of
from support.models.played import call as model_call

WORK = "do the work"
SESSION = re.compile(r"session_id: (ses_\w+)")


def task(prompt: str = WORK, **more: object) -> list[StreamEvent]:
    arguments = {"description": "d", "prompt": prompt, "subagent_type": "helper", **more}
    return model_call("task", json.dumps(arguments), call_id=f"call_{len(str(arguments))}")


def said(request: ModelRequest) -> str:
    """The last prompt of a request."""
    return [str(each.content) for each in request.messages if each.role == "user"][-1]


def delegating(child: list[StreamEvent] | Exception | float, **more: object) -> Played:
    """The user's agent gives one task, whose subagent answers, fails or waits for seconds."""

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if WORK not in said(request):
            done = request.messages[-1].role == "tool"
            events = text("parent done") if done else calls(task(**more))
        elif isinstance(child, Exception):
            raise child
        elif isinstance(child, float):
            await asyncio.sleep(child)
            events = text("late")
        else:
            events = text("tried") if request.messages[-1].role == "tool" else child
        for event in events:
            yield event

    return Played(answer)


async def outcome(folder: Path, provider: Played) -> ToolPart:
    """The part of the one task of a turn, which goes on after it."""
    async with opened(folder, provider, task_plugin) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        (part,) = tools_of(await app.list_turns(session.id))
    assert "parent done" in str(turn.parts)
    return part


async def test_a_task_that_is_done_answers_with_its_session(tmp_path: Path) -> None:
    part = await outcome(tmp_path, delegating(text("all well")))

    assert isinstance(part.state, Completed)
    assert part.state.output.startswith("all well\n\n<task_metadata>\nsession_id: ses_")
    assert part.state.metadata["outcome"] == "done"


@pytest.mark.parametrize(
    ("child", "more", "kind", "said_of_it"),
    [
        (ProviderError("no such place", status=404), {}, "failed", "work failed. no such place"),
        (60.0, {"timeout_s": 1}, "timed_out", "work timed out. The subagent did not end within 1"),
    ],
    ids=["failed", "timed out"],
)
async def test_how_a_task_ended_is_told(
    tmp_path: Path,
    child: Exception | float,
    more: dict[str, object],
    kind: str,
    said_of_it: str,
) -> None:
    part = await outcome(tmp_path, delegating(child, **more))

    assert isinstance(part.state, Failed)
    assert said_of_it in part.state.error
    assert SESSION.search(part.state.error)
    assert (part.state.metadata or {})["outcome"] == kind


def never_done(begun: asyncio.Event) -> Answer:
    """A caller that gives work to a subagent, which begins and does not end by itself."""

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if WORK in said(request):
            begun.set()
            await asyncio.sleep(60)
        done = request.messages[-1].role == "tool"
        for event in text("parent done") if done else calls(task()):
            yield event

    return answer


async def test_a_task_that_was_stopped_is_told_and_the_caller_goes_on(tmp_path: Path) -> None:
    working = asyncio.Event()

    async with opened(tmp_path, Played(never_done(working)), task_plugin) as app:
        session = await app.create_session()
        prompting = asyncio.create_task(app.prompt(session.id, HI))
        await working.wait()
        (child,) = await app.storage.children(session.id)

        assert await app.abort(child.id)

        turn = await prompting
        (part,) = tools_of(await app.list_turns(session.id))
    assert "parent done" in str(turn.parts)
    assert isinstance(part.state, Failed)
    assert "the subagent's work cancelled" in part.state.error
    assert (part.state.metadata or {})["outcome"] == "cancelled"


async def test_a_task_is_continued_where_it_was(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if WORK in said(request) or "more of it" in said(request):
            asked.append([str(each.content) for each in request.messages if each.role == "user"])
            events = text("piece done")
        elif last.role != "tool":
            events = calls(task())
        elif len(asked) == 1:
            found = SESSION.search(str(last.content))
            assert found
            events = calls(task("more of it", session_id=found[1]))
        else:
            events = text("parent done")
        for event in events:
            yield event

    async with opened(tmp_path, Played(answer), task_plugin) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        children = await app.storage.children(session.id)
        parts = tools_of(await app.list_turns(session.id))

    assert [isinstance(part.state, Completed) for part in parts] == [True, True]
    assert len(children) == 1
    assert [len(prompts) for prompts in asked] == [1, 2]
    assert WORK in asked[1][0]


async def test_of_two_that_go_on_with_a_task_one_is_told_to_wait(tmp_path: Path) -> None:
    asked = 0
    refused = asyncio.Event()

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        nonlocal asked
        asked += 1
        found = SESSION.search(str(request.messages))
        if WORK in said(request):
            if re.search(f"{WORK} (on|away)", said(request)):
                await asyncio.wait_for(refused.wait(), 30)
            events = text("piece done")
        elif not found:
            events = calls(task())
        elif len(request.messages) < 5:
            more = (task(f"{WORK} {which}", session_id=found[1]) for which in ("on", "away"))
            events = calls(*more)
        else:
            events = text("parent done")
        for event in events:
            yield event

    async def watch(app: App) -> None:
        async with app.subscribe() as events:
            async for event in events:
                match event.properties:
                    case PartUpdated(part=ToolPart(state=Failed())):
                        refused.set()

    async with opened(tmp_path, Played(answer), task_plugin) as app:
        session = await app.create_session()
        watching = asyncio.create_task(watch(app))
        await app.prompt(session.id, HI)
        watching.cancel()
        parts = tools_of(await app.list_turns(session.id))
        tokens = (await app.session(session.id)).tokens

    [failed] = [part.state.error for part in parts if isinstance(part.state, Failed)]
    assert [type(part.state) for part in parts].count(Completed) == 2
    assert "is at work: wait until it has ended" in failed
    assert tokens is not None
    assert tokens.input == 10 * asked


async def test_a_task_whose_session_is_deleted_was_cancelled(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async with opened(tmp_path, Played(never_done(begun)), task_plugin) as app:
        session = await app.create_session()
        turn = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.wait_for(begun.wait(), 30)
        (child,) = await app.storage.children(session.id)
        await app.delete_session(child.id)
        await turn
        (part,) = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert "the subagent's work cancelled" in part.state.error


async def test_only_a_subagent_s_own_caller_continues_it(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hi")), task_plugin) as app:
        other = await app.create_session()
    provider = delegating(text("x"), session_id=other.id)

    part = await outcome(tmp_path, provider)

    assert isinstance(part.state, Failed)
    assert f"{other.id} is not a subagent's session of this one" in part.state.error


async def test_a_subagent_that_may_do_everything_may_not_do_more_than_its_caller(
    tmp_path: Path,
) -> None:
    arguments = json.dumps({"filePath": "made", "content": "x"})
    provider = delegating(calls(model_call("write", arguments)))
    denied = (Rule("edit", "made", "deny"),)
    plugins = (rules_plugin, task_plugin, write_plugin)
    async with opened(tmp_path, provider, *plugins, allow=False) as app:
        session = await app.create_session(permission=denied)
        await app.prompt(session.id, HI)
        (child,) = await app.storage.children(session.id)
        (part,) = tools_of(await app.list_turns(child.id))

    assert isinstance(part.state, Failed)
    assert (part.state.metadata or {})["denied"] is True
    assert not (tmp_path / "project" / "made").exists()
