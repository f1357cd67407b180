"""The methods of the Agent Client Protocol (ACP) that editors call."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from pegboard import App, PegboardError, __version__
from pegboard.errors import InvalidInputError, NotFoundError
from pegboard.schema.session import Session
from pegboard_acp.editorsession import EditorSession
from pegboard_acp.jsonrpc import ErrorCode, RpcError, RPCResult
from pegboard_acp.link import Link
from pegboard_acp.openapps import OpenApps
from pegboard_acp.protocol import (
    VERSION,
    ClientCapabilities,
    InitializeParams,
    ListParams,
    ModeParams,
    OpenParams,
    OptionParams,
    PromptParams,
    SessionParams,
)
from pegboard_acp.toolservers import add_servers, has_client
from pegboard_acp.updates import SessionEntry, Sessions
from pegboard_plugins.shared.frontend import forked, require_folder, settings_warnings

PAGE = 100
"""Sessions in one answer of `session/list`."""
LOGIN_OPTION = "--login"
_NO_SIGN_IN = "Pegboard needs no sign-in: `pegboard auth login PROVIDER` stores a provider's key"


class EditorAgent:
    """The ACP methods for one editor; `directory` is where the process was started."""

    def __init__(self, apps: OpenApps, link: Link, directory: Path) -> None:
        self._apps = apps
        self._link = link
        self._directory = directory
        self._sessions: dict[str, EditorSession] = {}
        self._opening = asyncio.Lock()
        self._methods: dict[str, tuple[type[Any], Callable[[Any], Awaitable[RPCResult]]]] = {
            "initialize": (InitializeParams, self._initialize),
            "authenticate": (dict, self._refuse_sign_in),
            "logout": (dict, self._refuse_sign_in),
            "session/new": (OpenParams, self._new),
            "session/load": (OpenParams, self._load),
            "session/resume": (OpenParams, self._resume),
            "session/fork": (OpenParams, self._fork),
            "session/list": (ListParams, self._list),
            "session/close": (SessionParams, self._close),
            "session/delete": (SessionParams, self._delete),
            "session/prompt": (PromptParams, self._prompt),
            "session/cancel": (SessionParams, self._cancel),
            "session/set_mode": (ModeParams, self._set_mode),
            "session/set_config_option": (OptionParams, self._set_option),
        }

    async def handle(self, method: str, params: Raw) -> RPCResult:
        """Answer a request of the editor by its method name.

        :raises RpcError: when the request fails.
        """
        if method not in self._methods:
            raise RpcError(ErrorCode.METHOD_NOT_FOUND, f"{method}: Pegboard has no such method")
        params_type, answer = self._methods[method]
        try:
            return await answer(msgspec.json.decode(params, type=params_type))
        except msgspec.MsgspecError as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, f"{method}: {error}") from error
        except NotFoundError as error:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, str(error)) from error
        except InvalidInputError as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, str(error)) from error
        except PegboardError as error:
            name = {"error": type(error).__name__}
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error), name) from error

    async def aclose(self) -> None:
        """Close all sessions and their Apps."""
        closing = [session.aclose() for session in self._sessions.values()]
        self._sessions.clear()
        await asyncio.gather(*closing)

    async def _initialize(self, params: InitializeParams) -> RPCResult:
        client = self._link.client = params.client_capabilities or ClientCapabilities()
        terminal = {
            "id": "pegboard-auth",
            "name": "Store a provider's key",
            "description": "Asks for the key of a provider in a terminal",
            "type": "terminal",
            "args": [LOGIN_OPTION],
        }
        return RPCResult(
            {
                "protocolVersion": VERSION,
                "agentInfo": {"name": "pegboard", "title": "Pegboard", "version": __version__},
                "authMethods": [terminal] if client.opens_terminals_to_sign_in else [],
                "agentCapabilities": {
                    "loadSession": True,
                    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                    "mcpCapabilities": {"http": has_client(), "sse": False},
                    "sessionCapabilities": {
                        name: {} for name in ("list", "delete", "resume", "close", "fork")
                    },
                },
            }
        )

    async def _refuse_sign_in(self, _: object) -> RPCResult:
        raise RpcError(ErrorCode.INVALID_REQUEST, _NO_SIGN_IN)

    async def _new(self, params: OpenParams) -> RPCResult:
        async def made(app: App) -> Session:
            return await app.create_session()

        session = await self._open(params, made)
        return await self._opened(session, params, is_new=True)

    async def _load(self, params: OpenParams) -> RPCResult:
        session = await self._open(params, self._finder(params))
        await session.replay()
        return await self._opened(session, params, is_new=False)

    async def _resume(self, params: OpenParams) -> RPCResult:
        session = await self._open(params, self._finder(params))
        return await self._opened(session, params, is_new=False)

    async def _fork(self, params: OpenParams) -> RPCResult:
        async def copied(app: App) -> Session:
            return await forked(app, params.session_id)

        session = await self._open(params, copied)
        return await self._opened(session, params, is_new=True)

    def _finder(self, params: OpenParams) -> Callable[[App], Awaitable[Session]]:
        async def found(app: App) -> Session:
            session = await app.session(params.session_id)
            require_folder(session, app.workspace.directory)
            return session

        return found

    async def _open(
        self, params: OpenParams, find: Callable[[App], Awaitable[Session]]
    ) -> EditorSession:
        """Return an open session, with the App of its folder.

        :raises InvalidInputError: when the folder does not exist, or is not the session's.
        """
        if not params.cwd.startswith("/"):
            raise InvalidInputError(f"cwd {params.cwd!r} is not an absolute path")
        async with AsyncExitStack() as leaving, self._opening:
            app = await leaving.enter_async_context(self._apps.using(Path(params.cwd)))
            session = await find(app)
            known = self._sessions.get(session.id)
            if known is None:
                known = EditorSession(app, session, self._link, leaving.pop_all())
                self._sessions[session.id] = known
            return known

    async def _opened(
        self, session: EditorSession, params: OpenParams, *, is_new: bool
    ) -> RPCResult:
        """Return the answer to a request to open a session; then send commands and warnings."""
        left_out = await add_servers(session.app, params.mcp_servers or ())

        async def then() -> None:
            await session.send_commands()
            for warning in (*_warnings(session.app, params), *left_out):
                await self._link.warn(session.id, warning)

        return RPCResult(await session.state(is_new=is_new), then)

    async def _list(self, params: ListParams) -> RPCResult:
        directory = Path(params.cwd) if params.cwd else self._directory
        async with self._apps.using(directory) as app:
            found = await app.storage.sessions(
                app.workspace.project_id,
                roots=True,
                directory=str(app.workspace.directory) if params.cwd else None,
            )
        ids = [each.id for each in found]
        if params.cursor is not None and params.cursor not in ids:
            raise InvalidInputError(f"cursor {params.cursor!r} is that of no session")
        start = ids.index(params.cursor) + 1 if params.cursor is not None else 0
        page = found[start : start + PAGE]
        more = start + PAGE < len(found)
        return RPCResult(
            Sessions(sessions=tuple(map(_entry, page)), next_cursor=page[-1].id if more else None)
        )

    async def _close(self, params: SessionParams) -> RPCResult:
        await self._session(params).aclose()
        del self._sessions[params.session_id]
        return RPCResult({})

    async def _delete(self, params: SessionParams) -> RPCResult:
        """Delete a session; a session that does not exist counts as deleted."""
        open_session = self._sessions.pop(params.session_id, None)
        if open_session is not None:
            await open_session.cancel()
        directory = open_session.app.workspace.directory if open_session else self._directory
        async with self._apps.using(directory) as app:
            if open_session is not None:
                await open_session.aclose()
            try:
                await app.delete_session(params.session_id)
            except NotFoundError:
                return RPCResult({})
        return RPCResult({})

    async def _prompt(self, params: PromptParams) -> RPCResult:
        return RPCResult(await self._session(params).prompt(params.prompt))

    async def _cancel(self, params: SessionParams) -> RPCResult:
        await self._session(params).cancel()
        return RPCResult({})

    async def _set_mode(self, params: ModeParams) -> RPCResult:
        session = self._session(params)
        session.choices.choose_agent(params.mode_id)
        return RPCResult({}, session.send_options)

    async def _set_option(self, params: OptionParams) -> RPCResult:
        session = self._session(params)
        await session.choices.choose(params.config_id, params.value)
        return RPCResult({"configOptions": await session.choices.options()})

    def _session(self, params: SessionParams) -> EditorSession:
        if (found := self._sessions.get(params.session_id)) is None:
            raise NotFoundError("open session", params.session_id)
        return found


def _warnings(app: App, params: OpenParams) -> tuple[str, ...]:
    """Return warnings about the project and about parameters that Pegboard cannot follow."""
    found = [*app.storage.warnings, *settings_warnings(app)]
    if app.untrusted:
        names = ", ".join(str(path) for path in app.untrusted)
        text = f"not loaded, because this project is not trusted: {names}"
        found.append(f"{text}; `pegboard trust` in its folder shows and trusts them")
    if params.additional_directories:
        folders = ", ".join(params.additional_directories)
        found.append(f"Pegboard works in one folder, without {folders}")
    return tuple(found)


def _entry(session: Session) -> SessionEntry:
    at = datetime.fromtimestamp(session.time.updated / 1000, UTC)
    return SessionEntry(
        session_id=session.id,
        cwd=session.directory,
        title=session.title,
        updated_at=at.isoformat(),
    )
