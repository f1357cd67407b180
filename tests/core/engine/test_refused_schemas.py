"""A tool whose schema a provider refuses: it is left out, and the turn goes on."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from pegboard import Tool, ToolContext, hookimpl
from pegboard.errors import ToolSchemaError
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.event import SessionIdle, SessionWarned
from support.models.played import HI, Played, assistant, heard, opened, text, texts

REFUSED = ToolSchemaError(
    "played: bad schema (400)", status=400, tools=("look_up", "unheard"), keyword="oneOf"
)


async def _look_up(_: ToolContext, arguments: Mapping[str, Any]) -> str:
    return str(arguments)


class Lookup:
    """A plugin with one tool that one vendor does not like."""

    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        schema = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
        return (Tool.raw("look_up", "Look up.", schema, _look_up),)


def names(request: ModelRequest) -> list[str]:
    return [tool.name for tool in request.tools]


async def picky(request: ModelRequest) -> AsyncIterator[StreamEvent]:
    if "look_up" in names(request):
        raise REFUSED
    for event in text("done"):
        yield event


async def test_a_refused_tool_is_left_out_and_named_with_its_plugin_and_the_turn_goes_on(
    tmp_path: Path,
) -> None:
    provider = Played(picky)
    async with opened(tmp_path, provider, Lookup()) as app:
        session = await app.create_session()
        hearing = asyncio.create_task(
            heard(app, lambda each: isinstance(each.properties, SessionIdle))
        )
        await asyncio.sleep(0)
        first = await app.prompt(session.id, HI)
        events = await hearing
        second = await app.prompt(session.id, HI)

    warnings = [
        each.properties.message for each in events if isinstance(each.properties, SessionWarned)
    ]

    assert [texts(first), texts(second)] == [["done"], ["done"]]
    assert assistant(first).error is None
    assert [("look_up" in names(each)) for each in provider.requests] == [True, False, False]
    warning = (
        "played/m refuses the schema of the tool `look_up` of the plugin Lookup for its keyword "
        "`oneOf`, and is not offered it: played: bad schema (400)"
    )
    assert warnings == [warning]


async def test_an_error_that_refuses_no_tool_of_the_request_ends_the_turn(tmp_path: Path) -> None:
    async def failing(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        raise REFUSED
        yield

    provider = Played(failing)
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert assistant(turn).error is not None
    assert len(provider.requests) == 1
