"""Calls of a size that nobody needs are refused with a reason, and neither stored nor held."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Prompt, ToolContext, tool
from pegboard.engine.stream import LONGEST_INPUT_BYTES, MOST_CALLS
from pegboard.providers import (
    ModelRequest,
    Result,
    StreamEvent,
    StreamFinish,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from pegboard.schema.part import Completed, Failed
from pegboard_plugins.shared.frontend import CommandOrder, run_command
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, chunk, finish, say, tool_call
from support.models.played import (
    HI,
    Played,
    ToolsPlugin,
    call,
    calls,
    opened,
    shout,
    text,
    tools_of,
)

MEGABYTE = "x" * (1 << 20)


class Endless:
    """Answers that go on as long as somebody listens; `pieces` counts what was heard."""

    def __init__(self, first: list[StreamEvent], piece: Any) -> None:
        self.pieces = 0
        self._first, self._piece = first, piece

    async def __call__(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in self._first:
            yield event
        while True:
            await asyncio.sleep(0)
            self.pieces += 1
            yield self._piece(self.pieces)


async def test_arguments_without_an_end_are_heard_as_far_as_they_may_be_long(
    tmp_path: Path,
) -> None:
    whole = call("shout", '{"words": "whole"}', call_id="c0")
    first = [*whole, ToolInputStart("c1", "shout")]
    endless = Endless(first, lambda _: ToolInputDelta("c1", MEGABYTE))
    provider = Played(endless, text("I write less"))

    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        done, refused = tools_of(await app.list_turns(session.id))

    assert endless.pieces == (LONGEST_INPUT_BYTES >> 20) + 1
    assert isinstance(done.state, Completed)
    assert isinstance(refused.state, Failed)
    assert "over 8 MB. Write less at once" in refused.state.error
    assert refused.state.input == {}
    told = [part for message in provider.requests[1].messages for part in message.content]
    assert any(isinstance(each, Result) and "over 8 MB" in str(each) for each in told)


async def test_calls_without_an_end_are_refused_beyond_as_many_as_may_be(tmp_path: Path) -> None:
    endless = Endless([], lambda count: ToolInputStart(f"c{count}", "shout"))
    provider = Played(endless, text("I call less"))

    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        parts = tools_of(await app.list_turns(session.id))

    assert (endless.pieces, len(parts)) == (MOST_CALLS + 1, MOST_CALLS)
    errors = {part.state.error for part in parts if isinstance(part.state, Failed)}
    assert len(errors) == 1
    assert "more than 256 calls. Make fewer" in errors.pop()


async def test_a_call_that_comes_at_once_is_held_to_the_same(tmp_path: Path) -> None:
    long = json.dumps({"words": MEGABYTE * 9})
    provider = Played([ToolCall("c1", "shout", long), StreamFinish("tool-calls")], text("ok"))

    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert part.state.input == {}


async def test_what_is_just_within_the_bounds_is_made(tmp_path: Path) -> None:
    many = [call("shout", '{"words": "a"}', call_id=f"c{at}") for at in range(MOST_CALLS)]
    letters = LONGEST_INPUT_BYTES - len('{"words": ""}')
    long = call("shout", f'{{"words": "{"é" * (letters // 2)}"}}', call_id="long")
    provider = Played(calls(*many), calls(long), text("ok"))

    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        parts = tools_of(await app.list_turns(session.id))

    assert len(parts) == MOST_CALLS + 1
    assert all(isinstance(part.state, Completed) for part in parts)


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path, tmp_path / "project")


async def test_a_run_stores_nothing_of_fifty_megabytes_of_arguments(pegboard: CommandLine) -> None:
    begin = tool_call("write", '{"filePath": "a.txt", "content": "', call_id="c1")
    piece = chunk({"tool_calls": [{"index": 0, "function": {"arguments": MEGABYTE}}]})
    answer = [*begin, *[piece] * 50, *finish("tool_calls")]

    async with ModelServer(by_step(answer, say("I write less"))) as server:
        pegboard.use_model(server.url, title="off")
        run = await pegboard("run", "--trust", "--format", "json", "write much")

    result = server.requests[-1]["messages"][-1]
    assert run.code == 0, run.err
    assert (result["role"], "over 8 MB" in result["content"]) == ("tool", True)
    assert server.disconnects == 1
    assert sum(each.stat().st_size for each in (pegboard.home / "data").glob("*.db*")) < 1 << 20
    assert not (pegboard.project / "a.txt").exists()


async def test_a_run_makes_none_of_ten_thousand_calls(pegboard: CommandLine) -> None:
    many = [
        tool_call("bash", '{"command": "touch ran"}', call_id=f"c{at}", index=at)
        for at in range(10_000)
    ]
    answer = [*(piece for each in many for piece in each), *finish("tool_calls")]

    async with ModelServer(by_step(answer, say("I call less"))) as server:
        pegboard.use_model(server.url, title="off")
        run = await pegboard("run", "--trust", "--format", "json", "call much")

    results = [each for each in server.requests[-1]["messages"] if each["role"] == "tool"]
    assert run.code == 0, run.err
    assert len(results) == MOST_CALLS
    assert all("more than 256 calls" in each["content"] for each in results)
    assert not (pegboard.project / "ran").exists()


async def test_of_a_name_that_no_tool_has_the_beginning_stays(tmp_path: Path) -> None:
    provider = Played(call("shout" * 2_000_000, "{}", call_id="c0"), text("I call another"))

    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        (part,) = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert f"there is no tool '{'shout' * 40}…'" in part.state.error
    assert len(str(part)) < 2000
    assert len(str(provider.requests[1].messages)) < 5000


async def test_a_call_of_a_call_is_bounded_alike(tmp_path: Path) -> None:
    @tool
    async def relay(context: ToolContext) -> str:
        """Call another."""
        return (await context.call_tool("shout" * 2_000_000, {})).output

    provider = Played(call("relay", "{}", call_id="c0"), text("I call another"))

    async with opened(tmp_path, provider, ToolsPlugin(relay)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        parts = tools_of(await app.list_turns(session.id))

    assert {len(str(part)) < 2000 for part in parts} == {True}
    assert all(isinstance(part.state, Failed) for part in parts)


async def test_of_a_name_that_nothing_has_the_error_has_the_beginning(tmp_path: Path) -> None:
    name = "played/" + "x" * 10_000_000

    async with opened(tmp_path, Played(), ToolsPlugin(shout)) as app:
        session = await app.create_session()
        for prompting in (
            app.prompt(session.id, Prompt(HI, model=name)),
            app.prompt(session.id, Prompt(HI, agent=name)),
            run_command(app, session.id, CommandOrder(name=name, arguments="")),
        ):
            with pytest.raises(LookupError, match=r"not found: played/x{193}…") as raised:
                await prompting
            assert len(str(raised.value)) < 500
