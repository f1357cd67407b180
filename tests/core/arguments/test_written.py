"""Calls as models write them, taken where their meaning is clear."""

import json
from typing import Any

import pytest

from pegboard.arguments.written import fitted, read_arguments, tool_named

TOOLS = ("bash", "todowrite", "files_read", "mcp.list")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "facts": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "todos": {"type": "array", "items": {"$ref": "#/$defs/Todo"}},
        "count": {"type": "integer"},
        "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "all": {"type": "boolean"},
        "either": {"anyOf": [{"type": "string"}, {"type": "array"}]},
        "any": {},
        "round": {"$ref": "#/$defs/Round"},
        "odd": {"type": [{}], "anyOf": 7},
    },
    "required": ["text"],
    "$defs": {
        "Todo": {"type": "object", "properties": {"done": {"type": "boolean"}}},
        "Round": {"anyOf": [{"$ref": "#/$defs/Round"}, {"$ref": "#/$defs/Round"}]},
    },
}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("bash", "bash"),
        (" bash ", "bash"),
        ("Bash", "bash"),
        ("functions.bash", "bash"),
        ("functions.bash:0", "bash"),
        ("default_api.bash", "bash"),
        ("todo_write", "todowrite"),
        ("TodoWrite", "todowrite"),
        ("files-read", "files_read"),
        ("filesRead", "files_read"),
        ("mcp.list", "mcp.list"),
        ("ba", None),
        ("", None),
        ("bash.sh", None),
    ],
)
def test_a_name_means_the_one_tool_that_is_spelled_so(written: str, name: str | None) -> None:
    assert tool_named(written, TOOLS) == name


def test_a_name_that_two_tools_have_means_neither() -> None:
    assert tool_named("do-it", ("do_it", "doit")) is None
    assert tool_named("doit", ("do_it", "doit")) == "doit"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": "1,}", "b": ",]",}', {"a": "1,}", "b": ",]"}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("```\n{}\n```\n", {}),
        (json.dumps('{"a": "x"}'), {"a": "x"}),
        ('"text"', "text"),
    ],
)
def test_json_in_a_wrong_form_is_read(text: str, value: object) -> None:
    assert read_arguments(text) == value


@pytest.mark.parametrize(
    "text", ['{"a": 1', "{'a': 1}", '{"a": 1}{"a": 1}', "bash", "[" * 3000, '{"a": tru}', ",", "1,"]
)
def test_what_is_not_clear_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the JSON parser's own text
        read_arguments(text)


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        ({"names": '["a", "b"]'}, {"names": ["a", "b"]}),
        ({"names": '["a", "b",]'}, {"names": ["a", "b"]}),
        ({"facts": '{"n": "7"}'}, {"facts": {"n": 7}}),
        ({"todos": '[{"done": "true"}]'}, {"todos": [{"done": True}]}),
        ({"todos": ['{"done": false}']}, {"todos": [{"done": False}]}),
        ({"count": "5"}, {"count": 5}),
        ({"share": "0.5"}, {"share": 0.5}),
        ({"all": "False"}, {"all": False}),
        ({"count": None, "names": None}, {}),
    ],
)
def test_a_value_of_another_type_is_taken_where_it_is_clear(
    written: dict[str, Any], taken: dict[str, Any]
) -> None:
    assert fitted(written, SCHEMA) == taken


@pytest.mark.parametrize(
    "written",
    [
        {"text": '["a"]', "either": '["a"]', "any": '["a"]'},
        {"text": None},
        {"share": None, "any": None, "unknown": None},
        {"names": "a, b"},
        {"names": '{"a": 1}'},
        {"count": "05"},
        {"count": "5.5"},
        {"count": "five"},
        {"all": "yes"},
        {"round": "[1]", "odd": "[1]"},
    ],
)
def test_a_value_that_is_not_clear_stays(written: dict[str, Any]) -> None:
    assert fitted(written, SCHEMA) == written


def test_arguments_that_are_nested_deep_stay() -> None:
    node = {"type": "object", "properties": {"in": {"$ref": "#/$defs/Node"}}}
    schema = {**node, "$defs": {"Node": node}}
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"in": deep}

    assert fitted(deep, schema)["in"] is deep["in"]


def test_a_schema_of_another_shape_changes_nothing() -> None:
    odd: dict[str, Any] = {"properties": {"a": {"type": "integer"}}, "required": 7, "$defs": []}

    assert fitted({"a": "1"}, odd) == {"a": 1}
    assert fitted({"a": "1"}, {"properties": []}) == {"a": "1"}
