"""The OpenAPI document of `/doc`, built from the server's routes and their body types."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from pegboard import __version__

OPENAPI = "3.1.1"
_TYPES = "x-types"
_log = logging.getLogger("pegboard.server")
_REFERENCE = "#/components/schemas/{name}"
_QUERY = ("directory", "workspace")
"""What every route of a project takes."""


def operation(  # noqa: PLR0913 - the facts of one entry, all keyword-only
    name: str,
    *,
    gives: object = None,
    takes: object = None,
    status: int = 200,
    stream: bool = False,
    media: str = "application/json",
    absent: bool = False,
    query: Iterable[str] = (),
) -> dict[str, Any]:
    """Return keyword arguments for a route decorator: operation id, status code and document types.

    `gives` is the type of the answer, `takes` the type of the body, and `media` the content type
    of the answer. `query` has the parameters that the route parses itself. With `absent`, the
    route may answer 501, because Pegboard lacks the operation.
    """
    facts = {
        "gives": gives,
        "takes": takes,
        "status": status,
        "stream": stream,
        "media": media,
        "absent": absent,
        "query": tuple(query),
    }
    return {
        "operation_id": name,
        "status_code": status,
        "response_model": None,
        "openapi_extra": {_TYPES: facts},
    }


def document(routers: Iterable[APIRouter]) -> dict[str, Any]:
    """Return the OpenAPI document of all routes that have an operation id."""
    import msgspec

    every = (route for router in routers for route in router.routes)
    named = (route for route in every if isinstance(route, APIRoute))
    found = [route for route in named if _TYPES in (route.openapi_extra or {})]
    facts = [(route.openapi_extra or {})[_TYPES] for route in found]
    types = [fact[side] for fact in facts for side in ("gives", "takes") if fact[side] is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    rest = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for route, fact in zip(found, facts, strict=True):
        gives = next(rest) if fact["gives"] is not None else None
        takes = next(rest) if fact["takes"] is not None else None
        for method in sorted(route.methods or ()):
            entry = _entry(route, fact, gives, takes)
            paths.setdefault(route.path_format, {})[method.lower()] = entry
    return {
        "openapi": OPENAPI,
        "info": {"title": "pegboard", "version": __version__},
        "security": [{"bearer": []}, {"basic": []}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def with_plugins(
    whole: dict[str, Any], plugins: Mapping[str, Sequence[BaseRoute]]
) -> dict[str, Any]:
    """Add the routes of plugins to the document; schema names get the plugin's name as prefix.

    Routes that cannot be described are left out, with a line in the log.
    """
    from fastapi.openapi.utils import get_openapi

    paths, schemas = dict(whole["paths"]), dict(whole["components"]["schemas"])
    for plugin, routes in plugins.items():
        try:
            said = get_openapi(title=plugin, version="", routes=routes)
        except (RuntimeError, TypeError, ValueError, LookupError, AttributeError):
            # It is what a plugin's annotations come to.
            _log.exception("plugin %s: its routes cannot be described", plugin)
            continue
        said = _prefix_references(said, plugin)
        paths |= said["paths"]
        own = said.get("components", {}).get("schemas", {})
        schemas |= {f"{plugin}.{name}": schema for name, schema in own.items()}
    return {**whole, "paths": paths, "components": {**whole["components"], "schemas": schemas}}


def _prefix_references(value: Any, plugin: str) -> Any:  # noqa: ANN401 - JSON of any shape
    """Prefix the references to schemas in a value with the plugin's name."""
    if isinstance(value, dict):
        return {key: _prefix_references(each, plugin) for key, each in value.items()}
    if isinstance(value, list):
        return [_prefix_references(each, plugin) for each in value]
    start = _REFERENCE.format(name="")
    if isinstance(value, str) and value.startswith(start):
        return f"{start}{plugin}.{value.removeprefix(start)}"
    return value


_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["name", "data"],
    "properties": {
        "name": {"type": "string"},
        "data": {"type": "object", "properties": {"message": {"type": "string"}}},
    },
}


def _entry(route: APIRoute, fact: dict[str, Any], gives: object, takes: object) -> dict[str, Any]:
    steps = route.path_format.split("/")
    path = [
        {"name": step[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for step in steps
        if step.startswith("{")
    ]
    query = [_query(each) for each in _query_params(route.dependant)]
    known = {each["name"] for each in query}
    names = [name for name in (*_QUERY, *fact["query"]) if name not in known]
    query += [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    entry: dict[str, Any] = {
        "operationId": route.operation_id,
        "summary": (route.description or "").split("\n")[0],
        "parameters": path + query,
        "responses": {
            str(fact["status"]): _answer(fact, gives),
            "4XX": _FAILED,
            **({"501": _MISSING} if fact["absent"] else {}),
        },
    }
    if takes is not None:
        entry["requestBody"] = {"content": {"application/json": {"schema": takes}}}
    return entry


def _query_params(dependant: Dependant) -> Iterator[Any]:
    """Yield the query parameters of a route and of its dependencies."""
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _query_params(each)


def _error(what: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": what, "content": {"application/json": {"schema": schema}}}


_FAILED = _error("What was wrong with the request")
_MISSING = _error("What the protocol has and this server has not")


def _answer(fact: dict[str, Any], gives: object) -> dict[str, Any]:
    if fact["stream"]:
        return {"description": "Events", "content": {"text/event-stream": {"schema": {}}}}
    if gives is None:
        return {"description": "Done"}
    return {"description": "The answer", "content": {fact["media"]: {"schema": gives}}}


def _query(parameter: Any) -> dict[str, Any]:  # noqa: ANN401 - FastAPI's, without a public type
    shown = {"name": parameter.alias, "in": "query", "required": parameter.field_info.is_required()}
    kind = parameter.field_info.annotation
    return {**shown, "schema": {"type": _JSON_TYPES.get(kind, "string")}}


_JSON_TYPES = {
    int: "integer",
    bool: "boolean",
    int | None: "integer",
    bool | None: "boolean",
    float | None: "number",
}
