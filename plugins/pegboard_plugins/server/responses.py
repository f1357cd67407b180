"""The responses of routes: JSON values, and errors in the format of OpenCode's protocol."""

import asyncio
import json
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pegboard import InvalidInputError, PegboardError, PermissionDeniedError
from pegboard.errors import (
    AbortedError,
    ModelNotFoundError,
    NotFoundError,
    PluginError,
    SessionBusyError,
)
from pegboard.schema.wire import encode
from pegboard_plugins.server.keymask import mask_text
from pegboard_plugins.shared.frontend import for_client

JSON = "application/json"
SHORT_BYTES = 1 << 16
"""A longer body is searched in a thread."""
_TAGGED = {
    "permission request": ("PermissionNotFoundError", "requestID"),
    "question": ("QuestionNotFoundError", "requestID"),
    "terminal": ("PtyNotFoundError", "ptyID"),
    "MCP server": ("McpServerNotFoundError", "name"),
}
"""What has an error of its own in the protocol when it is not there, and where that names it."""

_Body = TypeVar("_Body")


class TooManyError(PegboardError):
    """An error for more waiting requests than the server allows."""


class PeerError(PegboardError):
    """An error for a server of the fleet that runs a session and does not answer."""


class UnsupportedError(PegboardError):
    """An operation of OpenCode's protocol that Pegboard lacks."""


class BodyError(InvalidInputError):
    """A request body that the route does not accept; the message names the invalid field."""


_STATUS: tuple[tuple[type[PegboardError], int, str], ...] = (
    (UnsupportedError, 501, "UnsupportedError"),
    (TooManyError, 429, "TooManyError"),
    (PeerError, 503, "ServiceUnavailableError"),
    (ModelNotFoundError, 400, "ProviderModelNotFoundError"),
    (NotFoundError, 404, "NotFoundError"),
    (InvalidInputError, 400, "BadRequest"),
    (PermissionDeniedError, 403, "PermissionDeniedError"),
    (AbortedError, 409, "MessageAbortedError"),
    (PluginError, 500, "PluginError"),
)


def answer(value: object, *, status: int = 200) -> Response:
    """Return a value as a JSON response, with the field names of OpenCode's protocol."""
    return as_json(encode(value), status=status)


def as_json(
    body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with `body` as its JSON content."""
    return _Json(body, status_code=status, headers=headers, media_type=JSON)


class _Json(Response):
    """A JSON response without Pegboard's own fields, unless the client asks for these fields."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = for_client(bytes(self.body), Headers(scope=scope))
        if len(body) != len(self.body):
            self.body, self.headers["content-length"] = body, str(len(body))
        await super().__call__(scope, receive, send)


def problem(status: int, name: str, message: str, **facts: object) -> Response:
    """Return an error in the format of OpenCode's protocol; `facts` follow the message."""
    return answer({"name": name, "data": {"message": message, **facts}}, status=status)


def failure(error: PegboardError) -> Response:
    """Return the error response for a Pegboard error."""
    message = mask_text(str(error))
    if isinstance(error, NotFoundError) and error.kind in _TAGGED:
        tag, place = _TAGGED[error.kind]
        return _tagged_response(404, tag, message, {place: error.name}, name="NotFoundError")
    if isinstance(error, SessionBusyError):
        return _tagged_response(409, "SessionBusyError", message, {"sessionID": error.session_id})
    facts = _facts(error)
    for kind, status, name in _STATUS:
        if isinstance(error, kind):
            return problem(status, name, message, **facts)
    if isinstance(error, ValueError):  # a configuration, too, is input
        return problem(400, type(error).__name__, message)
    return problem(500, "UnknownError", message)


def _facts(error: PegboardError) -> dict[str, object]:
    """Return the fields that OpenCode's clients expect in addition to the error message."""
    match error:
        case BodyError():
            return {"kind": "Payload"}
        case ModelNotFoundError():
            provider, _, model = error.name.partition("/")
            return {"providerID": provider, "modelID": model, "suggestions": error.suggestions}
        case _:
            return {}


def _tagged_response(
    status: int, tag: str, message: str, facts: Mapping[str, str], *, name: str | None = None
) -> Response:
    """Return an error with a tag, which newer OpenCode clients read, and a name for others."""
    told = {"name": name or tag, "data": {"message": message}}
    return answer({**told, "_tag": tag, **facts, "message": message}, status=status)


async def body_of(request: Request, kind: type[_Body]) -> _Body:
    """Decode the request's JSON; an empty body is an empty object.

    :raises BodyError: when it is not JSON, or not of this shape.
    """
    raw = await request.body() or b"{}"
    try:
        found = msgspec.json.decode(raw, type=kind)
        if len(raw) > SHORT_BYTES:
            await asyncio.to_thread(_refuse_twins, raw)
        else:
            _refuse_twins(raw)
    except msgspec.ValidationError as error:
        raise BodyError(_break_before_place(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BodyError(f"Malformed JSON in request body: {error}") from error
    except RecursionError as error:
        raise BodyError("Malformed JSON in request body: nested too deeply") from error
    return found


def _refuse_twins(raw: bytes) -> None:
    """Reject JSON with duplicate keys."""

    def unique(pairs: list[tuple[str, object]]) -> None:
        known: set[str] = set()
        for key, _ in pairs:
            if key in known:
                raise BodyError(f"Malformed JSON in request body: the key {key!r} is there twice")
            known.add(key)

    # Numbers are left alone: very long ones are an error that the shape has judged already.
    json.loads(raw, object_pairs_hook=unique, parse_int=str, parse_float=str)


def _break_before_place(text: str) -> str:
    """Put the position in a decoding error on its own line, as OpenCode's clients show it."""
    message, found, place = text.partition(" - at `$")
    return f"{message}\n  at {place.removesuffix('`')}" if found else message
