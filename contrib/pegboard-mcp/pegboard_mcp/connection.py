"""A connection to a running MCP server, which reads the server's lists and calls its tools.

The first start of a server imports this module, because it imports the MCP SDK.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import mcp_types as types
from mcp import Client
from mcp.client import IncomingMessage, Transport
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from pegboard import __version__
from pegboard_mcp.catalogue import Catalogue
from pegboard_mcp.elicitation import QUESTIONS_PER_ROUND, AskUser, Inbox, answer_elicitation
from pegboard_mcp.failure import (
    AuthorizationError,
    ConnectionLostError,
    RequestError,
    StaleDefinitionError,
    lacking_authorization,
    reason_of,
)
from pegboard_mcp.listing import (
    INSTRUCTION_BYTES,
    LIST_PAGES,
    LIST_TOOLS,
    clean_text,
    read_prompts,
    read_resources,
    read_tools,
)
from pegboard_mcp.traffic import OUTCOME, RAW, RequestOutcome, Traffic

ROUNDS = 10
"""The most rounds of questions within one call (SEP-2322)."""
ROUND_PAUSE_S = 0.1
"""Before a call is sent again of which the server wanted only the state back."""
_CALL_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
_PROMPT_RESULT: TypeAdapter[types.GetPromptResult | types.InputRequiredResult] = TypeAdapter(
    types.GetPromptResult | types.InputRequiredResult
)
_READ_RESULT: TypeAdapter[types.ReadResourceResult | types.InputRequiredResult] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)
_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
_NO_LIMIT_S = 7 * 24 * 60 * 60.0
"""Of a call for the SDK, whose clock would run on while the user is asked; ours stands."""
_T = TypeVar("_T")


class Wishes(NamedTuple):
    """The settings for a new connection to a server.

    `known` is the stored catalogue, if any. `can_ask` tells the server that Pegboard can ask a
    user. `on_change` is called when the server reports a changed list.
    """

    known: Catalogue | None
    can_ask: bool
    answer_limit_s: float
    on_change: Callable[[], None]


class _List(NamedTuple):
    """The items of a list from the server; `lifetime_s` is how long to cache them, or None."""

    items: list[object]
    lifetime_s: float | None


class ServerConnection:
    """An open connection to an MCP server, after the protocol's handshake."""

    def __init__(self, name: str, client: Client, traffic: Traffic, inbox: Inbox) -> None:
        self.name = name
        self.traffic = traffic
        self._client = client
        self._inbox = inbox

    @property
    def is_alive(self) -> bool:
        """Return whether the connection is still open."""
        return not self.traffic.ended.is_set()

    async def list_everything(self) -> Catalogue:
        """Request all lists of the server, and return the lists as a catalogue.

        :raises RequestError: when the server does not answer.
        """
        client, can = self._client, self._client.server_capabilities
        prompts, resources, templates = list[object](), list[object](), list[object]()
        failed: list[str] = []
        nothing = _List([], None)
        tools = await self._pages("tools", client.list_tools) if can.tools else nothing
        if can.prompts:
            prompts = await self._extra("prompts", client.list_prompts, failed)
        if can.resources:
            listing, templated = client.list_resources, client.list_resource_templates
            resources = await self._extra("resources", listing, failed)
            templates = await self._extra("resourceTemplates", templated, failed)
        checked = read_tools(tools.items)
        info = client.server_info
        discovered = client.session.discover_result
        return Catalogue(
            listed_at=time.time(),
            version=client.protocol_version,
            discovered=discovered.model_dump(mode="json", by_alias=True) if discovered else None,
            server_name=info.name if info else "",
            server_version=info.version if info else "",
            instructions=clean_text(client.instructions or "", INSTRUCTION_BYTES)[0],
            tools=checked.tools,
            notes=(*checked.notes, *failed),
            prompts=read_prompts(prompts),
            resources=read_resources(resources),
            templates=read_resources(templates, "uriTemplate"),
            fresh_s=tools.lifetime_s,
        )

    async def _extra(
        self, key: str, fetch: Callable[..., Awaitable[Any]], failed: list[str]
    ) -> list[object]:
        """Return an optional list; after an error, an empty list, and add the error to `failed`."""
        try:
            return (await self._pages(key, fetch)).items
        except (ConnectionLostError, AuthorizationError):
            raise
        except RequestError as error:
            failed.append(str(error))
            return []

    async def _pages(self, key: str, fetch: Callable[..., Awaitable[Any]]) -> "_List":
        """Return the items of all pages of a list, with the cache time of the last page."""
        found, lifetime_s = list[object](), None
        cursor: str | None = None
        for _ in range(LIST_PAGES):
            page = await self._asked(fetch(cursor=cursor), what=f"list its {key}")
            raw, lifetime_s = (page.meta or {}).get(RAW, ([], None))
            found += raw
            before, cursor = cursor, page.next_cursor
            if not cursor or cursor == before or len(found) > LIST_TOOLS:
                break
        return _List(found, lifetime_s)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        digest: str = "",
        progress: ProgressFnT | None = None,
        ask_user: AskUser | None = None,
    ) -> types.CallToolResult:
        """Call a tool, and return its result; the server may ask the user questions meanwhile.

        `digest` identifies the tool definition that the caller used. If the server refuses the call
        because it has a newer definition, the tools are listed again. If the definition still has
        this digest, the call is repeated.

        :raises ConnectionLostError: when the connection ends first.
        :raises RequestError: when the server refuses the call.
        """

        async def send(
            answers: types.InputResponses | None, state: str | None
        ) -> types.CallToolResult | types.InputRequiredResult:
            params = types.CallToolRequestParams(
                name=tool,
                arguments=dict(arguments),
                input_responses=answers,
                request_state=state,
            )
            return await self._client.session.send_request(
                types.CallToolRequest(params=params),
                _CALL_RESULT,
                request_read_timeout_seconds=_NO_LIMIT_S,
                progress_callback=progress,
            )

        try:
            return await self._rounds(send, ask_user)
        except StaleDefinitionError:
            await self._check_definition(tool, digest)
            return await self._rounds(send, ask_user)

    async def _check_definition(self, tool: str, digest: str) -> None:
        """List the tools again, and check that the tool's definition still has this digest.

        The SDK needs the current definitions, because it builds headers from them.

        :raises RequestError: when the definition has changed.
        """
        known = await self.list_everything()
        if digest and digest not in {each.digest for each in known.tools if each.name == tool}:
            text = f"the tool {tool} of the MCP server {self.name} has changed since its review"
            raise RequestError(f"{text}; `pegboard mcp review {self.name}` shows how")

    async def prompt(
        self, name: str, arguments: Mapping[str, str], ask_user: AskUser | None = None
    ) -> types.GetPromptResult:
        """Return the messages of a prompt.

        :raises RequestError: when the server refuses the request.
        """

        async def send(
            answers: types.InputResponses | None, state: str | None
        ) -> types.GetPromptResult | types.InputRequiredResult:
            params = types.GetPromptRequestParams(
                name=name,
                arguments=dict(arguments),
                input_responses=answers,
                request_state=state,
            )
            request = types.GetPromptRequest(params=params)
            return await self._client.session.send_request(request, _PROMPT_RESULT)

        return await self._rounds(send, ask_user)

    async def read(self, uri: str, ask_user: AskUser | None = None) -> types.ReadResourceResult:
        """Return the content of a resource.

        :raises RequestError: when the server refuses the request.
        """

        async def send(
            answers: types.InputResponses | None, state: str | None
        ) -> types.ReadResourceResult | types.InputRequiredResult:
            params = types.ReadResourceRequestParams(
                uri=uri, input_responses=answers, request_state=state
            )
            request = types.ReadResourceRequest(params=params)
            return await self._client.session.send_request(request, _READ_RESULT)

        return await self._rounds(send, ask_user)

    async def _rounds(
        self,
        send: Callable[
            [types.InputResponses | None, str | None],
            Awaitable[_T | types.InputRequiredResult],
        ],
        ask_user: AskUser | None,
    ) -> _T:
        """Repeat a request with the user's answers until the result is final (SEP-2322)."""
        answers: types.InputResponses | None = None
        state: str | None = None
        for _ in range(ROUNDS + 1):
            sending = self._inbox.attend(send(answers, state), ask_user)
            result = await self._asked(sending, what="answer")
            if not isinstance(result, types.InputRequiredResult):
                return result
            state = result.request_state
            requests = result.input_requests or {}
            if len(requests) > QUESTIONS_PER_ROUND:
                text = (
                    f"asks {len(requests)} questions at once, and {QUESTIONS_PER_ROUND} are allowed"
                )
                raise RequestError(f"the MCP server {self.name} {text}")
            answers = {key: await self._input(each, ask_user) for key, each in requests.items()}
            if not answers:
                answers = None
                await asyncio.sleep(ROUND_PAUSE_S)
        raise RequestError(f"the MCP server {self.name} asked more than {ROUNDS} times in one call")

    async def _input(
        self, request: types.InputRequest, ask_user: AskUser | None
    ) -> types.InputResponse:
        if not isinstance(request, types.ElicitRequest):
            text = f"asks for {request.method}, which this client does not offer"
            raise RequestError(f"the MCP server {self.name} {text}")
        return await answer_elicitation(self.name, request.params, ask_user)

    async def _asked(self, request: Awaitable[_T], *, what: str) -> _T:
        """Await a request, and translate the SDK's errors into Pegboard's errors."""
        outcome = RequestOutcome()
        token = OUTCOME.set(outcome)
        try:
            return await request
        except MCPError as error:
            if error.code == types.HEADER_MISMATCH:
                raise StaleDefinitionError(str(error)) from error
            if not self.is_alive:
                raise self._lost(was_sent=outcome.was_sent) from error
            raise refusal(self.name, outcome, error, what=what) from error
        except ValidationError as error:
            text = f"the MCP server {self.name} answered with what the protocol does not have"
            raise RequestError(f"{text}: {error.errors()[0]['msg']}") from error
        except (OSError, RuntimeError) as error:
            if not self.is_alive:
                raise self._lost(was_sent=outcome.was_sent) from error
            raise RequestError(f"the MCP server {self.name} cannot {what}: {error}") from error
        finally:
            OUTCOME.reset(token)

    def _lost(self, *, was_sent: bool) -> ConnectionLostError:
        reason = self.traffic.reason or "ended"
        return ConnectionLostError(f"the MCP server {self.name} {reason}", was_sent=was_sent)


