"""The lifetime of an MCP server: a call starts the server, and an idle server is stopped."""

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import Context
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from pegboard import Host, ToolError
from pegboard.budgets import Clock
from pegboard.errors import InvalidInputError
from pegboard.plugins import run_in_thread
from pegboard_mcp.catalogue import Catalogue, write_catalogue
from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.failure import (
    AuthorizationError,
    ConnectionLostError,
    RegistrationError,
    RequestError,
    lacking_authorization,
    reason_of,
)
from pegboard_mcp.files import ServerFiles
from pegboard_mcp.serverlog import ServerLog

if TYPE_CHECKING:
    from pegboard_mcp.connection import ServerConnection
    from pegboard_mcp.signin import SignIn

FIRST_WAIT_S = 0.5
MOST_WAIT_S = 30.0
FAILURES = 5
FAILURE_SPAN_S = 300.0
"""After so many failures within this time a server is started again only when a user asks."""
TIMEOUTS = 3
"""After so many calls in a row without an answer a server is ended."""
REFRESH_DELAY_S = 1.0
REFRESHES_PER_MINUTE = 6
END_LIMIT_S = 5.0
SECRET_LETTERS = 8
"""A shorter value of the environment or of a header is not taken out of logs."""
State = Literal[
    "idle", "starting", "running", "failed", "disabled", "needs_auth", "needs_registration"
]
_T = TypeVar("_T")


