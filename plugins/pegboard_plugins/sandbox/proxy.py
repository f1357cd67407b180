"""An HTTP proxy: the only access to the network for processes with a list of hosts.

It listens on a socket in the file system, which a sandbox makes available inside. It resolves only
listed names, and connects to exactly the address that it has checked. This must be a public
address, unless the list has the address itself. The content of a tunnel is not inspected.
"""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from pegboard.unstable import Threads, host_pattern, is_literal, is_public_address
from pegboard_plugins.sandbox.flow import Carrying, Stream
from pegboard_plugins.sandbox.proxyrequest import (
    HEAD_LIMIT_BYTES,
    Request,
    RequestRefusedError,
    read_request,
)

KEY = "sandbox_network"
"""The setting with the list of hosts."""
MOST_CONNECTIONS = 64
HEAD_S = 10.0
LOOKUP_S = 20.0
CONNECT_S = 10.0
IDLE_S = 600.0
MOST_ADDRESSES = 3
"""How many of a host's addresses are tried."""
_SOCKETS = Path("/tmp")  # noqa: S108 - the folder in it is the user's; sandboxes have their own
_HAND_OVER_TURNS = 2
"""Turns of the loop in which asyncio makes a transport for a connection, and passes it on."""
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name, in the order to try them; OSError without any."""


class FilteringProxy:
    """A proxy that forwards HTTP and tunnels to listed hosts only; `open` starts the proxy."""

    def __init__(
        self,
        hosts: Sequence[str],
        *,
        resolve: Resolve | None = None,
        idle_s: float = IDLE_S,
        head_s: float = HEAD_S,
    ) -> None:
        """Create the proxy; `resolve` replaces the system's name lookup.

        `idle_s` limits the time without traffic, and `head_s` the time for a request's head.

        :raises ConfigError: when an entry of `hosts` is not a valid host.
        """
        self._hosts = [host_pattern(each) for each in hosts]
        self._threads = Threads("pegboard-lookup")
        self._resolve = resolve or self._looked_up
        self._idle_s = idle_s
        self._head_s = head_s
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._folder: Path | None = None

    async def open(self) -> Path:
        """Listen on a socket that only the user may connect to; return the socket's path."""
        self._folder = await asyncio.to_thread(_private_folder)
        path = self._folder / "s"
        self._server = await asyncio.start_unix_server(
            self._accept, path, limit=HEAD_LIMIT_BYTES, backlog=MOST_CONNECTIONS
        )
        path.chmod(0o600)
        return path

    async def aclose(self) -> None:
        """End every connection, even one just accepted, and remove the proxy's socket."""
        if self._server is not None:
            await _close(self._server)
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)  # each ends at its next await
        self._threads.close()
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= MOST_CONNECTIONS:
            writer.write(_refusal(503, f"more than {MOST_CONNECTIONS} connections at once"))
            writer.close()
            return
        near = Stream(reader, writer)
        task = asyncio.create_task(self._serve(near), name="proxy")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        task.add_done_callback(lambda _: near.cut())  # a task that never began closes nothing

    async def _serve(self, near: Stream) -> None:
        try:
            await self._carry_out(near)
        except RequestRefusedError as error:
            near.writer.write(_refusal(error.status, str(error)))
        except OSError:
            pass  # who called is gone
        finally:
            await near.close()

    async def _carry_out(self, near: Stream) -> None:
        try:
            async with asyncio.timeout(self._head_s):
                request = await read_request(near.reader)
        except TimeoutError as error:
            raise RequestRefusedError(408, f"no request within {self._head_s:g} s") from error
        if request is None:
            return
        far = await self._reached(request)
        try:
            carrying = Carrying(near, far, idle_s=self._idle_s)
            if request.head is None:
                near.writer.write(_ESTABLISHED)
                await carrying.tunnel()
            else:
                far.writer.write(request.head)
                await carrying.exchange(request.body)
        finally:
            await far.close()

    async def _reached(self, request: Request) -> Stream:
        """Connect to the request's target at a checked address.

        :raises RefusedError: when the target is not allowed, or cannot be reached.
        """
        host, port = request.host, request.port
        place = f"{host}:{port}" if ":" not in host else f"[{host}]:{port}"
        if not self._allows(host, port):
            raise RequestRefusedError(
                403, f"{place} is not in {KEY}; the user can add it to the list"
            )
        failure = "no address"
        for address in (await self._addresses(host, port, place))[:MOST_ADDRESSES]:
            try:
                async with asyncio.timeout(CONNECT_S):
                    return Stream(*await asyncio.open_connection(address, port))
            except OSError as error:
                failure = str(error) or f"no answer within {CONNECT_S:g} s"
        raise RequestRefusedError(502, f"{place} cannot be reached: {failure}")

    def _allows(self, host: str, port: int) -> bool:
        return any(pattern.allows(host, port) for pattern in self._hosts)

    async def _addresses(self, host: str, port: int, place: str) -> Sequence[str]:
        if is_literal(host):
            return (host,)
        try:
            async with asyncio.timeout(LOOKUP_S):
                found = await self._resolve(host, port)
        except OSError as error:
            why = str(error) or f"no answer within {LOOKUP_S:g} s"
            raise RequestRefusedError(502, f"{place} cannot be resolved: {why}") from error
        for each in found:
            if not is_public_address(each) and not self._allows(each, port):
                raise RequestRefusedError(
                    403,
                    f"{place} has the address {each}, which is not on the public internet:"
                    f" the user can add the address itself to {KEY}",
                )
        return found

    async def _looked_up(self, host: str, port: int) -> Sequence[str]:
        # Threads of its own: slow names hold up nobody else's work, nor the end of the program.
        return await self._threads.run(lambda: _system_addresses(host, port))


async def _close(server: asyncio.Server) -> None:
    """Close a server once it has passed on all accepted connections."""
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(_HAND_OVER_TURNS):
        await asyncio.sleep(0)
    server.close()


def _system_addresses(host: str, port: int) -> tuple[str, ...]:
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


def _private_folder() -> Path:
    """Return a folder for the user only, with a path short enough for a socket (107 bytes)."""
    short = _SOCKETS if _SOCKETS.is_dir() and not _SOCKETS.is_symlink() else None
    return Path(tempfile.mkdtemp(prefix=f"pegboard-proxy-{os.getpid()}-", dir=short))


def _refusal(status: int, text: str) -> bytes:
    """Return an error response with the text as body and as reason, which programs display."""
    body = f"{text}\n".encode()
    reason = text.encode("ascii", "replace").decode()
    head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
