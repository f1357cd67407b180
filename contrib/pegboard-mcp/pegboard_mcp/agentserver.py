"""The MCP server that offers Pegboard's agent and selected tools to other agents.

This module imports the MCP SDK.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server as ProtocolServer
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard import App, PegboardError, Tool, __version__
from pegboard.errors import InvalidInputError, NotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.message import AbortedFailure, AssistantMessage, Prompt
from pegboard.schema.part import PatchPart
from pegboard.schema.session import Tokens, add_tokens
from pegboard_mcp.agentcall import AgentCall, Request
from pegboard_mcp.projectapps import ProjectApps
from pegboard_mcp.requestforms import form_of
from pegboard_plugins.shared.frontend import shown_path

NAME = "pegboard"
PROMPT, REPLY = "pegboard", "pegboard_reply"
TITLE = "MCP client"
ANSWER_LIMIT_S = 600.0
"""The time within which a client answers what the result of a call has asked (SEP-2322)."""
MANY_CALLS = 32
"""The most calls under way; one more is refused."""
_CAN_ASK = types.ClientCapabilities(elicitation=types.ElicitationCapability())
_TEXT = {"type": "string"}
_OUTPUT = {
    "type": "object",
    "properties": {
        "session": {**_TEXT, "description": "The id of the session, for pegboard_reply"},
        "outcome": {**_TEXT, "enum": ["answered", "aborted", "failed"]},
        "changed": {"type": "array", "items": _TEXT, "description": "The files it changed"},
        "usage": {"type": "object"},
    },
    "required": ["session", "outcome", "changed", "usage"],
}
Context = ServerRequestContext[Any, Any]
_T = TypeVar("_T", bound=msgspec.Struct)


class PromptArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool that starts a session."""

    prompt: str
    cwd: str = "."
    agent: str | None = None
    model: str | None = None


class ReplyArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool that continues a session."""

    session: str
    prompt: str


class AgentServer:
    """The MCP tools for other agents: Pegboard's agent, and the Pegboard tools in `offered`."""

    def __init__(self, apps: ProjectApps, offered: Sequence[str] = ()) -> None:
        self._apps = apps
        self._offered = offered
        self._calls: dict[str, AgentCall] = {}
        self._expiring: dict[str, asyncio.Task[None]] = {}
        self.protocol: ProtocolServer[Any] = ProtocolServer(
            NAME,
            version=__version__,
            instructions="The tool pegboard has a coding agent work on the project.",
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        boundary = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
        self.protocol.middleware.append(boundary)

    async def check_offered(self) -> None:
        """Check that all tools in `offered` exist.

        :raises NotFoundError: when a tool does not exist.
        """
        async with self._apps.using(".") as app:
            for name in self._offered:
                if name not in app.tools:
                    raise NotFoundError("tool", name, suggestions=nearest_names(name, app.tools))

    async def aclose(self) -> None:
        """End all calls, and close the Apps."""
        for task in self._expiring.values():
            task.cancel()
        calls = [*self._calls.values()]
        self._calls.clear()
        await asyncio.gather(*(each.aclose() for each in calls))
        await self._apps.aclose()

    async def _list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        async with self._apps.using(".") as app:
            tools = [_tool_definition(app.tools[each]) for each in self._offered]
        return types.ListToolsResult(tools=[*_agent_tools(str(self._apps.root)), *tools])

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Start a tool call, or continue a call after the client has answered its questions."""
        try:
            if params.request_state is None:
                call = await self._begun(params.name, params.arguments or {})
            else:
                call = await self._resumed(params.request_state, params.input_responses)
        except PegboardError as error:
            return _failure(str(error))
        result: types.CallToolResult | types.InputRequiredResult | None = None
        try:
            result = await self._result(context, call)
        finally:
            if not isinstance(result, types.InputRequiredResult):
                self._calls.pop(call.id, None)
                with anyio.CancelScope(shield=True):
                    await call.aclose()
        return result

    async def _begun(self, name: str, arguments: Mapping[str, Any]) -> AgentCall:
        if len(self._calls) >= MANY_CALLS:
            raise InvalidInputError(f"{MANY_CALLS} calls are under way; call again later")
        async with AsyncExitStack() as leaving:
            match name:
                case "pegboard":
                    order = _converted(arguments, PromptArguments)
                    app = await leaving.enter_async_context(self._apps.using(order.cwd))
                    session = await app.create_session(agent=order.agent)
                    prompt = Prompt(order.prompt, agent=order.agent, model=order.model)
                    work = _prompted(app, session.id, prompt)
                case "pegboard_reply":
                    reply = _converted(arguments, ReplyArguments)
                    async with self._apps.using(".") as root:
                        session = await root.session(reply.session)
                    app = await leaving.enter_async_context(self._apps.using(session.directory))
                    work = _prompted(app, session.id, Prompt(reply.prompt))
                case _ if name in self._offered:
                    app = await leaving.enter_async_context(self._apps.using("."))
                    session = await app.create_session(title=TITLE)
                    work = _called(app, session.id, name, arguments)
                case _:
                    known = (PROMPT, REPLY, *self._offered)
                    raise NotFoundError("tool", name, suggestions=nearest_names(name, known))
            call = AgentCall(app, session.id, work, leaving.pop_all())
        self._calls[call.id] = call
        return call

    async def _result(
        self, context: Context, call: AgentCall
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Return the result of a call, or the questions that the client must answer first."""

        async def report(count: int, title: str) -> None:
            await context.session.report_progress(count, message=title)

        can_ask = context.session.check_client_capability(_CAN_ASK)
        while waiting := await call.requests(report):
            if not can_ask:
                for each in waiting:
                    await call.leave_unattended(each)
            elif context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                self._expiring[call.id] = asyncio.create_task(self._expire(call))
                return types.InputRequiredResult(
                    input_requests={each.id: _elicitation(each) for each in waiting},
                    request_state=call.id,
                )
            else:
                for each in waiting:
                    await _ask(context, call, each)
        try:
            return await call.task
        except PegboardError as error:
            return _failure(str(error))

    async def _resumed(self, state: str, responses: types.InputResponses | None) -> AgentCall:
        """Return the running call with the id `state`, after passing on the client's answers."""
        call = self._calls.get(state)
        if call is None:
            raise InvalidInputError("the call has ended meanwhile; make it again")
        self._expiring.pop(state).cancel()
        pending = call.pending()
        for name, response in (responses or {}).items():
            if name in pending and isinstance(response, types.ElicitResult):
                await call.answer(pending[name], _content(response))
        return call

    async def _expire(self, call: AgentCall) -> None:
        """Cancel a call if the client does not return with answers in time."""
        await asyncio.sleep(ANSWER_LIMIT_S)
        self._calls.pop(call.id, None)
        self._expiring.pop(call.id, None)
        await call.aclose()


async def _ask(context: Context, call: AgentCall, request: Request) -> None:
    """Ask the user with a separate request, for clients with an older protocol version."""
    message, schema = form_of(request)
    try:
        result = await context.session.elicit_form(message, schema, context.request_id)
    except MCPError:
        await call.leave_unattended(request)
    else:
        await call.answer(request, _content(result))


def _elicitation(request: Request) -> types.ElicitRequest:
    message, schema = form_of(request)
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def _content(result: types.ElicitResult) -> Mapping[str, Any] | None:
    return result.content or {} if result.action == "accept" else None


async def _prompted(app: App, session_id: str, prompt: Prompt) -> types.CallToolResult:
    """Send a prompt to the session; return the model's answer, changed files and token usage."""
    last = await app.prompt(session_id, prompt)
    turns = [
        each
        for each in await app.list_turns(session_id, files=True)
        if each.prompt_id == last.prompt_id
    ]
    answers = [each.info for each in turns if isinstance(each.info, AssistantMessage)]
    patches = (part for each in turns for part in each.parts if isinstance(part, PatchPart))
    changed = dict.fromkeys(
        shown_path(Path(file), app.workspace.directory) for each in patches for file in each.files
    )
    tokens: Tokens | None = None
    for each in answers:
        tokens = add_tokens(tokens, each.tokens)
    costs = [each.cost for each in answers if each.cost is not None]
    usage = {**msgspec.to_builtins(tokens), "cost": sum(costs) if costs else None}
    assert isinstance(last.info, AssistantMessage)
    error = last.info.error
    outcome = "aborted" if isinstance(error, AbortedFailure) else "failed" if error else "answered"
    text = last.text if error is None else f"{last.text}\n{error.data.message}".strip()
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content={
            "session": session_id,
            "outcome": outcome,
            "changed": [*changed],
            "usage": usage,
        },
        is_error=error is not None,
    )