class Server:
    """One MCP server of an App; `on_listed` is called after the server's lists were read."""

    def __init__(
        self,
        config: ServerConfig,
        host: Host,
        files: ServerFiles,
        on_listed: Callable[["Server"], Awaitable[None]],
        known: Catalogue | None,
    ) -> None:
        self.config = config
        self.error = ""
        self.files = files
        self.catalogue = known
        self._host = host
        self._on_listed = on_listed
        secrets = (*config.environment.values(), *config.headers.values())
        self._log = ServerLog(files.log, [each for each in secrets if len(each) >= SECRET_LETTERS])
        self._ready: asyncio.Future[ServerConnection] | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()
        self._failed_at: list[float] = []
        self._failure: RequestError | None = None
        self._timeouts = 0
        self._users = 0
        self._used_at = time.monotonic()

    @property
    def state(self) -> State:
        """The state of the server, for display."""
        if not self.config.enabled:
            return "disabled"
        if self._owner is not None and not self._owner.done():
            ready = self._ready
            return "running" if ready is not None and ready.done() else "starting"
        match self._failure:
            case None:
                return "idle"
            case RegistrationError():
                return "needs_registration"
            case AuthorizationError():
                return "needs_auth"
            case _:
                return "failed"

    @property
    def _is_ending(self) -> bool:
        """Whether the server is stopping: still running, but no longer accepting requests."""
        if self._owner is None or self._owner.done() or self._ready is None:
            return False
        return self._ready.done() and (self._stop.is_set() or not _is_alive(self._ready))

    @property
    def is_missing(self) -> bool:
        """Whether the server is required but has not listed its tools yet, so that prompts wait."""
        return self.config.enabled and self.config.required and self.catalogue is None

    async def connect(self) -> None:
        """Start the server and read its lists, even after the server was disabled or has failed.

        :raises ToolError: when the server cannot be started.
        """
        self.config = msgspec.structs.replace(self.config, enabled=True)
        self._failed_at.clear()
        self._failure = None
        before = self.catalogue
        await self.request(_nothing)
        if self.catalogue is before:
            await self.request(self._list)

    async def begin_sign_in(self, secret: str | None) -> "SignIn":
        """Create a sign-in to the server; the caller runs the sign-in.

        :raises InvalidInputError: when the server is local, or its sign-in is disabled.
        """
        if not self.config.url or self.config.oauth is None:
            raise InvalidInputError(f"the MCP server {self.config.name} has no sign-in")
        opening = await _imported("pegboard_mcp.opening")
        opening.silence_sdk()
        signin = await _imported("pegboard_mcp.signin")
        found: SignIn = signin.SignIn(self.config, self.files.grants, secret)
        return found

    async def disconnect(self) -> None:
        """Disable and stop the server until the user connects to it again."""
        self.config = msgspec.structs.replace(self.config, enabled=False)
        await self.aclose()

    async def request(
        self,
        what: Callable[["ServerConnection"], Awaitable[_T]],
        *,
        can_ask: bool = False,
        limit_s: float | None = None,
    ) -> _T:
        """Call `what` with the connection and return its result; start the server if necessary.

        A request that was lost before it was sent is repeated once on a new connection.

        :raises ToolError: when the server cannot be started, ends, refuses or does not answer.
        """
        for is_last in (False, True):
            async with self._using(can_ask) as connection:
                try:
                    return await self._timed(what(connection), limit_s)
                except ConnectionLostError as error:
                    if error.was_sent or is_last:
                        text = f"{error} during the call, which may have had an effect"
                        raise ToolError(f"{text}. Its log: {self._log.path}") from error
                except RequestError as error:
                    raise ToolError(str(error)) from error
        raise AssertionError

    async def _timed(self, request: Awaitable[_T], limit_s: float | None) -> _T:
        """Await a request with a time limit that pauses while the user is asked."""
        limit_s = limit_s or self.config.call_timeout_s
        try:
            async with Clock.current().limit(limit_s):
                answer = await request
        except TimeoutError as error:
            self._timeouts += 1
            text = f"the MCP server {self.config.name} did not answer within {limit_s:g} s"
            if self._timeouts >= TIMEOUTS:
                self._stop.set()
                text = f"{text}, {TIMEOUTS} times in a row, and was ended"
            raise ToolError(f"{text}; `call_timeout_s` of the server is the limit") from error
        self._timeouts = 0
        return answer

    @asynccontextmanager
    async def _using(self, can_ask: bool) -> AsyncIterator["ServerConnection"]:  # noqa: FBT001 - inner
        self._users += 1
        try:
            yield await self._connection(can_ask=can_ask)
        finally:
            self._users -= 1
            self._used_at = time.monotonic()

    async def _connection(self, *, can_ask: bool) -> "ServerConnection":
        """Return the open connection to the server; start the server if necessary.

        :raises ToolError: when the server cannot be started, or failed a short while ago.
        """
        if not self.config.enabled:
            name = self.config.name
            raise ToolError(f"the MCP server {name} is off; `mcp.{name}.enabled` switches it on")
        while self._is_ending:
            await self._ended()
        ready = self._ready
        if ready is None or self._owner is None or self._owner.done():
            ready = self._start(can_ask=can_ask)
        try:
            return await asyncio.shield(ready)
        except RequestError as error:
            raise ToolError(str(error)) from error

    def _start(self, *, can_ask: bool) -> "asyncio.Future[ServerConnection]":
        if (wait_s := self.wait_s) > 0:
            text = f"the MCP server {self.config.name} has failed: {self.error}"
            if wait_s == float("inf"):
                raise ToolError(f"{text}; `pegboard mcp list --connect` starts it again")
            raise ToolError(f"{text}; it is started again in {wait_s:.1f} s at the earliest")
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()
        self._ready = ready = asyncio.get_running_loop().create_future()
        ready.add_done_callback(_retrieve)
        # A context of its own: the clock of the call that starts it must not time its life.
        self._owner = asyncio.get_running_loop().create_task(
            self._own(ready, can_ask=can_ask), name=f"mcp {self.config.name}", context=Context()
        )

        def fail(_: object) -> None:
            if not ready.done():  # it may have been cancelled before its first step
                ready.set_exception(RequestError(self._start_failure("it was ended")))

        self._owner.add_done_callback(fail)
        return ready

    async def _own(self, ready: "asyncio.Future[ServerConnection]", *, can_ask: bool) -> None:
        """Open and close the connection in one task, as the SDK requires; record any failure."""
        failure: RequestError | None = None
        began = time.monotonic()
        limit_s = self.config.connect_timeout_s
        try:
            async with asyncio.timeout(limit_s) as limit, self._opened(can_ask) as connection:
                if self.catalogue is None:
                    await self._list(connection)
                elif not self.catalogue.is_fresh():
                    self._changed.set()
                limit.reschedule(None)
                self.error, self._failure = "", None
                ready.set_result(connection)
                await self._serve(connection)
                reason = connection.traffic.reason
            if reason and not self._stop.is_set():
                failure = RequestError(f"the MCP server {self.config.name} {reason}")
        except TimeoutError:
            failure = RequestError(self._start_failure(f"it was silent for {limit_s:g} s"))
        except AuthorizationError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - the SDK's and the server's errors
            text = self._start_failure(reason_of(error))
            failure = lacking_authorization(error) or RequestError(text)
        finally:
            if failure is not None:
                self._note(failure, lived_s=time.monotonic() - began)
                if not ready.done():
                    ready.set_exception(failure)

    @asynccontextmanager
    async def _opened(self, can_ask: bool) -> AsyncIterator["ServerConnection"]:  # noqa: FBT001 - inner
        """Start the server, and yield the connection to the server."""
        opening = await _imported("pegboard_mcp.opening")
        connection = import_module("pegboard_mcp.connection")
        host = self._host
        env = {**await host.user_env(), **_passed(self.config.env)}
        ground = opening.Ground(
            *(host.in_sandbox, env, host.workspace.worktree, self._log.write, self.files.grants)
        )
        wishes = connection.Wishes(
            known=self.catalogue,
            can_ask=can_ask,
            answer_limit_s=self.config.connect_timeout_s,
            on_change=self._changed.set,
        )
        async with opening.opened(self.config, ground, wishes) as found:
            yield found

    async def _serve(self, connection: "ServerConnection") -> None:
        """Wait until the connection has ended, the server is idle, or a stop is requested."""
        refreshing = asyncio.create_task(self._refresh(connection))
        ends = [asyncio.create_task(each.wait()) for each in (self._stop, connection.traffic.ended)]
        try:
            while not any(each.done() for each in ends) and not refreshing.done():
                idle_s = time.monotonic() - self._used_at if not self._users else 0.0
                left_s = self.config.idle_s - idle_s
                if left_s <= 0 and self.config.start == "lazy":
                    self._stop.set()
                    return
                await asyncio.wait(
                    {*ends, refreshing},
                    timeout=max(left_s, 0.05) if self.config.start == "lazy" else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
        finally:
            for task in (*ends, refreshing):
                task.cancel()
            await asyncio.gather(*ends, refreshing, return_exceptions=True)

    async def _refresh(self, connection: "ServerConnection") -> None:
        """Read the server's lists again when the server reports a change, at a limited rate."""
        times = deque[float](maxlen=REFRESHES_PER_MINUTE)
        while True:
            await self._changed.wait()
            if len(times) == REFRESHES_PER_MINUTE:
                await asyncio.sleep(times[0] + 60 - time.monotonic())
            if times:
                await asyncio.sleep(REFRESH_DELAY_S)
            self._changed.clear()
            times.append(time.monotonic())
            try:
                async with asyncio.timeout(self.config.connect_timeout_s):
                    await self._list(connection)
            except (RequestError, TimeoutError) as error:
                self._log.write(f"[the lists cannot be refreshed: {error}]\n")

    async def _list(self, connection: "ServerConnection") -> None:
        self.catalogue = await connection.list_everything()
        try:
            await asyncio.to_thread(write_catalogue, self.files.catalogue, self.catalogue)
        except OSError as error:
            self._log.write(f"[the catalogue cannot be stored: {error}]\n")
        await self._on_listed(self)

    def _note(self, failure: RequestError, *, lived_s: float) -> None:
        if lived_s > FAILURE_SPAN_S:
            self._failed_at.clear()
        now = time.monotonic()
        self._failed_at = [*(at for at in self._failed_at if now - at < FAILURE_SPAN_S), now]
        self._failure, self.error = failure, str(failure)
        self._log.write(f"[{failure}]\n")

    @property
    def wait_s(self) -> float:
        """The seconds until the server may start again; infinity after too many failed starts."""
        count = len(self._failed_at)
        if count >= FAILURES:
            return float("inf")
        if not count:
            return 0.0
        wait_s = min(MOST_WAIT_S, FIRST_WAIT_S * float(2 ** (count - 1)))
        return self._failed_at[-1] + wait_s - time.monotonic()

    def _start_failure(self, reason: str) -> str:
        words = self._log.tail()
        tail = f" Its last words: {words}" if words else ""
        return f"the MCP server {self.config.name} did not start: {reason}.{tail}"

    async def rest(self) -> None:
        """Stop the server, unless a request is running."""
        if not self._users:
            await self.aclose()

    async def aclose(self) -> None:
        """Stop the server, and wait until the server has ended."""
        self._stop.set()
        await self._ended()

    async def _ended(self) -> None:
        owner = self._owner  # meanwhile another call may start the server again
        if owner is None or owner.done():
            return
        if self._ready is not None and not self._ready.done():
            owner.cancel()  # a start does not look at `_stop`
        await asyncio.wait({owner}, timeout=END_LIMIT_S)
        if not owner.done():
            owner.cancel()
            await asyncio.wait({owner})


async def _imported(name: str) -> Any:  # noqa: ANN401 - a module that imports the SDK
    """Import a module in a thread, because the SDK's import takes most of a second."""
    return await run_in_thread(partial(import_module, name), name="pegboard-mcp-import")


async def _nothing(_connection: object) -> None:
    """Do nothing; `connect` sends this request only to start the server."""


def _is_alive(ready: "asyncio.Future[ServerConnection]") -> bool:
    if ready.cancelled() or ready.exception() is not None:
        return False
    return ready.result().is_alive


def _retrieve(ready: "asyncio.Future[ServerConnection]") -> None:
    """Read the future's error, so that asyncio does not report the error as never retrieved."""
    if not ready.cancelled():
        ready.exception()


def _passed(names: tuple[str, ...]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}
