"""The OAuth sign-in to a remote server: client registration, the user's consent, and OAuth tokens.

A sign-in imports this module, because it imports the MCP SDK.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from pegboard.plugins import redact
from pegboard_mcp.configuration import OAuthConfig, ServerConfig
from pegboard_mcp.failure import AuthorizationError, RegistrationError
from pegboard_mcp.grants import Grant, GrantFile, joined_scopes
from pegboard_mcp.httpclient import LimitedClient
from pegboard_mcp.traffic import Traffic

CONSENT_LIMIT_S = 300.0
"""The longest time for the user in the browser."""
HOST = "127.0.0.1"
PATH = "/callback"
REQUEST_BYTES = 1 << 14
_UNAUTHORIZED = 401
VERSION = "2025-11-25"
_PAGE = "<!doctype html><title>Pegboard</title><p>{}</p>"
_PROBES: tuple[dict[str, object], ...] = (
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "pegboard", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
)
"""Requests until one is refused: some servers let in everyone, and refuse the first real one."""
Show = Callable[[str], Awaitable[None]]


class SignIn:
    """One sign-in to a remote server; `answer` receives the result from the browser."""

    def __init__(self, config: ServerConfig, file: GrantFile, secret: str | None) -> None:
        assert config.oauth is not None
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._config = config
        self._oauth: OAuthConfig = config.oauth
        self._file = file
        self._secret = secret
        self._result: asyncio.Future[AuthorizationCodeResult] = (
            asyncio.get_running_loop().create_future()
        )

    @property
    def state(self) -> str:
        """The OAuth `state` in the address that the user opens; "" before the address is known."""
        if not self.address.done():
            return ""
        return parse_qs(urlsplit(self.address.result()).query).get("state", [""])[0]

    def answer(self, code: str, state: str | None = None, issuer: str | None = None) -> None:
        """Accept the code, the state and the issuer from the browser's redirect."""
        if not self._result.done():
            result = AuthorizationCodeResult(code=code, state=state, iss=issuer)
            self._result.set_result(result)

    async def run(self, show: Show) -> None:
        """Run the sign-in, and store the grant; `show` displays the address for the user.

        :raises RegistrationError: when the issuer accepts no client.
        :raises AuthorizationError: when the sign-in fails, or takes too long.
        """
        listener = await self._listen()
        name = self._config.name
        try:
            async with asyncio.timeout(CONSENT_LIMIT_S):
                await self._ask(listener.sockets[0].getsockname()[1], show)
        except OAuthRegistrationError as error:
            text = f"the authorization server of {name} takes no new client: {_safe(error)}"
            raise RegistrationError(f"{text}; set `mcp.{name}.oauth.client_id`") from error
        except TimeoutError as error:
            text = f"the sign-in to {name} took more than {CONSENT_LIMIT_S:g} s"
            raise AuthorizationError(f"{text}; `pegboard mcp auth {name}` begins again") from error
        except (OAuthFlowError, httpx2.HTTPError, ValueError) as error:
            raise AuthorizationError(f"the sign-in to {name} failed: {_safe(error)}") from error
        finally:
            listener.close()

    async def _ask(self, port: int, show: Show) -> None:
        async def redirect(address: str) -> None:
            storage.choose_method()
            if not self.address.done():
                self.address.set_result(address)
            await show(address)

        async def callback() -> AuthorizationCodeResult:
            return await self._result

        redirect_uri = f"http://{HOST}:{port}{PATH}"
        storage = _Storage(self._config, self._file, self._secret, redirect_uri)
        wants_document = self._oauth.client_registration != "dcr"
        scope = self._scope()

        async def choose_scope(response: httpx2.Response) -> None:
            """Make the SDK request the scope `scope` instead of the server's suggestion."""
            if scope and response.status_code == _UNAUTHORIZED:
                challenge = response.headers.get("WWW-Authenticate", "")
                response.headers["WWW-Authenticate"] = f'Bearer scope="{scope}", {challenge}'

        provider = OAuthClientProvider(
            self._config.url,
            OAuthClientMetadata(
                client_name=self._oauth.client_name,
                redirect_uris=[AnyUrl(redirect_uri)],
            ),
            storage,
            redirect_handler=redirect,
            callback_handler=callback,
            client_metadata_url=(self._oauth.client_metadata_url or None)
            if wants_document
            else None,
        )
        storage.provider = provider
        client = LimitedClient(self._config.url, Traffic(lambda _: None), provider)
        client.event_hooks["response"].append(choose_scope)
        async with client:
            await self._probe(client, storage)

    async def _probe(self, client: httpx2.AsyncClient, storage: "_Storage") -> None:
        """Send requests until the server demands a sign-in, which the SDK then carries out.

        :raises AuthorizationError: when the server demands no sign-in.
        """
        headers = {
            **self._config.headers,
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
        }
        status = 0
        for probe in _PROBES:
            async with client.stream(
                "POST", self._config.url, json=probe, headers=headers
            ) as response:
                status = response.status_code
            if storage.has_tokens:
                return
            if (session_id := response.headers.get("mcp-session-id")) is not None:
                headers["Mcp-Session-Id"] = session_id
        text = f"the MCP server {self._config.name} did not ask for a sign-in"
        raise AuthorizationError(f"{text}; it answered with the status {status}")

    def _scope(self) -> str:
        """Return the OAuth scope to request, with scopes that an earlier call needed, or ""."""
        grant = self._file.read().grant
        wider = grant.wider_scope if grant is not None else ""
        return joined_scopes(self._oauth.scope, wider)

    async def _listen(self) -> asyncio.Server:
        """Listen for the browser's redirect, on the port that the redirect address has."""
        ports = (self._oauth.callback_port, _registered_port(self._file.read().grant), 0)
        for port in ports if not ports[0] else ports[:1]:
            with suppress(OSError):
                return await asyncio.start_server(self._serve, HOST, port, limit=REQUEST_BYTES)
        name = self._config.name
        text = f"the port {ports[0]} for the sign-in to {name} is in use"
        raise AuthorizationError(f"{text}; `mcp.{name}.oauth.callback_port` chooses another")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle the browser's redirect; the response page tells the user to close the page."""
        with suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n")
                target = urlsplit(head.split(b" ")[1].decode("ascii"))
                words = {key: each[0] for key, each in parse_qs(target.query).items()}
                is_ours = target.path == PATH and words.get("state") == self.state
                text = "You can close this page." if is_ours else "This page has nothing to show."
                status = "200 OK" if is_ours else "404 Not Found"
                page = _PAGE.format(text).encode()
                lines = (
                    f"HTTP/1.1 {status}",
                    "Content-Type: text/html; charset=utf-8",
                    f"Content-Length: {len(page)}",
                    "Connection: close",
                )
                writer.write("\r\n".join((*lines, "", "")).encode() + page)
                await writer.drain()
                if is_ours and "code" in words:
                    self.answer(words["code"], words["state"], words.get("iss"))
                elif is_ours and not self._result.done():
                    reason = words.get("error_description") or words.get("error") or "no code came"
                    self._result.set_exception(OAuthFlowError(reason[:200]))
        writer.close()


