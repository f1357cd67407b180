"""Values of plugins that have no JSON form: what they end, and what the error names."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard import ToolContext, tool
from pegboard.errors import PluginError
from pegboard.providers import (
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
)
from pegboard.schema.event import PermissionAsked
from pegboard.schema.message import PluginFailure
from pegboard.schema.part import Failed
from pegboard.schema.session import Question, QuestionOption
from support.models.played import (
    HI,
    Played,
    ToolsPlugin,
    assistant,
    call,
    calls,
    heard,
    opened,
    text,
    tools_of,
)

NOT_UTF8 = "caf\udcff"
STRANGE = {"v": object()}


@pytest.mark.parametrize(
    "make",
    [
        lambda: TextStart("0", STRANGE),
        lambda: TextDelta("0", NOT_UTF8),
        lambda: TextEnd("0", STRANGE),
        lambda: ReasoningStart("0", {"v": NOT_UTF8}),
        lambda: ReasoningDelta("0", NOT_UTF8),
        lambda: ReasoningDelta("0", "hm", STRANGE),
        lambda: ReasoningEnd("0", {"v": {(1, 2): 3}}),
        lambda: ToolInputStart(NOT_UTF8, "bash"),
        lambda: ToolCall("c", NOT_UTF8, "{}"),
        lambda: ToolCall("c", "bash", "{}", STRANGE),
        lambda: StreamFinish("stop", metadata={"v": Path("/x")}),
        lambda: StreamFinish("stop", note=NOT_UTF8),
    ],
)
async def test_an_event_that_cannot_be_stored_is_the_provider_s_failure_and_the_next_turn_is_whole(
    make: Callable[[], StreamEvent], tmp_path: Path
) -> None:
    strange = True

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        nonlocal strange
        if strange:
            strange = False
            yield make()
        for event in text("done"):
            yield event

    async with opened(tmp_path, Played(answer)) as app:
        session = await app.create_session()
        with pytest.raises(PluginError, match=r"provider played raised ValueError: this .*, in"):
            await app.prompt(session.id, HI)
        turn = await app.prompt(session.id, HI)
        _, failed, _, _ = await app.list_turns(session.id)

    assert isinstance(assistant(failed).error, PluginFailure)
    assert assistant(failed).time.completed
    assert assistant(turn).error is None


def asking(metadata: dict[str, Any]) -> Callable[..., Any]:
    async def look(context: ToolContext) -> str:
        """Look."""
        await context.require("look", ["it"], metadata=metadata)
        return "seen"

    return look


async def wondering(context: ToolContext) -> str:
    """Wonder."""
    option = QuestionOption(label=NOT_UTF8, description="")
    await context.ask_user([Question(question="Which?", header="", options=(option,))])
    return "answered"


@pytest.mark.parametrize(
    "function", [asking(STRANGE), asking({"v": NOT_UTF8}), wondering], ids=["object", "text", "ask"]
)
async def test_a_request_that_cannot_be_stored_ends_its_own_call_before_anyone_is_asked(
    function: Callable[..., Any], tmp_path: Path
) -> None:
    found = tool(requires=False)(function)
    provider = Played(calls(call(found.id, "{}")), text("done"))
    plugins = (ToolsPlugin(found),)
    async with opened(tmp_path, provider, *plugins, allow=False, interactive=True) as app:
        session = await app.create_session()
        asked = asyncio.create_task(
            heard(app, lambda each: isinstance(each.properties, PermissionAsked))
        )
        turn = await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))
        assert not asked.done()
        asked.cancel()

    assert assistant(turn).error is None
    assert isinstance(part.state, Failed)
    assert "cannot be stored" in part.state.error
