"""A web service with FastAPI: a project over HTTP, answers as server-sent events.

`uvicorn --factory web_service:create` serves the working directory on 127.0.0.1. A stream ends with
an event `done` or `failed`; each permission request is an event `asked`, answered by a request of
its own.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from fastapi import FastAPI
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from pegboard import App, AppOptions, Prompt, tool
from pegboard.errors import NotFoundError, PegboardError
from pegboard.schema.event import Event, PartDelta, PermissionAsked
from pegboard.schema.message import AssistantMessage

SETTINGS = {"permission": {"order_state": "ask", "edit": "deny", "bash": "deny"}}


@tool(effect="reads")
def order_state(number: int) -> dict[str, object]:
    """Look up the state of an order.

    Args:
        number: The order's number.
    """
    return {"number": number, "state": "on its way"}


class Question(BaseModel):
    """A prompt, for the model `provider/model` if it names one."""

    text: str
    model: str | None = None


class Answer(BaseModel):
    """The answer to a permission request."""

    reply: Literal["once", "reject"]


def create(directory: Path | None = None, options: AppOptions | None = None) -> FastAPI:
    """Return the service of one project; the App opens and closes with the server."""
    opened: list[App] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        chosen = options or AppOptions(config=SETTINGS, tools=[order_state], interactive=True)
        async with App.open(directory or Path.cwd(), chosen) as app:
            opened.append(app)
            yield

    api = FastAPI(lifespan=lifespan)

    @api.exception_handler(NotFoundError)
    async def not_found(_: object, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 404)

    @api.post("/sessions")
    async def create_session() -> dict[str, str]:
        return {"id": (await opened[0].create_session()).id}

    @api.post("/sessions/{session_id}/prompts")
    async def ask(session_id: str, question: Question) -> StreamingResponse:
        prompt = Prompt(question.text, model=question.model)
        frames = stream_turn(opened[0], session_id, prompt)
        return StreamingResponse(frames, media_type="text/event-stream")

    @api.post("/sessions/{session_id}/abort")
    async def abort(session_id: str) -> dict[str, bool]:
        return {"stopped": await opened[0].abort(session_id)}

    @api.post("/permissions/{request_id}")
    async def decide(request_id: str, answer: Answer) -> None:
        await opened[0].answer_permission(request_id, answer.reply)

    return api


async def stream_turn(app: App, session_id: str, prompt: Prompt) -> AsyncIterator[str]:
    """Yield the frames of one turn; a client that leaves stops the turn."""
    async with app.subscribe() as events:
        turn = asyncio.create_task(app.prompt(session_id, prompt))
        turn.add_done_callback(lambda _: events.close())
        try:
            async for event in events:
                if frame := frame_of(event, session_id):
                    yield frame
            answer = await turn
            if isinstance(answer.info, AssistantMessage) and (error := answer.info.error):
                yield encode_frame("failed", {"message": error.data.message})
            else:
                yield encode_frame("done", {"text": answer.text})
        except PegboardError as refused:
            yield encode_frame("failed", {"message": str(refused)})
        finally:
            if not turn.done():
                await app.abort(session_id)


def frame_of(event: Event, session_id: str) -> str:
    """Return the frame of an event that concerns the session, or an empty string."""
    match event.properties:
        case PartDelta(session_id=of, field="text", delta=delta) if of == session_id:
            return encode_frame("text", {"text": delta})
        case PermissionAsked(request=request) if request.session_id == session_id:
            facts = {"id": request.id, "permission": request.permission}
            return encode_frame("asked", {**facts, "patterns": list(request.patterns)})
    return ""


def encode_frame(name: str, data: dict[str, Any]) -> str:
    """Return a frame of the stream."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