async def _called(
    app: App, session_id: str, name: str, arguments: Mapping[str, Any]
) -> types.CallToolResult:
    """Call a tool in a temporary session, and return the tool's result."""
    try:
        done = await app.call_tool(session_id, name, arguments)
    finally:
        with anyio.CancelScope(shield=True):
            await app.delete_session(session_id)
    content: list[types.ContentBlock] = [types.TextContent(text=done.output)]
    for each in done.attachments:
        head, _, encoded = each.url.partition(";base64,")
        if each.mime.startswith("image/") and head.startswith("data:"):
            content.append(types.ImageContent(data=encoded, mime_type=each.mime))
    return types.CallToolResult(content=content)


def _converted(arguments: Mapping[str, Any], kind: type[_T]) -> _T:
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"the arguments cannot be used: {error}") from error


def _failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _agent_tools(root: str) -> tuple[types.Tool, ...]:
    prompt = {"prompt": {**_TEXT, "description": "The task, with all that the agent must know"}}
    choices = {
        "cwd": {**_TEXT, "description": f"The folder to work in, at or below {root}"},
        "agent": {**_TEXT, "description": "An agent other than the default one"},
        "model": {**_TEXT, "description": "A model other than the default one, PROVIDER/MODEL"},
    }
    session = {"session": {**_TEXT, "description": "The id that the tool pegboard returned"}}
    return (
        types.Tool(
            name=PROMPT,
            description="Have a coding agent work on the project, and return its answer.",
            input_schema={
                "type": "object",
                "properties": {**prompt, **choices},
                "required": ["prompt"],
            },
            output_schema=_OUTPUT,
        ),
        types.Tool(
            name=REPLY,
            description="Go on with a session of the tool pegboard, and return the answer.",
            input_schema={
                "type": "object",
                "properties": {**session, **prompt},
                "required": ["session", "prompt"],
            },
            output_schema=_OUTPUT,
        ),
    )


def _tool_definition(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=True) if tool.effect == "reads" else None
    return types.Tool(
        name=tool.id,
        description=tool.description,
        input_schema=dict(tool.parameters),
        annotations=hints,
    )