class _Storage:
    """The store of OAuth clients and tokens for the SDK; it binds each value to its issuer."""

    def __init__(
        self, config: ServerConfig, file: GrantFile, secret: str | None, redirect_uri: str
    ) -> None:
        self.provider: OAuthClientProvider | None = None
        self.has_tokens = False
        self._config = config
        self._file = file
        self._secret = secret
        self._redirect_uri = redirect_uri

    async def get_tokens(self) -> OAuthToken | None:
        """Return None, so that the SDK does not reuse tokens but lets the user sign in."""
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client in the user's settings, or else the client from a past registration."""
        grant = self._file.read().grant
        oauth = self._config.oauth
        if oauth is not None and oauth.client_id:
            return OAuthClientInformationFull(
                client_id=oauth.client_id,
                client_secret=self._secret,
                redirect_uris=[AnyUrl(self._redirect_uri)],
                token_endpoint_auth_method="client_secret_post" if self._secret else "none",
                issuer=grant.issuer if grant is not None else None,
            )
        if grant is None or self._redirect_uri not in grant.client.get("redirect_uris", ()):
            return None
        return OAuthClientInformationFull.model_validate(grant.client)

    def choose_method(self) -> None:
        """Choose a way to send the client secret that the OAuth server supports (RFC 8414 §2)."""
        assert self.provider is not None
        context = self.provider.context
        if self._secret is None or context.client_info is None:
            return
        metadata = context.oauth_metadata
        methods = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
        is_basic = "client_secret_basic" in (methods or ("client_secret_basic",))
        method = "client_secret_basic" if is_basic else "client_secret_post"
        context.client_info.token_endpoint_auth_method = method

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store a registered client, or a client that is identified by a metadata document."""
        oauth = self._config.oauth
        name = self._config.name
        if oauth is not None and oauth.client_id:
            text = f"the MCP server {name} has another authorization server than before"
            advice = f"`pegboard mcp logout {name}` forgets the old one"
            raise OAuthRegistrationError(f"{text}, for which `client_id` was not given; {advice}")
        is_document = oauth is not None and client_info.client_id == oauth.client_metadata_url
        if oauth is not None and oauth.client_registration == "cimd" and not is_document:
            raise OAuthRegistrationError("it does not take a client by a metadata document")
        self._file.store(
            Grant(
                issuer=client_info.issuer or self._issuer(),
                client=client_info.model_dump(mode="json", exclude_none=True),
            )
        )

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the tokens as a grant, with the client and the issuer's metadata."""
        assert self.provider is not None
        context = self.provider.context
        client = context.client_info
        metadata = context.oauth_metadata
        self.has_tokens = True
        self._file.store(
            Grant(
                issuer=self._issuer(),
                client=client.model_dump(mode="json", exclude_none=True) if client else {},
                tokens=tokens.model_dump(mode="json", exclude_none=True),
                expires_at=time.time() + tokens.expires_in if tokens.expires_in else None,
                metadata=metadata.model_dump(mode="json", exclude_none=True) if metadata else {},
            )
        )

    def _issuer(self) -> str:
        """Return the issuer in the OAuth metadata, or else the server's origin (MCP 2025-03-26)."""
        assert self.provider is not None
        metadata = self.provider.context.oauth_metadata
        if metadata is not None:
            return str(metadata.issuer)
        parts = urlsplit(self._config.url)
        return f"{parts.scheme}://{parts.netloc}"


def _registered_port(grant: Grant | None) -> int:
    uris = grant.client.get("redirect_uris") if grant is not None else None
    return urlsplit(str(uris[0])).port or 0 if uris else 0


def _safe(error: Exception) -> str:
    return redact(str(error))[:300]
