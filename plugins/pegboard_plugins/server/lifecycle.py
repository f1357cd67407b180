"""The lifecycle of a server: its socket, its runtime file, its start and its end."""

import asyncio
import errno
import logging
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from pegboard import AppOptions, InvalidInputError
from pegboard.app import UserFolders
from pegboard.http import is_loopback
from pegboard_plugins.server import FleetServer
from pegboard_plugins.server.auth import Credentials, credentials_from
from pegboard_plugins.server.browserdoor import BrowserDoor
from pegboard_plugins.server.connection import (
    ACCEPTED_AT_ONCE,
    AcceptFailures,
    BoundedProtocol,
)
from pegboard_plugins.server.factory import add_plugin_routes, application, forwarding
from pegboard_plugins.server.feed import EventFeed
from pegboard_plugins.server.fleet import token_of
from pegboard_plugins.server.guard import AccessPolicy, Guard
from pegboard_plugins.server.joining import join
from pegboard_plugins.server.pool import Pool
from pegboard_plugins.server.resuming import resume_all
from pegboard_plugins.server.running import RunningSessions
from pegboard_plugins.server.runtimefile import RuntimeFile, write_runtime_file
from pegboard_plugins.server.serverstate import ServerState
from pegboard_plugins.server.terminals import Terminals
from pegboard_plugins.shared.frontend import KeyFile
from pegboard_plugins.shared.terminal import end_within, on_hangup

STOP_WITHIN_S = 4
"""What a stop gives to requests that are being answered."""
TURNS_END_WITHIN_S = 3.0
"""What it gives to turns; those that run on are stopped, so that their requests are answered."""
END_WITHIN_S = 15.0
"""What the end may take in all, with plugins and threads that hang."""
BACKLOG = 512
"""Connections that may wait to be accepted."""
UNHEARD_MS = 20_000
"""A client is gone when it takes nothing for this long, be it a heartbeat: a machine that is
switched off does not say so, and a connection to it would stay for a quarter of an hour."""
LONGEST_TYPED_BYTES = 1 << 20
"""The largest message to a terminal in bytes: the size of a large paste."""
LOGGERS = ("pegboard.server", "pegboard.client", "pegboard.credentials", "uvicorn.error")
_PLAIN_HTTP = 80
_ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared only
_WAYS_OUT = {
    errno.EADDRINUSE: "--port 0 takes a free one",
    errno.EADDRNOTAVAIL: "--hostname is an address of this machine",
    errno.EACCES: "a port above 1023 is open to everybody",
}
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s*]+")
_log = logging.getLogger("pegboard.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of a server: its address, its clients, and its default directory.

    `known_hosts` are other names of the server, `origins` the sites that may use it. `secret` is
    the secret of the fleet that the server joins.
    """

    directory: Path
    options: AppOptions
    host: str = "127.0.0.1"
    port: int = 4096
    known_hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    is_open: bool = False
    secret: bytes | None = None


async def serve(
    settings: ServerSettings, env: Mapping[str, str], ready: Callable[[str], None]
) -> None:
    """Serve until a signal arrives; `ready` gets the server's URL once requests are accepted.

    :raises InvalidInputError: when the address cannot be used, or not with these settings.
    """
    credentials = credentials_from(env, is_open=settings.is_open)
    _check(settings, credentials)
    if credentials.token is None:
        _log.warning("no password: every program on this machine can use this server")
    with listening(settings) as listener:
        port = listener.getsockname()[1]
        url = _url(settings.host, port)
        places = _places(settings, env)
        state = _state(settings, places, port)
        own = FleetServer(
            id=secrets.token_hex(8), host=socket.gethostname(), url=fleet_url(settings, port)
        )
        if settings.secret is not None:
            credentials = replace(credentials, fleet=token_of(settings.secret, own.id))
        policy = AccessPolicy(
            credentials=credentials,
            hosts=hosts_of(settings, port),
            origins=frozenset(settings.origins),
            admits=state.terminals.admits,
            door=state.door,
            public=state.public,
        )
        facts = {
            "url": _url(listener.getsockname()[0], port) if is_loopback(settings.host) else url,
            "pid": os.getpid(),
            "directory": str(settings.directory),
            "token": credentials.token,
        }
        file = places.state / f"server-{port}.json"

        async def announce() -> RuntimeFile:
            written = await asyncio.to_thread(_write_runtime_file, file, facts)
            _log.info("serving %s; the token is in %s; Ctrl-C stops", settings.directory, file)
            ready(url)
            return written

        async def prepare() -> None:
            if settings.secret is not None:
                await join(state, own, settings.secret)

        await _run(state, policy, listener, prepare, announce)


async def _run(
    state: ServerState,
    policy: AccessPolicy,
    listener: socket.socket,
    prepare: Callable[[], Awaitable[None]],
    announce: Callable[[], Awaitable[RuntimeFile]],
) -> None:
    app = application(state)
    asyncio.get_running_loop().set_exception_handler(AcceptFailures())
    server = _Server(config_of(Guard(forwarding(app, state), policy)), state, announce)
    sweeping = asyncio.create_task(state.pool.sweep(), name="sweep")
    try:
        await add_plugin_routes(app, state)
        await prepare()
        state.start(resume_all(state), "resume sessions")
        await server.serve(sockets=[listener])
    finally:
        server.remove_runtime_file()
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)
        await state.aclose()


def config_of(app: ASGIApp) -> uvicorn.Config:
    """Return the settings of uvicorn for a server."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="websockets-sansio",
        ws_max_size=LONGEST_TYPED_BYTES,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )


