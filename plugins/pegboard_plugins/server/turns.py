"""Routes that make a session work: prompts, slash commands, shell commands, summaries."""

import asyncio
from collections.abc import Callable, Container, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from pegboard import PegboardError
from pegboard.errors import AbortedError
from pegboard.schema.event import MessageUpdated
from pegboard.schema.message import JsonFormat, Prompt, Turn, UserMessage
from pegboard.schema.wire import encode
from pegboard.unstable import check_id
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.keymask import mask_text
from pegboard_plugins.server.responses import (
    BodyError,
    TooManyError,
    as_json,
    body_of,
)
from pegboard_plugins.server.serverstate import (
    AtFolder,
    AtSession,
    OpenSession,
    Served,
    ServerState,
    known_agent,
)
from pegboard_plugins.server.trustquestion import ask_once
from pegboard_plugins.server.waiting import wait_for
from pegboard_plugins.server.wireviews import wire_turn
from pegboard_plugins.shared.frontend import (
    CommandBody,
    CommandOrder,
    InitBody,
    PromptBody,
    ShellBody,
    ShellOrder,
    SummarizeBody,
    mentioned,
    require_answerer,
    run_command,
    run_shell,
)

STORED_WITHIN_S = 10.0
MOST_WAITING = 100
"""Prompts of one session that wait at once."""
routes = APIRouter()

_Value = TypeVar("_Value")
Work = Coroutine[Any, Any, Turn]
Shape = Callable[[Turn], bytes]


def _to_json(turn: Turn) -> bytes:
    return encode(wire_turn(turn))


@routes.post(
    "/session/{sessionID}/message", **operation("session.prompt", gives=Turn, takes=PromptBody)
)
async def prompt(request: Request, opened: AtFolder, state: Served) -> Response:
    """Send a prompt and return the last answer, without a time limit."""
    body = await body_of(request, PromptBody)
    ask_once(state, opened)
    return await _outcome(request, state, opened, _prompt(opened, body))


@routes.post(
    "/session/{sessionID}/prompt_async",
    **operation("session.prompt_async", takes=PromptBody, status=204),
)
async def prompt_async(request: Request, opened: AtFolder, state: Served) -> Response:
    """Store a prompt and return at once; the model's answer arrives as events."""
    body = await body_of(request, PromptBody)
    ask_once(state, opened)
    async with opened.app.subscribe() as events:
        task = _start(state, opened, _prompt(opened, body))
        running = state.pool.member(opened.app).statuses
        told = _wait_until_stored(events, opened.session.id, running)
        stored = state.start(told, "wait for a prompt")
        await asyncio.wait(
            {task, stored}, timeout=STORED_WITHIN_S, return_when=asyncio.FIRST_COMPLETED
        )
        stored.cancel()
    if task.done():
        task.result()
    return Response(status_code=204)


@routes.post(
    "/session/{sessionID}/command", **operation("session.command", gives=Turn, takes=CommandBody)
)
async def command(request: Request, opened: AtFolder, state: Served) -> Response:
    """Run a slash command and return the model's answer."""
    body = await body_of(request, CommandBody)
    order = CommandOrder(
        name=body.command,
        arguments=body.arguments,
        typed=body.typed,
        agent=body.agent,
        model=body.model,
        message_id=_message_id(body.message_id),
        variant=body.variant,
        files=body.parts,
    )
    return await _outcome(request, state, opened, run_command(opened.app, opened.session.id, order))


@routes.post("/session/{sessionID}/init", **operation("session.init", gives=bool, takes=InitBody))
async def init(request: Request, opened: AtFolder, state: Served) -> Response:
    """Run the slash command `init`."""
    body = await body_of(request, InitBody)
    order = CommandOrder(
        name="init",
        arguments="",
        model=f"{body.provider_id}/{body.model_id}",
        message_id=_message_id(body.message_id),
    )
    return await _outcome(
        request, state, opened, run_command(opened.app, opened.session.id, order), _true
    )