def refusal(
    name: str, outcome: RequestOutcome, error: Exception, what: str = "answer"
) -> RequestError:
    """Return the error to raise for a request that failed or got no answer."""
    if (lacking := lacking_authorization(error)) is not None:
        return lacking
    if outcome.is_unauthorized:
        text = f"the MCP server {name} wants you to sign in; `pegboard mcp auth {name}` does"
        return AuthorizationError(text)
    if outcome.missing_scope is not None:
        rights = f"the scope {outcome.missing_scope}" if outcome.missing_scope else "more rights"
        text = f"the MCP server {name} refuses the request, which needs {rights}"
        return AuthorizationError(f"{text}; `pegboard mcp auth {name}` asks you for it")
    reason = outcome.unreachable or reason_of(error)
    return RequestError(f"the MCP server {name} cannot {what}: {reason}")


@asynccontextmanager
async def connected(
    name: str,
    transport: Transport,
    traffic: Traffic,
    wishes: Wishes,
) -> AsyncIterator[ServerConnection]:
    """Connect to a server, complete the handshake, and yield the connection.

    :raises MCPError: when the server refuses the handshake.
    """
    inbox = Inbox(name)
    known = wishes.known

    async def notice(message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            wishes.on_change()

    client = Client(
        transport,
        mode=_mode(known),
        prior_discover=_discovered(known),
        read_timeout_seconds=wishes.answer_limit_s,
        client_info=types.Implementation(name="pegboard", version=__version__),
        elicitation_callback=inbox.put if wishes.can_ask else None,
        message_handler=notice,
        cache=None,
    )
    async with client:
        connection = ServerConnection(name, client, traffic, inbox)
        listening = asyncio.create_task(_listen(client, wishes.on_change))
        try:
            yield connection
        finally:
            listening.cancel()
            await asyncio.wait({listening})


def _mode(known: Catalogue | None) -> str:
    """Return the SDK's handshake mode: the last protocol version, `legacy` or `auto`."""
    if known is None or not known.version:
        return "auto"
    if known.version not in MODERN_PROTOCOL_VERSIONS:
        return "legacy"
    return known.version if known.discovered else "auto"


def _discovered(known: Catalogue | None) -> types.DiscoverResult | None:
    if known is None or known.discovered is None:
        return None
    try:
        return types.DiscoverResult.model_validate(known.discovered)
    except ValidationError:
        return None


async def _listen(client: Client, on_change: Callable[[], None]) -> None:
    """Subscribe to changes of the tool list and call `on_change` for each (protocol 2026-07-28)."""
    can = client.server_capabilities
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return
    if not (can.tools and can.tools.list_changed):
        return
    try:
        async with client.listen(tools_list_changed=True) as changes:
            async for _ in changes:
                on_change()
    except (MCPError, OSError, RuntimeError, TimeoutError):
        return  # the lists are asked for again when they are no longer fresh
