"""Tools: from a function to a schema, and from a model's arguments to a call."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pegboard import Tool, ToolError, ToolResult
from pegboard.errors import SignatureError

_FILE = Path(__file__).parent.parent / "data" / "schema_cases.json"
CASES = json.loads(_FILE.read_text(encoding="utf-8"))[1:]
CONTEXT: Any = object()


def normal(schema: Any, definitions: Mapping[str, Any] | None = None) -> Any:
    """A schema after the normalisation that the file of cases describes."""
    if isinstance(schema, list):
        return [normal(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = definitions or schema.get("$defs", {})
    if "$ref" in schema:
        target = dict(definitions[schema["$ref"].rpartition("/")[2]])
        return normal(target | {k: v for k, v in schema.items() if k != "$ref"}, definitions)
    left = {k: v for k, v in schema.items() if k not in ("title", "$defs")}
    if left.get("format") == "path":
        del left["format"]
    if isinstance(left.get("additionalProperties"), bool):
        del left["additionalProperties"]
    if "const" in left:
        left["enum"] = [left.pop("const")]
    left = {
        key: {name: normal(item, definitions) for name, item in value.items()}
        if key == "properties"
        else value
        if key == "default"
        else normal(value, definitions)
        for key, value in left.items()
    }
    if isinstance(left.get("description"), str):
        left["description"] = " ".join(left["description"].split())
    for key in ("anyOf", "enum", "required"):
        if key in left:
            left[key] = sorted(left[key], key=repr)
    return {key: value for key, value in left.items() if (key, value) != ("required", [])}


def load(source: str, name: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def cases(*, refused: bool) -> list[Any]:
    return [
        pytest.param(case, id=case["id"])
        for case in CASES
        if ("refused" in case["expect"]) is refused
    ]


@pytest.mark.parametrize("case", cases(refused=False))
def test_the_schema_is_that_of_the_case(case: dict[str, Any]) -> None:
    expect = case["expect"]

    made: Tool = getattr(load(case["source"], "case"), case["function"])

    assert made.parameters["type"] == "object"
    if "properties" in expect:
        schema = normal(dict(made.parameters))
        expected = {"properties": expect["properties"], "required": expect["required"]}
        assert schema == normal(expected) | {"type": "object"}
    description = " ".join(made.description.split())
    for text in expect.get("description_contains", ()):
        assert text in description
    for text in expect.get("description_lacks", ()):
        assert text not in description


@pytest.mark.parametrize("case", cases(refused=False))
async def test_the_function_receives_the_values_of_the_case(case: dict[str, Any]) -> None:
    made: Tool = getattr(load(case["source"], "case"), case["function"])

    for call in case["expect"]["calls"]:
        values = made.validate(call["args"])
        assert {name: repr(value) for name, value in values.items()} == call["receives"]
        assert isinstance(await made.call(CONTEXT, values), ToolResult)


@pytest.mark.parametrize("case", cases(refused=False))
def test_arguments_that_do_not_fit_are_refused(case: dict[str, Any]) -> None:
    made: Tool = getattr(load(case["source"], "case"), case["function"])

    for args in case["expect"]["rejects"]:
        with pytest.raises(ToolError, match="Write the call again"):
            made.validate(args)


@pytest.mark.parametrize("case", cases(refused=True))
def test_a_signature_that_cannot_be_described_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(SignatureError) as caught:
        load(case["source"], "case")

    assert all(word in str(caught.value) for word in case["expect"]["refused"])
