"""Conversion of tools' JSON schemas to the keywords that `parametersJsonSchema` supports.

Google documents the list under `responseJsonSchema`
(ai.google.dev/api/generate-content#GenerationConfig).
"""

from collections.abc import Mapping
from typing import Any

_PLAIN = frozenset(
    {
        *("$id", "$ref", "$anchor", "type", "format", "title", "description", "enum", "required"),
        *("minItems", "maxItems", "minimum", "maximum", "propertyOrdering"),
    }
)
_SCHEMAS = ("items", "additionalProperties")
_LISTS = ("prefixItems", "anyOf", "oneOf")
_TABLES = ("properties", "$defs")
_OLD_PLACE = "#/definitions/"
_INTEGER = "integer"


def documented(schema: Any) -> Any:  # noqa: ANN401 - a schema, true or false
    """Return the schema with documented keywords only; translate or drop the other keywords.

    `const` becomes `enum`, an exclusive bound becomes inclusive, and `definitions` becomes `$defs`.
    The members of `allOf` are merged. The schemas of `patternProperties` become that of
    `additionalProperties`.
    """
    if not isinstance(schema, Mapping):
        return schema
    whole = _translated(schema)
    found: dict[str, Any] = {name: whole[name] for name in whole if name in _PLAIN}
    for name in _SCHEMAS:
        if name in whole:
            found[name] = documented(whole[name])
    for name in _LISTS:
        if isinstance(whole.get(name), list):
            found[name] = [documented(each) for each in whole[name]]
    for name in _TABLES:
        if isinstance(whole.get(name), Mapping):
            found[name] = {key: documented(each) for key, each in whole[name].items()}
    return found


def _translated(schema: Mapping[str, Any]) -> dict[str, Any]:
    whole = dict(schema)
    for part in schema.get("allOf") or ():
        whole = _merged(whole, _translated(part) if isinstance(part, Mapping) else {})
    if "const" in whole:
        whole["enum"] = [whole["const"]]
    step = 1 if whole.get("type") == _INTEGER else 0
    for exclusive, inclusive, by in (
        ("exclusiveMinimum", "minimum", step),
        ("exclusiveMaximum", "maximum", -step),
    ):
        bound = whole.get(exclusive)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            whole.setdefault(inclusive, bound + by)
    patterns = whole.get("patternProperties")
    if isinstance(patterns, Mapping) and patterns:
        schemas = list(patterns.values())
        whole["additionalProperties"] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if isinstance(whole.get("definitions"), Mapping):
        whole["$defs"] = {**whole["definitions"], **whole.get("$defs", {})}
    place = whole.get("$ref")
    if isinstance(place, str) and place.startswith(_OLD_PLACE):
        whole["$ref"] = f"#/$defs/{place.removeprefix(_OLD_PLACE)}"
    return whole


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return both schemas merged into one; if both have a keyword, the value in `one` wins."""
    both = {**other, **one}
    if "properties" in one and "properties" in other:
        both["properties"] = {**other["properties"], **one["properties"]}
    if "required" in one and "required" in other:
        both["required"] = list(dict.fromkeys((*one["required"], *other["required"])))
    return both
