import asyncio
import json

from pegboard import ToolContext, hookimpl, tool
from pegboard.errors import ToolError
from pegboard.schema.config import Config, PluginConfig
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import Verdict
from pegboard_plugins import batch, invalid
from pegboard_plugins.batch import batch as batch_tool
from support.models.played import Played, ToolsPlugin, call, calls, opened, text

HI = "Hi."
CONFIG = {"model": "played/m", "plugins": {"batch": {}}}


@tool
async def shout(words: str) -> str:
    """Say it louder."""
    return words.upper()


@tool
async def broken() -> str:
    """Fail."""
    raise ToolError("it is broken")


def batching(*wanted):
    arguments = {"tool_calls": [{"tool": name, "parameters": args} for name, args in wanted]}
    return Played(calls(call("batch", json.dumps(arguments))), text("done"))


async def parts_of(app):
    session = await app.create_session()
    await app.prompt(session.id, HI)
    return [
        part
        for turn in await app.list_turns(session.id)
        for part in turn.parts
        if isinstance(part, ToolPart)
    ]


async def test_a_call_of_no_tool_has_failed(tmp_path):
    provider = batching(("nope", {}), ("shout", {"words": "a"}))
    async with opened(tmp_path, provider, batch, invalid, ToolsPlugin(shout), config=CONFIG) as app:
        whole, first, _ = await parts_of(app)

    assert "1. nope: failed: The call of nope could not be used" in whole.state.output
    assert "2. shout: done" in whole.state.output
    assert (whole.state.metadata["failed"], first.tool) == (1, "invalid")


async def test_each_call_has_a_part_of_its_own(tmp_path):
    provider = batching(("shout", {"words": "a"}), ("broken", {}), ("batch", {"tool_calls": []}))
    tools = ToolsPlugin(shout, broken)
    async with opened(tmp_path, provider, batch, tools, config=CONFIG) as app:
        whole, first, second = await parts_of(app)

    assert whole.state.output.splitlines() == [
        "1. shout: done",
        "2. broken: failed: it is broken",
        "3. batch: failed: a batch cannot be part of another",
        "The answers stand with the calls.",
    ]
    assert whole.state.metadata["successful"] == 1
    assert (first.tool, first.state.output) == ("shout", "A")
    assert isinstance(second.state, Failed)
    results = [
        piece
        for message in provider.requests[1].messages
        for piece in message.content
        if type(piece).__name__ == "Result"
    ]
    assert [result.output for result in results][1:] == ["A", "it is broken"]


async def test_calls_run_at_the_same_time(tmp_path):
    barrier = asyncio.Barrier(2)

    @tool
    async def meet(name: str) -> str:
        """Meet."""
        async with asyncio.timeout(30):
            await barrier.wait()
        return name

    provider = batching(("meet", {"name": "a"}), ("meet", {"name": "b"}))
    async with opened(tmp_path, provider, batch, ToolsPlugin(meet), config=CONFIG) as app:
        _, *parts = await parts_of(app)

    assert [part.state.output for part in parts] == ["a", "b"]


async def test_each_call_passes_permission_and_hooks_by_itself(tmp_path):
    class Policy:
        def __init__(self):
            self.seen = []

        @hookimpl
        async def permission_ask(self, request):
            return Verdict(action="deny" if request.patterns == ("b",) else "allow", reason="no b")

        @hookimpl
        async def tool_execute_before(self, call):
            self.seen.append(call.tool)

    @tool(requires=False)
    async def careful(context: ToolContext, name: str) -> str:
        """Ask first."""
        await context.require("careful", [name])
        return name

    provider = batching(("careful", {"name": "a"}), ("careful", {"name": "b"}))
    policy = Policy()
    tools = ToolsPlugin(careful)
    async with opened(tmp_path, provider, batch, policy, tools, config=CONFIG, allow=False) as app:
        _, first, second = await parts_of(app)

    assert isinstance(first.state, Completed)
    assert second.state.error == "plugin Policy: no b"
    assert policy.seen == ["batch", "careful", "careful"]


async def test_a_called_tool_cannot_call_others(tmp_path):
    @tool
    async def delegate(context: ToolContext) -> str:
        """Call another."""
        return (await context.call_tool("shout", {"words": "a"})).output

    provider = batching(("delegate", {}), ("unknown", {}))
    tools = ToolsPlugin(shout, delegate)
    async with opened(tmp_path, provider, batch, tools, config=CONFIG) as app:
        whole, first, *_ = await parts_of(app)

    assert "cannot call tools itself" in first.state.error
    assert "unknown: failed: there is no tool 'unknown'" in whole.state.output


async def test_a_stopped_batch_leaves_no_call_running(tmp_path):
    started, stopped, waiting = asyncio.Barrier(3), [], asyncio.Barrier(3)

    @tool
    async def wait_long(name: str) -> str:
        """Wait."""
        await started.wait()
        try:
            await waiting.wait()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append(name)
            raise
        return name

    provider = batching(("wait_long", {"name": "a"}), ("wait_long", {"name": "b"}))
    async with opened(tmp_path, provider, batch, ToolsPlugin(wait_long), config=CONFIG) as app:
        session = await app.create_session()
        turn = asyncio.create_task(app.prompt(session.id, HI))
        await started.wait()
        await waiting.wait()
        await app.abort(session.id)
        await turn
        turns = await app.list_turns(session.id)

    states = [part.state for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert [type(state) for state in states] == [Failed, Failed, Failed]
    assert sorted(stopped) == ["a", "b"]


async def test_the_tool_is_offered_where_the_configuration_names_it():
    assert await batch.register_tools(Config()) == []
    assert await batch.register_tools(Config(plugins={"batch": PluginConfig()})) == [batch_tool]