@routes.post(
    "/session/{sessionID}/shell", **operation("session.shell", gives=Turn, takes=ShellBody)
)
async def shell(request: Request, opened: AtFolder, state: Served) -> Response:
    """Run a shell command for the user, and return the message with the command's output."""
    body = await body_of(request, ShellBody)
    model = f"{body.model.provider_id}/{body.model.model_id}" if body.model else None
    order = ShellOrder(command=body.command, agent=body.agent, model=model)
    return await _outcome(request, state, opened, run_shell(opened.app, opened.session.id, order))


@routes.post(
    "/session/{sessionID}/summarize",
    **operation("session.summarize", gives=bool, takes=SummarizeBody),
)
async def summarize(request: Request, opened: AtSession, state: Served) -> Response:
    """Summarise the session's history."""
    body = await body_of(request, SummarizeBody)
    work = opened.app.summarize(opened.session.id, model=f"{body.provider_id}/{body.model_id}")
    return await _outcome(request, state, opened, work, _true)


@routes.post(
    "/pegboard/session/{sessionID}/resume", **operation("pegboard.session.resume", gives=Turn)
)
async def resume(request: Request, opened: AtSession, state: Served) -> Response:
    """Continue an interrupted answer, and return the complete answer."""
    return await _outcome(request, state, opened, opened.app.resume(opened.session.id))


async def _prompt(opened: OpenSession, body: PromptBody) -> Turn:
    app, session_id = opened.app, opened.session.id
    await app.reload_project_code()
    agent = known_agent(app, body.agent)  # before anything of the prompt is stored
    if body.checked:
        await require_answerer(app, session_id, agent=agent, model=body.model_name())
    parts = body.parts
    if body.mentions:
        parts += await mentioned(app, session_id, body.mentions, agent=agent)
    prompt = Prompt(
        parts=parts,
        agent=agent,
        model=body.model_name(),
        message_id=_message_id(body.message_id),
        system=body.system,
        tools=body.tools,
        variant=body.variant,
        no_reply=bool(body.no_reply),
        output=_form(body.format),
    )
    return await app.prompt(session_id, prompt)


def _form(written: Mapping[str, Any] | None) -> JsonFormat | None:
    """Return the required format of the final answer, or None for plain text."""
    if written is None or written.get("type") == "text":
        return None
    try:
        return msgspec.convert(written, JsonFormat)
    except msgspec.ValidationError as error:
        raise BodyError(f"format: {error}; it is text, or json_schema with a schema") from error


def _message_id(text: str | None) -> str | None:
    return None if text is None else check_id("message", text)


async def _outcome(
    request: Request, state: ServerState, opened: OpenSession, work: Work, shape: Shape = _to_json
) -> Response:
    """Await `work` and respond with its message; the work goes on if the client leaves."""
    task = _start(state, opened, work)
    await wait_for(request, task)
    turn = task.result()
    await state.feed.read(opened.app.workspace.directory)
    return as_json(shape(turn))


def _start(state: ServerState, opened: OpenSession, work: Work) -> "asyncio.Task[Turn]":
    name = f"turn {opened.session.id}"
    if sum(task.get_name() == name for task in state.work) >= MOST_WAITING:
        work.close()
        raise TooManyError(f"{MOST_WAITING} prompts of session {opened.session.id} wait already")
    return state.start(_hold(state, opened, work), name)


async def _hold(state: ServerState, opened: OpenSession, work: Work) -> Turn:
    """Await `work` and return its message; publish an error as an event, too.

    Terminal interfaces ignore the error in a response, and automatic prompts get no response.
    """
    try:
        with state.pool.hold(opened.app):
            return await work
    except PegboardError as error:
        # Of an abort, the answer that it ended tells.
        if not (error.told or isinstance(error, AbortedError)):
            told = {
                "sessionID": opened.session.id,
                "error": {"name": "UnknownError", "data": {"message": mask_text(str(error))}},
            }
            state.feed.say("session.error", told, directory=opened.app.workspace.directory)
        raise


async def _wait_until_stored(events: Any, session_id: str, running: Container[str]) -> None:  # noqa: ANN401 - a Subscription, which is not public
    """Wait until the session's prompt is stored, and the session counts as running."""
    stored = False
    async for event in events:
        match event.properties:
            case MessageUpdated(session_id=at, info=UserMessage(summary=None)) if at == session_id:
                stored = True
        if stored and session_id in running:
            return


def _true(_turn: Turn) -> bytes:
    return b"true"
