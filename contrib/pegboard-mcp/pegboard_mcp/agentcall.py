"""A running call from another agent: the work, the progress, and requests to the user.

This module imports the MCP SDK's types.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from mcp_types import CallToolResult

from pegboard import App
from pegboard.errors import NotFoundError
from pegboard.schema.event import Event, PartUpdated
from pegboard.schema.part import Running, ToolPart
from pegboard.schema.session import PermissionRequest, QuestionRequest
from pegboard_mcp.requestforms import answers_of, reply_of

QUEUED_EVENTS = 20_000
TITLE_LETTERS = 200
Request = PermissionRequest | QuestionRequest
Content = Mapping[str, Any]
Report = Callable[[int, str], Awaitable[None]]


class AgentCall:
    """A prompt or tool call from another agent in a session, with its requests to the user.

    If the user must answer a request, the MCP client gets the request as a result, and repeats its
    call with the answer (SEP-2322). The work continues meanwhile. Closing the call also closes the
    exit stack `leaving`.
    """

    def __init__(
        self,
        app: App,
        session_id: str,
        work: Coroutine[Any, Any, CallToolResult],
        leaving: AsyncExitStack,
    ) -> None:
        self.id = secrets.token_urlsafe(16)
        self.app = app
        self.session_id = session_id
        self._leaving = leaving
        self.task = asyncio.create_task(work, name=f"mcp serve {session_id}")
        self._events = app.subscribe(limit=QUEUED_EVENTS)
        self._calls: set[str] = set()

    async def requests(self, report: Report) -> tuple[Request, ...]:
        """Wait for requests that the user must answer; return () when the call has ended.

        `report` receives the number of tool calls so far and the title of the newest tool call.
        """
        while not self.task.done():
            if waiting := [each for each in self._pending() if await self._is_ours(each)]:
                return tuple(waiting)
            batch = asyncio.ensure_future(self._events.batch())
            await asyncio.wait({self.task, batch}, return_when=asyncio.FIRST_COMPLETED)
            if batch.done():
                for event in batch.result():
                    await self._take(event, report)
            else:
                batch.cancel()
        return ()

    async def answer(self, request: Request, content: Content | None) -> None:
        """Answer a request with a form's content; reject the request if `content` is None."""
        with suppress(NotFoundError):  # it was answered elsewhere, or its call has ended
            if isinstance(request, PermissionRequest):
                await self.app.answer_permission(request.id, reply_of(content))
            elif content is None:
                await self.app.reject_question(request.id)
            else:
                await self.app.answer_question(request.id, answers_of(request.questions, content))

    async def leave_unattended(self, request: Request) -> None:
        """Reject a request, because the MCP client cannot ask its user."""
        with suppress(NotFoundError):
            if isinstance(request, PermissionRequest):
                await self.app.permissions.leave_unattended(request.id)
            else:
                await self.app.reject_question(request.id)

    def pending(self) -> Mapping[str, Request]:
        """Return all open permission requests and questions of the call's App, by id."""
        return {each.id: each for each in self._pending()}

    async def aclose(self) -> None:
        """Cancel the call, and wait until it has ended."""
        self._events.close()
        if not self.task.done():
            await self.app.abort(self.session_id)
            self.task.cancel()
        await asyncio.wait({self.task})
        await self._leaving.aclose()

    def _pending(self) -> tuple[Request, ...]:
        return (*self.app.permissions.pending(), *self.app.questions.pending())

    async def _is_ours(self, request: Request) -> bool:
        """Return whether a request belongs to this session or to a subagent of this session."""
        name: str | None = request.session_id
        while name is not None and name != self.session_id:
            try:
                name = (await self.app.session(name)).parent_id
            except NotFoundError:
                return False
        return name is not None

    async def _take(self, event: Event, report: Report) -> None:
        match event.properties:
            case PartUpdated(part=ToolPart(id=name, tool=tool, state=Running(title=title))) if (
                event.session_id == self.session_id and name not in self._calls
            ):
                self._calls.add(name)
                await report(len(self._calls), f"{tool} {title or ''}"[:TITLE_LETTERS].strip())
