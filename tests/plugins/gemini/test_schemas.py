"""Schemas of tools in the keywords that Gemini documents."""

from typing import Any

import pytest

from pegboard_plugins.gemini.schemas import documented

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "a"}, {"enum": ["a"]}),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", **TEXT}, TEXT),
        (
            {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
            {"type": "integer", "minimum": 1, "maximum": 8},
        ),
        ({"type": "number", "exclusiveMinimum": 0.5}, {"type": "number", "minimum": 0.5}),
        (
            {"type": "number", "minimum": 2, "exclusiveMinimum": True},
            {"type": "number", "minimum": 2},
        ),
        (
            {"type": "object", "patternProperties": {"^a": TEXT}},
            {"type": "object", "additionalProperties": TEXT},
        ),
        (
            {"patternProperties": {"^a": TEXT, "^b": {"const": 1}}},
            {"additionalProperties": {"anyOf": [TEXT, {"enum": [1]}]}},
        ),
        (
            {"$ref": "#/definitions/a", "definitions": {"a": {"const": 1}}},
            {"$ref": "#/$defs/a", "$defs": {"a": {"enum": [1]}}},
        ),
        (
            {
                "properties": {"a": TEXT},
                "required": ["a"],
                "allOf": [{"properties": {"b": {"const": 2}}, "required": ["b"]}],
            },
            {"properties": {"a": TEXT, "b": {"enum": [2]}}, "required": ["a", "b"]},
        ),
        ({"anyOf": [{"const": 1}, TEXT]}, {"anyOf": [{"enum": [1]}, TEXT]}),
        ({"items": {"const": 1}}, {"items": {"enum": [1]}}),
        ({"additionalProperties": False, "not": TEXT}, {"additionalProperties": False}),
        ({**TEXT, "pattern": "^a$", "minLength": 1, "default": "a"}, TEXT),
    ],
)
def test_keywords_are_those_that_are_documented(
    schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert documented(schema) == expected
    assert documented({"properties": {"const": schema}}) == {"properties": {"const": expected}}
