"""JSON Schemas that somebody else wrote: bounded when registered, checked within a time."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pegboard import Tool, ToolContext
from pegboard.arguments.foreign_schema import MOST_LETTERS, MOST_NESTED, MOST_NODES
from pegboard.errors import SignatureError, ToolError
from pegboard.schema.part import Completed
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of

BACKTRACKS = "^(a|a)*$"
LONG = "a" * 40 + "!"


def foreign(schema: Mapping[str, Any], *, name: str = "foreign") -> Tool:
    async def echo(context: ToolContext, args: Mapping[str, Any]) -> str:
        return "ran"

    return Tool.raw(name, "Echo.", schema, echo)


def of_a(schema: Mapping[str, Any], **more: object) -> Tool:
    """A tool with one argument, a."""
    return foreign({"properties": {"a": schema}, **more})


def nested(levels: int, inside: object) -> dict[str, Any]:
    schema: Any = inside
    for _ in range(levels):
        schema = {"not": schema}
    return {"properties": {"a": schema}}


def circle() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    schema |= {f"k{n}": schema for n in range(100)}
    return schema


WIDE = {"enum": list(range(MOST_NODES))}
TOO_MUCH = {
    "deep": nested(3000, {}),
    "a level too deep": nested(MOST_NESTED - 2, {"type": "string"}),
    "wide": {"properties": {"a": WIDE}},
    "long": {"description": "x" * (MOST_LETTERS + 1)},
    "long names": {"properties": {"x" * (MOST_LETTERS + 1): {}}},
    "a circle": circle(),
}


@pytest.mark.parametrize("schema", TOO_MUCH.values(), ids=TOO_MUCH)
async def test_a_tool_whose_schema_is_too_much_is_left_out_and_reported(
    tmp_path: Path, schema: dict[str, Any]
) -> None:
    tools = ToolsPlugin(foreign(schema, name="huge"), foreign({}, name="fine"))
    provider = Played(text("ok"))
    async with opened(tmp_path, provider, tools) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        reports = [problem.text for problem in app.plugins.problems if "huge" in problem.text]

    [report] = reports
    assert "tool huge: the JSON Schema " in report
    assert [offered.name for offered in provider.requests[0].tools] == ["fine"]


@pytest.mark.parametrize("levels", [1, MOST_NESTED - 3])
def test_a_schema_within_the_bounds_is_judged_to_its_end(levels: int) -> None:
    with pytest.raises(SignatureError, match="'objekt' is not"):
        foreign(nested(levels, {"type": "objekt"})).validate({})

    with pytest.raises(ToolError, match="a: "):
        foreign(nested(levels, {"type": "integer"})).validate({"a": 1})


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"pattern": "^[a-z]+$"}, "abc", "a1"),
        ({"pattern": BACKTRACKS}, "aaa", "b"),
        ({"patternProperties": {"^n_": {"type": "integer"}}}, {"n_a": 1, "b": "c"}, {"n_a": "b"}),
        (
            {
                "patternProperties": {"^n_": {}},
                "additionalProperties": False,
                "properties": {"b": {}},
            },
            {"n_a": 1, "b": 2},
            {"c": 3},
        ),
        ({"additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "b"}),
        ({"propertyNames": {"pattern": "^[a-z]$"}}, {"a": 1}, {"ab": 1}),
        ({"uniqueItems": True}, [1, True, [1], {"a": 1}, {"a": 2}, None], [{"a": 1}, {"a": 1.0}]),
        ({"not": {"pattern": "x"}}, "y", "x"),
        ({"oneOf": [{"pattern": "^a"}, {"pattern": "b$"}]}, "ac", "ab"),
    ],
)
def test_expressions_and_unique_items_are_checked(schema: Any, right: Any, wrong: Any) -> None:
    made = of_a(schema)

    assert made.validate({"a": right}) == {"a": right}
    with pytest.raises(ToolError):
        made.validate({"a": wrong})


DOUBLED = {
    f"d{n}": {"oneOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
    for n in range(40)
} | {"d40": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": BACKTRACKS}, LONG),
        ({"not": {"pattern": BACKTRACKS}}, LONG),
        ({"pattern": "("}, "a"),
        ({"patternProperties": {BACKTRACKS: {}}}, {LONG: 1}),
        ({"patternProperties": {BACKTRACKS: {}}, "additionalProperties": False}, {LONG: 1}),
        ({"$ref": "#/$defs/d0"}, 1),
        ({"$ref": "#/properties/a"}, 1),
        ({"allOf": [{"$ref": "#/properties/a"}] * 2}, 1),
        ({"uniqueItems": True}, [{"n": n} for n in range(100_000)]),
        ({"unevaluatedItems": False}, list(range(100_000))),
        ({"unevaluatedProperties": False, "patternProperties": {BACKTRACKS: {}}}, {LONG: 1}),
        ({"items": {"enum": [f"x{n}" for n in range(10_000)]}}, ["x9999"] * 100_000),
        ({"format": "date"}, "soon"),
    ],
)
def test_a_check_ends_and_what_it_cannot_decide_is_left_to_the_tool(
    schema: Any, value: Any
) -> None:
    made = foreign({"properties": {"a": schema}, "$defs": DOUBLED})

    assert made.validate({"a": value}) == {"a": value}


async def test_the_loop_turns_while_arguments_are_checked(tmp_path: Path) -> None:
    turns = [0]

    async def turn() -> None:
        while True:
            await asyncio.sleep(0.005)
            turns[0] += 1

    class Beats(Tool):
        """Counts the turns of the loop in its check."""

        def validate(self, args: Mapping[str, Any]) -> Mapping[str, object]:
            before = turns[0]
            values = super().validate(args)
            turns.append(turns[0] - before)
            return values

    plain = of_a({"pattern": BACKTRACKS})
    evil = Beats(id=plain.id, arguments=plain.arguments)
    provider = Played(calls(call("foreign", f'{{"a": "{LONG}"}}')), text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(evil)) as app:
        session = await app.create_session()
        turning = asyncio.create_task(turn())
        await app.prompt(session.id, HI)
        turning.cancel()
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed)
    assert turns[1] > 10