class _Server(uvicorn.Server):
    """uvicorn's server; it also reports when it is ready, and closes event streams at its stop."""

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        announce: Callable[[], Awaitable[RuntimeFile]],
    ) -> None:
        super().__init__(config)
        self._state = state
        self._announce = announce
        self._runtime_file: RuntimeFile | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then report that the server is ready."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)
        self._runtime_file = await self._announce()  # who reads it finds an open port

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop the server at a signal; unlike uvicorn, do not raise the signal again afterwards."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        hang_up = partial(self.handle_exit, signal.SIGHUP, None)
        for each in signals:
            loop.add_signal_handler(each, self.handle_exit, each, None)
        try:
            with on_hangup(partial(loop.call_soon_threadsafe, hang_up)):
                yield
        finally:
            for each in signals:
                loop.remove_signal_handler(each)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more requests, and end the running turns."""
        stopping = asyncio.create_task(self._stop_turns(), name="stop turns")
        try:
            await super().shutdown(sockets)
        finally:
            stopping.cancel()
            await asyncio.gather(stopping, return_exceptions=True)

    async def _stop_turns(self) -> None:
        await asyncio.sleep(TURNS_END_WITHIN_S)
        await self._state.pool.abort_all()

    def remove_runtime_file(self) -> None:
        """Remove the file that announces this server, if it exists."""
        if self._runtime_file is not None:
            self._runtime_file.remove()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop the server at a signal: end event streams, and release the port early."""
        _log.info("stopping; what runs has %.0f s to end", TURNS_END_WITHIN_S)
        self.remove_runtime_file()
        self._state.feed.close()
        self._state.running.end()
        self._state.orders.close()
        end_within(END_WITHIN_S, _log)
        super().handle_exit(sig, frame)


def _write_runtime_file(file: Path, facts: Mapping[str, object]) -> RuntimeFile:
    try:
        return write_runtime_file(file, facts)
    except OSError as error:
        raise InvalidInputError(
            f"cannot write {file}, without which no client finds the server: "
            f"{error.strerror or error}; PEGBOARD_STATE_DIR names another folder"
        ) from error


