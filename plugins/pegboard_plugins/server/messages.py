"""Routes that read, change and delete messages and their parts."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from pegboard import InvalidInputError
from pegboard.schema.message import Turn
from pegboard.schema.part import Part
from pegboard.schema.wire import encode
from pegboard.storage import DropMessage, DropPart, PutPart
from pegboard.unstable import check_id
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.responses import answer, as_json, body_of
from pegboard_plugins.server.serverstate import AtSession, valid_id
from pegboard_plugins.server.wireviews import UNPRICED, wire_part, wire_turn
from pegboard_plugins.shared.frontend import edit_turn

MOST_MESSAGES = 1_000_000
routes = APIRouter()
_SUMMARY = b'"summary":true'
"""Only answers that summarise have facts that the protocol does not know."""
_MESSAGE = "/session/{sessionID}/message/{messageID}"
_PART = _MESSAGE + "/part/{partID}"


@routes.get("/session/{sessionID}/message", **operation("session.messages", gives=tuple[Turn, ...]))
async def messages(
    request: Request,
    opened: AtSession,
    limit: Annotated[int | None, Query(ge=0, le=MOST_MESSAGES)] = None,
    before: str | None = None,
) -> Response:
    """List the messages with their parts, oldest first.

    `limit` selects the newest messages, among those before the cursor `before`. If older messages
    exist, the header `x-next-cursor` has their cursor.
    """
    await opened.app.store_text(opened.session.id)
    if not limit:
        if before:
            raise InvalidInputError("`before` needs a `limit`: the size of the page")
        return _list_response(await opened.app.storage.turns_json(opened.session.id), {})
    if before:
        await opened.app.storage.turn(opened.session.id, check_id("message", before))
    rows = await opened.app.storage.turns_json(
        opened.session.id, limit=limit + 1, before=before or None
    )
    page = msgspec.json.decode(rows, type=tuple[msgspec.Raw, ...])
    if len(page) <= limit:
        return _list_response(rows, {})
    cursor = msgspec.json.decode(page[1], type=_Place).info.id
    address = request.url.include_query_params(before=cursor)
    headers = {
        "x-next-cursor": cursor,
        "link": f'<{address}>; rel="next"',
        "access-control-expose-headers": "Link, X-Next-Cursor",
    }
    return _list_response(b"[%b]" % b",".join(map(bytes, page[1:])), headers)


class _Id(msgspec.Struct):
    """The id of a message."""

    id: str


class _Place(msgspec.Struct):
    """The position of a message, in a cursor for the next page."""

    info: _Id


def _list_response(rows: bytes, headers: Mapping[str, str]) -> Response:
    if _SUMMARY in rows or UNPRICED in rows:
        turns = msgspec.json.decode(rows, type=tuple[Turn, ...])
        rows = encode(tuple(map(wire_turn, turns)))
    return as_json(rows, headers=headers)


@routes.get(_MESSAGE, **operation("session.message", gives=Turn))
async def message(opened: AtSession, messageID: str) -> Response:
    """Return a message with its parts."""
    message_id = valid_id("message", messageID)
    await opened.app.store_text(opened.session.id)
    turn = await opened.app.storage.turn(opened.session.id, message_id)
    return answer(wire_turn(turn))


@routes.delete(_MESSAGE, **operation("session.deleteMessage", gives=bool))
async def delete_message(opened: AtSession, messageID: str) -> Response:
    """Delete the message."""
    message_id = valid_id("message", messageID)
    await edit_turn(opened.app, opened.session.id, DropMessage(opened.session.id, message_id))
    return answer(value=True)


@routes.post(f"{_MESSAGE}/withdraw", **operation("session.withdraw", gives=bool))
async def withdraw(opened: AtSession, messageID: str) -> Response:
    """Delete a prompt that no model has read yet; return whether the prompt was deleted."""
    message_id = valid_id("message", messageID)
    return answer(await opened.app.withdraw(opened.session.id, message_id))


@routes.patch(_PART, **operation("part.update", gives=Part, takes=Part))
async def update_part(request: Request, opened: AtSession, messageID: str, partID: str) -> Response:
    """Change a message part, and return the changed part."""
    part: Part = await body_of(request, Part)  # type: ignore[arg-type] # a union is no class
    if (part.session_id, part.message_id, part.id) != (opened.session.id, messageID, partID):
        raise InvalidInputError("the ids of the part are not those of the path")
    await edit_turn(opened.app, opened.session.id, PutPart(part))
    return answer(wire_part(part))


@routes.delete(_PART, **operation("part.delete", gives=bool))
async def delete_part(opened: AtSession, messageID: str, partID: str) -> Response:
    """Delete the part."""
    message_id = valid_id("message", messageID)
    part_id = valid_id("part", partID)
    await edit_turn(opened.app, opened.session.id, DropPart(opened.session.id, message_id, part_id))
    return answer(value=True)
