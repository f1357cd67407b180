"""Tool calls in the engine: repair, parallel runs, permissions, loops and time limits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import ToolContext, hookimpl, tool
from pegboard.providers import (
    ModelRequest,
    Result,
    StreamEvent,
    StreamFinish,
    TextDelta,
    ToolCall,
    ToolInputStart,
)
from pegboard.schema.event import PermissionAsked
from pegboard.schema.part import Completed, Failed
from pegboard.schema.session import PermissionRequest, Verdict
from support.models.played import (
    HI,
    Played,
    ToolsPlugin,
    call,
    calls,
    heard,
    opened,
    shout,
    text,
    texts,
    tools_of,
)


async def test_a_tool_call_runs_and_its_result_goes_back_to_the_model(tmp_path: Path) -> None:
    provider = Played(calls(call("shout", '{"words": "aha"}')), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

        [part] = tools_of(await app.list_turns(session.id))
        assert isinstance(part.state, Completed)
        assert part.state.output == "AHA"
        last = provider.requests[1].messages[-1]
        assert last.role == "tool"
        assert last.content == (Result(id="call_0", name="shout", output="AHA"),)


async def test_the_same_history_objects_go_into_every_request(tmp_path: Path) -> None:
    steps = [calls(call("shout", f'{{"words": "{n}"}}', call_id=f"c{n}")) for n in range(4)]
    provider = Played(*steps, text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    for earlier, later in zip(provider.requests, provider.requests[1:], strict=False):
        assert all(a is b for a, b in zip(earlier.messages, later.messages, strict=False))


async def test_a_tool_starts_while_the_model_still_writes(tmp_path: Path) -> None:
    ran = asyncio.Event()

    @tool
    async def ping() -> str:
        """Ping."""
        ran.set()
        return "pong"

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield ToolInputStart("c", "ping")
        yield ToolCall("c", "ping", "{}")
        async with asyncio.timeout(30):
            await ran.wait()
        yield TextDelta("t", "after the tool ran")
        yield StreamFinish("tool-calls")

    async with opened(tmp_path, Played(answer, text("done")), ToolsPlugin(ping)) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert texts(turn) == ["done"]


async def test_a_name_in_the_wrong_case_is_mended(tmp_path: Path) -> None:
    provider = Played(calls(call("Shout", '{"words": "aha"}')), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert part.tool == "shout"
    assert isinstance(part.state, Completed)


@pytest.mark.parametrize("name", [" shout ", "functions.shout", "sh_out"])
@pytest.mark.parametrize(
    "arguments",
    ['{"words": "a\nb",}', '```json\n{"words": "a\\nb"}\n```', '"{\\"words\\": \\"a\\\\nb\\"}"'],
)
async def test_a_call_in_a_wrong_form_is_made_where_its_meaning_is_clear(
    tmp_path: Path, name: str, arguments: str
) -> None:
    provider = Played(calls(call(name, arguments)), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed)
    assert (part.tool, part.state.input) == ("shout", {"words": "a\nb"})


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("whisper", "{}", "there is no tool 'whisper'; there are: shout"),
        ("shoot", "{}", "there is no tool 'shoot', the nearest is 'shout'; there are: shout"),
        ("shout", '{"words": "' + "[" * 600 + "]" * 600 + '"', "not valid JSON"),
        ("shout", '{"words": "a', "not valid JSON"),
        ("shout", '{"words": ' + "[" * 100_000, "not valid JSON"),
        ("shout", '{"words": ' + "[" * 600 + "]" * 600 + "}", "nested more than 500 deep"),
        ("shout", "[1]", "must be a JSON object"),
        ("shout", '{"volume": 3}', "words"),
        ("shout", '{"words": null}', "words"),
    ],
)
async def test_a_call_that_cannot_run_is_answered_with_the_reason(
    tmp_path: Path, name: str, arguments: str, says: str
) -> None:
    provider = Played(calls(call(name, arguments)), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert says in part.state.error
    assert texts(turn) == ["done"]


@tool(requires=False)
async def place(path: str, context: ToolContext) -> str:
    """Where a path leads."""
    return str(await context.require_path(Path(path)))


async def test_a_path_with_a_zero_byte_is_answered_with_the_reason(tmp_path: Path) -> None:
    provider = Played(calls(call("place", r'{"path": "a\u0000b"}')), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(place)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert part.state.error.endswith(r"a\x00b' is no path: embedded null byte")


async def test_an_output_is_read_by_its_name_and_the_folder_of_all_outputs_is_asked_for(
    tmp_path: Path,
) -> None:
    class Asks:
        """Asks for what is outside of the project."""

        @hookimpl
        async def permission_ask(self, request: PermissionRequest) -> Verdict:
            return Verdict(action="ask")

    outputs = tmp_path / "data" / "tool-output"
    paths = (outputs / "tool_1.txt", outputs, outputs / "a" / "b")
    asked = [call("place", f'{{"path": "{path}"}}', call_id=path.name) for path in paths]
    provider = Played(calls(*asked), text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(place), Asks(), allow=False) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        states = [type(part.state) for part in tools_of(await app.list_turns(session.id))]

    assert states == [Completed, Failed, Failed]


async def test_parallel_calls_run_at_the_same_time_and_each_is_answered(tmp_path: Path) -> None:
    barrier = asyncio.Barrier(3)

    @tool
    async def meet(name: str) -> str:
        """Meet the others."""
        async with asyncio.timeout(30):
            await barrier.wait()
        return name

    asked = [call("meet", f'{{"name": "{n}"}}', call_id=f"c{n}") for n in "abc"]
    async with opened(tmp_path, Played(calls(*asked), text("ok")), ToolsPlugin(meet)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        outputs = {
            part.call_id: part.state.output
            for part in tools_of(await app.list_turns(session.id))
            if isinstance(part.state, Completed)
        }

    assert outputs == {"ca": "a", "cb": "b", "cc": "c"}


class Asks:
    """A policy that asks about everything."""

    @hookimpl
    async def permission_ask(self) -> object:
        from pegboard.schema.session import Verdict

        return Verdict(action="ask", reason="please")


@tool(requires=False)
async def careful(context: ToolContext) -> str:
    """Ask first."""
    await context.require("careful", ["a", "b"], always=["*"])
    return "allowed"


async def test_without_a_channel_an_ask_is_a_deny_with_its_reason(tmp_path: Path) -> None:
    provider = Played(calls(call("careful", "{}")), text("ok"))
    async with opened(tmp_path, provider, Asks(), ToolsPlugin(careful), allow=False) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert "nobody is there to be asked" in part.state.error
    assert texts(turn) == ["ok"]


@pytest.mark.parametrize(
    ("goes_on", "reply", "message", "said", "requests"),
    [
        (False, "once", None, "allowed", 2),
        (False, "reject", None, "rejected permission", 1),
        (True, "reject", None, "rejected permission", 2),
        (False, "reject", "use the other", "use the other", 2),
    ],
)
async def test_an_ask_waits_for_the_reply(
    tmp_path: Path, *, goes_on: bool, reply: str, message: str | None, said: str, requests: int
) -> None:
    provider = Played(calls(call("careful", "{}")), text("ok"))
    config = {"model": "played/m", "continue_loop_on_deny": goes_on}
    options = {"allow": False, "interactive": True, "config": config}
    async with opened(tmp_path, provider, Asks(), ToolsPlugin(careful), **options) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, PermissionAsked))
        )
        await asyncio.sleep(0)
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        asked = (await listening)[-1].properties
        assert isinstance(asked, PermissionAsked)
        assert asked.request.patterns == ("a", "b")
        await app.answer_permission(asked.request.id, reply, message)
        await prompt
        [part] = tools_of(await app.list_turns(session.id))

    answer = part.state.output if isinstance(part.state, Completed) else part.state.error
    assert said in answer
    assert len(provider.requests) == requests


async def test_an_approval_for_good_is_not_asked_again_and_survives(tmp_path: Path) -> None:
    options = {"allow": False, "interactive": True}
    provider = Played(calls(call("careful", "{}")), text("ok"))
    async with opened(tmp_path, provider, Asks(), ToolsPlugin(careful), **options) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, PermissionAsked))
        )
        await asyncio.sleep(0)
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        asked = (await listening)[-1].properties
        assert isinstance(asked, PermissionAsked)
        await app.answer_permission(asked.request.id, "always")
        await prompt

    again = Played(calls(call("careful", "{}")), text("ok"))
    async with opened(tmp_path, again, Asks(), ToolsPlugin(careful), allow=False) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed)


async def test_a_tool_that_hangs_is_ended_at_its_time_limit(tmp_path: Path) -> None:
    @tool(timeout_s=0.1)
    async def hang() -> str:
        """Hang."""
        await asyncio.sleep(60)
        return ""

    provider = Played(calls(call("hang", "{}")), text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(hang)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert "did not end within 0.1 s" in part.state.error


async def test_a_tool_that_raises_is_an_error_for_the_model(tmp_path: Path) -> None:
    @tool
    def broken() -> str:
        """Break."""
        raise ZeroDivisionError("oh")

    provider = Played(calls(call("broken", "{}")), text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(broken)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert "ZeroDivisionError: oh" in part.state.error