def _state(settings: ServerSettings, places: UserFolders, port: int) -> ServerState:
    feed, running = EventFeed(), RunningSessions(places.state / "running")
    return ServerState(
        directory=settings.directory,
        pool=Pool(lambda: settings.options, feed, running),
        feed=feed,
        running=running,
        terminals=Terminals(feed),
        keys=KeyFile(places.keys),
        places=places,
        door=BrowserDoor(port),
    )


def _places(settings: ServerSettings, env: Mapping[str, str]) -> UserFolders:
    options = settings.options
    return UserFolders.of(
        env,
        config=options.config_dir,
        data=options.data_dir,
        state=options.state_dir,
        cache=options.cache_dir,
    )


def _check(settings: ServerSettings, credentials: Credentials) -> None:
    for origin in settings.origins:
        if not _ORIGIN.fullmatch(origin):
            raise InvalidInputError(
                f"--cors {origin}: name each site like https://example.org:8000, without a path"
            )
    if not settings.host:
        raise InvalidInputError("--hostname is empty: name the address to listen on")
    if is_loopback(settings.host):
        return
    if credentials.token is None:
        raise InvalidInputError(f"{settings.host} is not this machine alone: it needs a password")
    if credentials.password is None:
        raise InvalidInputError(
            f"{settings.host} is not this machine alone: set PEGBOARD_SERVER_PASSWORD first"
        )


def hosts_of(settings: ServerSettings, port: int) -> frozenset[str]:
    """Return the allowed values of a `Host` header."""
    own = ["127.0.0.1", "localhost", "[::1]"] if is_loopback(settings.host) else []
    names = {*own, _in_url(settings.host), *settings.known_hosts}
    with_port = {f"{name.lower()}:{port}" for name in names if ":" not in name.strip("[]")}
    with_port |= {f"{name.lower()}:{port}" for name in names if name.startswith("[")}
    as_given = {name.lower() for name in settings.known_hosts}
    return frozenset(with_port | as_given | (names if port == _PLAIN_HTTP else set()))


def fleet_url(settings: ServerSettings, port: int) -> str:
    """Return the address of this server for the other servers of its fleet.

    :raises InvalidInputError: when the settings name no address that other machines can reach.
    """
    if settings.secret is None or settings.host not in _ALL_ADDRESSES:
        return _url(settings.host, port)
    if not settings.known_hosts:
        raise InvalidInputError(
            f"--fleet: {settings.host} is no address that other servers reach; name this machine "
            "with --hostname or --allow-host"
        )
    name = settings.known_hosts[0]
    return f"http://{name}" if ":" in name.strip("[]") else _url(name, port)


def _url(host: str, port: int) -> str:
    return f"http://{_in_url(host)}:{port}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def listening(settings: ServerSettings) -> socket.socket:
    """Return the socket on which the server listens.

    :raises InvalidInputError: when the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With its protocol named: asyncio sends small answers at once for such sockets only.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections take it over from here
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_MS)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        where = f"{_in_url(settings.host)}:{settings.port}"
        way_out = _WAYS_OUT.get(error.errno or 0, "--hostname and --port say where")
        raise InvalidInputError(
            f"cannot listen on {where}: {error.strerror or error}; {way_out}"
        ) from error
    return listener


class _Line(logging.Formatter):
    """A log formatter that writes one line per record, even if a request or file name has newlines.

    The lines of an error's traceback are indented.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return _spelt_out(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802, ANN401 - as logging has it
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"  {_spelt_out(line)}" for line in lines)


def _spelt_out(line: str) -> str:
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in line
    )


def _is_cancelled(record: logging.LogRecord) -> bool:
    """Return whether a log record is about a request that the server's stop has cancelled."""
    return record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)


def log_to_stderr(*, is_quiet: bool) -> None:
    """Log one line per event to stderr; if `is_quiet`, only errors.

    The warnings of uvicorn about invalid requests are dropped: a stranger could fill a disk with
    them.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line("%(asctime)s %(levelname)s %(name)s %(message)s"))
    handler.addFilter(lambda record: not _is_cancelled(record))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING if is_quiet else logging.INFO)
        logger.propagate = False
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
