"""Messages and their parts: read, changed and removed one by one."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from msgspec.structs import replace
from starlette.responses import Response

from pegboard import DropMessage, DropPart, InvalidInputError, NotFoundError, PutPart
from pegboard.schema.message import Turn
from pegboard.schema.part import Part
from pegboard_plugins.server.answers import answer, as_json, body_of
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.house import AtSession, Place, checked
from pegboard_plugins.server.sessions import must_rest
from pegboard_plugins.server.shown import as_shown

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
    rows = await place.app.storage.turns_json(place.session.id, limit=limit)
    if _SUMMARY not in rows:
        return as_json(rows)
    turns = msgspec.json.decode(rows, type=tuple[Turn, ...])
    return answer(tuple(replace(turn, info=as_shown(turn.info)) for turn in turns))


@routes.get(_MESSAGE, **operation("session.message", gives=Turn))
async def message(place: AtSession, messageID: str) -> Response:
    """One message with its parts."""
    turn = await _turn(place, messageID)
    return answer(replace(turn, info=as_shown(turn.info)))


@routes.delete(_MESSAGE, **operation("session.deleteMessage", gives=bool))
async def delete_message(place: AtSession, messageID: str) -> Response:
    """True, when the message is gone."""
    await _turn(place, messageID)
    must_rest(place)
    await place.app.storage.commit(DropMessage(place.session.id, messageID))
    return answer(value=True)


@routes.patch(_PART, **operation("part.update", gives=Part, takes=Part))
async def update_part(request: Request, place: AtSession, messageID: str, partID: str) -> Response:
    """The part as it is from now on."""
    part: Part = await body_of(request, Part)  # type: ignore[arg-type] # a union is no class
    if (part.session_id, part.message_id, part.id) != (place.session.id, messageID, partID):
        raise InvalidInputError("the ids of the part are not those of the path")
    await _part(place, messageID, partID)
    must_rest(place)
    await place.app.storage.commit(PutPart(part))
    return answer(part)


@routes.delete(_PART, **operation("part.delete", gives=bool))
async def delete_part(place: AtSession, messageID: str, partID: str) -> Response:
    """True, when the part is gone."""
    await _part(place, messageID, partID)
    must_rest(place)
    await place.app.storage.commit(DropPart(place.session.id, messageID, partID))
    return answer(value=True)


async def _turn(place: Place, message_id: str) -> Turn:
    return await place.app.storage.turn(place.session.id, checked("message", message_id))


async def _part(place: Place, message_id: str, part_id: str) -> Part:
    turn = await _turn(place, message_id)
    for part in turn.parts:
        if part.id == part_id:
            return part
    raise NotFoundError("Part", part_id[:80])
