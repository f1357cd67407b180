"""Permission requests and questions of a session, sent to the editor's user."""

import asyncio
from contextlib import suppress

from pegboard import App
from pegboard.errors import NotFoundError
from pegboard.schema.session import PermissionRequest, QuestionRequest, Reply
from pegboard_acp.forms import answers_of, form_of, text_of
from pegboard_acp.jsonrpc import RpcError
from pegboard_acp.link import Link
from pegboard_acp.protocol import Chosen, ElicitationResult, PermissionResult, TextBlock
from pegboard_acp.toolcalls import diffs_of, kind_of
from pegboard_acp.updates import CallBlock, CallFields, PermissionOption


class Requests:
    """The requests to the user that wait for an answer in a session, each with its own task.

    `session_id` is the session that the editor knows. The requests of its subagents use the same
    id.
    """

    def __init__(self, app: App, link: Link, session_id: str, tasks: asyncio.TaskGroup) -> None:
        self._app = app
        self._link = link
        self._session_id = session_id
        self._tasks = tasks
        self._open: dict[str, asyncio.Task[None]] = {}

    def ask_permission(self, request: PermissionRequest, call_id: str | None) -> None:
        """Send a permission request; `call_id` is the editor's id of the tool call, if any."""
        if request.id not in self._open:
            asking = self._permission(request, call_id)
            self._open[request.id] = self._tasks.create_task(asking)

    def ask_questions(self, request: QuestionRequest, call_id: str | None) -> None:
        """Send questions as a form, or as a text message if the client has no forms."""
        if request.id not in self._open:
            asking = self._questions(request, call_id)
            self._open[request.id] = self._tasks.create_task(asking)

    def withdraw(self, request_id: str) -> None:
        """Withdraw a request from the editor, because the request has been answered elsewhere."""
        if (task := self._open.pop(request_id, None)) is not None:
            task.cancel()

    def withdraw_all(self) -> None:
        """Withdraw all open requests."""
        for request_id in tuple(self._open):
            self.withdraw(request_id)

    async def _permission(self, request: PermissionRequest, call_id: str | None) -> None:
        body = {
            "sessionId": self._session_id,
            "toolCall": await self._call(request, call_id),
            "options": _options(request),
        }
        reply: Reply = "reject"
        with suppress(RpcError):  # a client that cannot ask allows nothing
            result = await self._link.request("session/request_permission", body, PermissionResult)
            if isinstance(result.outcome, Chosen):
                reply = _REPLIES.get(result.outcome.option_id, "reject")
        self._open.pop(request.id, None)
        with suppress(NotFoundError):  # the turn was cancelled meanwhile
            await self._app.answer_permission(request.id, reply)

    async def _call(self, request: PermissionRequest, call_id: str | None) -> CallFields:
        """Return a permission request as an ACP tool call with patterns, command and diffs."""
        subject = request.line or ", ".join(request.patterns)
        title = f"{request.permission} {subject}"
        if request.session_id != self._session_id:
            child = await self._app.session(request.session_id)
            title = f"{child.agent}: {title}"
        note = request.metadata.get("text")
        told = (CallBlock(content=TextBlock(text=note)),) if isinstance(note, str) else ()
        changes = tuple(diffs_of(request.metadata, self._app.workspace.directory))
        return CallFields(
            tool_call_id=call_id or request.id,
            title=title,
            kind=kind_of(request.permission, self._app.tools.get(request.permission)),
            status="pending",
            content=(*told, *changes) or None,
        )

    async def _questions(self, request: QuestionRequest, call_id: str | None) -> None:
        answers = None
        if self._link.client.fills_forms:
            body = {
                "sessionId": self._session_id,
                "mode": "form",
                "message": "\n".join(each.question for each in request.questions),
                "requestedSchema": form_of(request.questions),
            }
            if call_id is not None:
                body["toolCallId"] = call_id
            with suppress(RpcError):  # a client that cannot ask leaves the question open
                result = await self._link.request("elicitation/create", body, ElicitationResult)
                if result.action == "accept":
                    answers = answers_of(request.questions, result.content or {})
        else:
            await self._link.say(self._session_id, text_of(request.questions))
        self._open.pop(request.id, None)
        with suppress(NotFoundError):  # the turn was cancelled meanwhile
            if answers is None:
                await self._app.reject_question(request.id)
            else:
                await self._app.answer_question(request.id, answers)


_REPLIES: dict[str, Reply] = {"once": "once", "always": "always", "reject": "reject"}


def _options(request: PermissionRequest) -> tuple[PermissionOption, ...]:
    once = PermissionOption(option_id="once", name="Allow once", kind="allow_once")
    reject = PermissionOption(option_id="reject", name="Reject", kind="reject_once")
    if not request.always:
        return once, reject
    name = f"Always allow {request.permission} {', '.join(request.always)}"
    return once, PermissionOption(option_id="always", name=name, kind="allow_always"), reject
