"""The kit for authors of plugins."""

import asyncio
import re
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from pegboard import Tool, ToolContext, hookimpl, tool
from pegboard.engine.bus import Bus
from pegboard.errors import TimeLimitError
from pegboard.schema.config import Config
from pegboard.schema.event import Event, FileEdited, SessionIdle
from pegboard.testing import EventRecorder, Finding, check_tools, tools_of


class Node(BaseModel):
    name: str
    parts: list["Node"] = []


@tool
async def good(
    *,
    context: ToolContext,
    place: str,
    days: Annotated[int, Field(ge=3, le=9)],
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5,
    kind: Literal["wind", "tide"] | None = None,
    pair: tuple[int, str] = (1, "a"),
    tree: Node | None = None,
    tags: Annotated[list[str], Field(min_length=2)] = ["a", "b"],  # noqa: B006 - as users write it
) -> str:
    """Forecast.

    Args:
        place: Where.
        days: How far.
        share: How much.
        kind: Of what.
        pair: Two.
        tree: Nested.
        tags: Words.
    """
    return place


def test_a_good_tool_has_no_findings() -> None:
    assert check_tools([good]) == ()


def rules(*tools: Tool) -> list[tuple[str, str]]:
    return [(finding.subject, finding.rule) for finding in check_tools(tools)]


def test_a_tool_without_texts_is_found() -> None:
    @tool
    async def bare(place: str) -> str:
        return place

    assert check_tools([bare]) == (
        Finding(
            subject="bare", rule="description", text="it has no description; write a docstring"
        ),
        Finding(
            subject="bare",
            rule="parameter",
            text="place has no description; write an entry for it under Args:",
        ),
    )


def test_a_name_that_providers_refuse_is_found() -> None:
    async def rise(by: Annotated[str, Field(alias="größe", description="How much.")]) -> str:
        """Rise."""
        return by

    rise.__name__ = "höhe"

    assert rules(tool(rise)) == [("höhe", "id"), ("höhe", "name")]


async def echo(context: ToolContext, args: Any) -> str:
    return str(args)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"properties": {"a": {"type": "text"}}},
        {"properties": {"a": {"default": object()}}},
        {"properties": {"a": {"default": float("nan")}}},
    ],
    ids=["no object", "unknown type", "no JSON", "no number"],
)
def test_a_wrong_schema_is_found(schema: dict[str, Any]) -> None:
    assert rules(Tool.raw("far", "Far.", schema, echo)) == [("far", "schema")]


def test_what_cannot_be_checked_here_is_no_finding() -> None:
    foreign = {"type": "string", "pattern": r"\p{L}", "default": "a", "description": "Letters."}

    assert check_tools([Tool.raw("far", "Far.", {"properties": {"a": foreign}}, echo)]) == ()


def test_values_of_each_format_are_tried_and_those_of_unknown_ones_are_not() -> None:
    @tool
    async def wait(
        pause: Annotated[timedelta, Field(description="How long.")],
        host: Annotated[IPv4Address | IPv6Address, Field(description="Where.")],
        network: Annotated[IPv4Network | None, Field(description="In which.")] = None,
        word: Annotated[re.Pattern[str] | None, Field(description="For what.")] = None,
    ) -> str:
        """Wait."""
        return ""

    assert check_tools([wait]) == ()


def test_a_check_that_is_narrower_than_the_schema_is_found() -> None:
    def even(number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number

    @tool
    async def half(
        number: Annotated[int, Field(ge=1), AfterValidator(even)],
        times: Annotated[int, Field(description="How often.")] = 1,
    ) -> str:
        """Halve.

        Args:
            number: An even one.
        """
        return ""

    findings = check_tools([half])

    assert {finding.rule for finding in findings} == {"accepts"}
    assert "odd" in findings[0].text


def test_a_default_that_the_type_refuses_is_found() -> None:
    async def count(limit: int = 3) -> str:
        """Count.

        Args:
            limit: The most.
        """
        return str(limit)

    count.__defaults__ = (None,)

    assert rules(tool(count)) == [("count", "schema")]


async def test_the_tools_of_a_plugin_are_those_that_it_registers() -> None:
    @hookimpl
    async def register_tools(config: Config) -> list[Tool]:
        return [good.with_id(config.model or "none")]

    plugin = SimpleNamespace(register_tools=register_tools, other=good)

    assert [each.id for each in await tools_of(plugin, config=Config(model="m"))] == ["m"]
    assert [each.id for each in await tools_of(plugin)] == ["none"]
    assert await tools_of(SimpleNamespace(register_tools=lambda: None)) == ()


async def test_the_tools_of_a_tool_file_are_those_in_it() -> None:
    module = ModuleType("weather")
    module.__dict__.update(good=good, other=3)

    assert await tools_of(module) == (good,)


IDLE = Event(properties=SessionIdle(session_id="ses_1"))
EDITED = Event(properties=FileEdited(file="/a.txt"))


async def test_the_recorder_keeps_what_is_published_in_its_block() -> None:
    bus = Bus()
    bus.publish(IDLE)

    async with EventRecorder(bus) as recorder:
        bus.publish(EDITED, IDLE)
    bus.publish(EDITED)

    assert recorder.events == [EDITED, IDLE]
    assert recorder.of(SessionIdle) == [SessionIdle(session_id="ses_1")]


async def test_the_recorder_waits_for_an_event() -> None:
    bus = Bus()

    async with EventRecorder(bus) as recorder, asyncio.TaskGroup() as group:
        waiting = group.create_task(
            recorder.wait_for(FileEdited, lambda edited: edited.file == "/a.txt")
        )
        await asyncio.sleep(0)
        bus.publish(Event(properties=FileEdited(file="/b.txt")), IDLE)
        await asyncio.sleep(0)
        bus.publish(EDITED)

    assert waiting.result() == FileEdited(file="/a.txt")


async def test_the_recorder_says_what_came_instead() -> None:
    bus = Bus()

    async with EventRecorder(bus) as recorder:
        bus.publish(IDLE)
        with pytest.raises(TimeLimitError, match=r"no FileEdited within 0\.05 s.*session\.idle"):
            await recorder.wait_for(FileEdited, timeout_s=0.05)
