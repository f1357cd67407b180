"""Messages and their parts: read, changed and removed one by one."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from pegboard import InvalidInputError
from pegboard.schema.message import Turn
from pegboard.schema.part import Part
from pegboard.storage import DropMessage, DropPart, PutPart
from pegboard_plugins.server.answers import answer, as_json, body_of
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.house import AtSession, Place, checked
from pegboard_plugins.server.shown import UNPRICED, turn_as_shown

MOST_MESSAGES = 1_000_000
routes = APIRouter()
_SUMMARY = b'"summary":true'
"""Only answers that summarise have facts that the protocol does not know."""
_MESSAGE = "/session/{sessionID}/message/{messageID}"
_PART = _MESSAGE + "/part/{partID}"


@routes.get("/session/{sessionID}/message", **operation("session.messages", gives=tuple[Turn, ...]))
async def messages(
    place: AtSession, limit: Annotated[int | None, Query(ge=1, le=MOST_MESSAGES)] = None
) -> Response:
    """The messages with their parts, oldest first; `limit` keeps the newest."""
    await place.app.store_text(place.session.id)
    rows = await place.app.storage.turns_json(place.session.id, limit=limit)
    if _SUMMARY not in rows and UNPRICED not in rows:
        return as_json(rows)
    turns = msgspec.json.decode(rows, type=tuple[Turn, ...])
    return answer(tuple(map(turn_as_shown, turns)))


@routes.get(_MESSAGE, **operation("session.message", gives=Turn))
async def message(place: AtSession, messageID: str) -> Response:
    """One message with its parts."""
    turn = await _turn(place, messageID)
    return answer(turn_as_shown(turn))


@routes.delete(_MESSAGE, **operation("session.deleteMessage", gives=bool))
async def delete_message(place: AtSession, messageID: str) -> Response:
    """True, when the message is gone."""
    message_id = checked("message", messageID)
    await place.app.edit(place.session.id, DropMessage(place.session.id, message_id))
    return answer(value=True)


@routes.patch(_PART, **operation("part.update", gives=Part, takes=Part))
async def update_part(request: Request, place: AtSession, messageID: str, partID: str) -> Response:
    """The part as it is from now on."""
    part: Part = await body_of(request, Part)  # type: ignore[arg-type] # a union is no class
    if (part.session_id, part.message_id, part.id) != (place.session.id, messageID, partID):
        raise InvalidInputError("the ids of the part are not those of the path")
    await place.app.edit(place.session.id, PutPart(part))
    return answer(part)


@routes.delete(_PART, **operation("part.delete", gives=bool))
async def delete_part(place: AtSession, messageID: str, partID: str) -> Response:
    """True, when the part is gone."""
    message_id = checked("message", messageID)
    part_id = checked("part", partID)
    await place.app.edit(place.session.id, DropPart(place.session.id, message_id, part_id))
    return answer(value=True)


async def _turn(place: Place, message_id: str) -> Turn:
    await place.app.store_text(place.session.id)
    return await place.app.storage.turn(place.session.id, checked("message", message_id))
