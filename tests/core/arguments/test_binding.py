"""What a model wrote, checked; and what it is told when it does not fit."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from pegboard import Tool, ToolContext, ToolError, tool
from pegboard.errors import SignatureError

CONTEXT: Any = object()


def test_each_call_gets_a_default_of_its_own() -> None:
    @tool
    async def crew(names: list[str] = []) -> str:  # noqa: B006 - the point of the test
        """Hire."""
        return ",".join(names)

    first = crew.validate({})["names"]

    assert isinstance(first, list)
    first.append("Ann")
    assert crew.validate({}) == {"names": []}


def test_the_model_reads_what_is_wrong_with_each_argument() -> None:
    @tool
    async def dive(depth: int, mix: Literal["air", "ean"] = "air") -> str:
        """Dive."""
        return mix

    with pytest.raises(ToolError) as caught:
        dive.validate({"mix": "helium", "gear": ["fins"]})

    assert str(caught.value).splitlines() == [
        "The arguments of this call of dive are invalid:",
        "- depth: is required, and missing",
        "- mix: Input should be 'air' or 'ean', got 'helium'",
        "- gear: is not an argument of this tool",
        "Write the call again with valid arguments.",
    ]


def test_a_long_value_is_cut_in_what_is_said_of_it() -> None:
    parameters = {"properties": {"names": {"type": "array", "maxItems": 1}}}
    add = Tool.raw("add", "Add.", parameters, print)

    with pytest.raises(ToolError) as caught:
        add.validate({"names": ["x" * 1000] * 100})

    assert "'] is too long\n" in str(caught.value).replace("x", "")
    assert len(str(caught.value)) < 600


def test_a_long_list_of_problems_is_cut() -> None:
    @tool
    async def add(numbers: list[int]) -> str:
        """Add."""
        return ""

    with pytest.raises(ToolError) as caught:
        add.validate({"numbers": ["x" * 10_000] * 500})

    assert str(caught.value).count("\n- ") == 11
    assert "- and more" in str(caught.value)
    assert len(str(caught.value)) < 2_000


def test_a_property_called_title_stays() -> None:
    @tool
    async def note(title: str, row: dict[str, int], when: datetime) -> str:
        """Note."""
        return title

    assert note.parameters["properties"] == {
        "title": {"type": "string"},
        "row": {"type": "object", "additionalProperties": {"type": "integer"}},
        "when": {"type": "string", "format": "date-time"},
    }


def test_the_authors_own_alias_is_the_name_for_the_model() -> None:
    @tool
    async def move(from_: Annotated[str, Field(alias="from")]) -> str:
        """Move."""
        return from_

    assert move.parameters["required"] == ["from"]
    assert move.validate({"from": "a"}) == {"from_": "a"}


def raw(schema: dict[str, Any]) -> Tool:
    async def echo(context: ToolContext, args: Mapping[str, Any]) -> str:
        return json.dumps(args)

    return Tool.raw("far_echo", "Echo.", schema, echo)


async def test_a_raw_tool_gets_what_the_model_wrote_once_it_fits() -> None:
    made = raw({"properties": {"n": {"type": "integer", "minimum": 1, "default": 4}}})

    answer = await made.call(CONTEXT, made.validate({"more": True}))

    assert answer.output == '{"more": true}'
    assert (made.id, made.description, made.permission) == ("far_echo", "Echo.", "far_echo")
    assert made.parameters["type"] == "object"
    with pytest.raises(ToolError, match=r"n: '3' is not of type 'integer'"):
        made.validate({"n": "3"})


def test_a_wrong_raw_schema_is_an_error_that_names_the_tool() -> None:
    with pytest.raises(SignatureError, match="far_echo"):
        raw({"type": "objekt"}).validate({})


@pytest.mark.parametrize("rule", [{"$ref": "http://127.0.0.1:1/x.json"}, {"pattern": r"\p{L}"}])
def test_what_cannot_be_checked_here_is_left_to_the_raw_tool(rule: dict[str, Any]) -> None:
    assert raw({"properties": {"a": rule}}).validate({"a": "b"}) == {"a": "b"}


def test_a_warm_tool_has_its_validator() -> None:
    @tool
    async def low(place: str) -> str:
        """Low."""
        return place

    low.warm()
    raw({}).warm()

    assert low.validate({"place": "a"}) == {"place": "a"}
