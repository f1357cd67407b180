"""The connection from a private network to a proxy outside: `relay.py SOCKET PORT ARGV...`.

It listens on the loopback port, forwards each connection to the socket, and runs `ARGV` in its own
process. The process that carries the bytes is not a child of `ARGV`. A bare interpreter (`python -I
-S`) runs it, so it only uses the standard library.
"""

import errno
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

CHUNK_BYTES = 64 << 10
BACKLOG = 64
MOST_CONNECTIONS = 128
HOST = "127.0.0.1"
_SHELL = "/bin/sh"
# What an interpreter ignores from its start on; a program expects it to be as it is for all.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def main(path: str, port: int, argv: Sequence[str]) -> None:
    """Listen, leave the forwarding to a separate process, and run `argv` in this process."""
    given = given_environment()
    listener = socket.create_server((HOST, port), backlog=BACKLOG)
    if _fork_apart() == 0:
        _close_streams(listener.fileno())
        _carry(listener, path)
    else:
        become(argv, given)


def given_environment() -> dict[bytes, bytes]:
    """Return the environment that this process was started with, without changes by Python."""
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib costs 5 ms
        pairs = file.read().split(b"\0")
    return {
        name: value for name, equals, value in (each.partition(b"=") for each in pairs) if equals
    }


def become(argv: Sequence[str], environment: dict[bytes, bytes]) -> None:
    """Replace this process by another program, and restore the signals that Python ignores."""
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        try:
            os.execve(argv[0], list(argv), environment)  # noqa: S606 - that is its trade
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script that names no interpreter.
            os.execve(_SHELL, [_SHELL, *argv], environment)  # noqa: S606 - likewise
    except OSError as error:
        raise SystemExit(f"{argv[0]}: {error.strerror}") from error


def _fork_apart() -> int:
    """Fork a process that is no child of this process; return 0 in the new process."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return child
    os.setsid()
    if os.fork():
        os._exit(0)
    return 0


def _close_streams(kept: int) -> None:
    """Close all streams except `kept`, since readers of the output wait until they are closed."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


class _Flow:
    """One direction of a connection, with a buffer of at most 64 KiB."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.waiting = b""
        self.ended = False

    def take(self) -> None:
        self.waiting = self.source.recv(CHUNK_BYTES)
        if not self.waiting:
            self.ended = True
            self.target.shutdown(socket.SHUT_WR)

    def give(self) -> None:
        self.waiting = self.waiting[self.target.send(self.waiting) :]


def _carry(listener: socket.socket, path: str) -> None:
    """Forward connections until the process that started the relay ends."""
    pairs: list[tuple[_Flow, _Flow]] = []
    listener.settimeout(0)  # who called may be gone before the call is taken
    while True:
        wanted = {listener.fileno(): select.POLLIN} if len(pairs) < MOST_CONNECTIONS else {}
        for flow in (each for pair in pairs for each in pair):
            if flow.waiting:
                wanted[flow.target.fileno()] = wanted.get(flow.target.fileno(), 0) | select.POLLOUT
            elif not flow.ended:
                wanted[flow.source.fileno()] = wanted.get(flow.source.fileno(), 0) | select.POLLIN
        poll = select.poll()
        for number, events in wanted.items():
            poll.register(number, events)
        ready = dict(poll.poll())
        if listener.fileno() in ready:
            with suppress(OSError):  # the proxy takes no more, or nobody is there any more
                pairs.append(_connected(listener, path))
        pairs = [pair for pair in pairs if _moved(pair, ready)]


def _connected(listener: socket.socket, path: str) -> tuple[_Flow, _Flow]:
    near, _ = listener.accept()
    far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        far.connect(path)
        near.settimeout(0)
        far.settimeout(0)
    except OSError:
        near.close()
        far.close()
        raise
    return _Flow(near, far), _Flow(far, near)


def _moved(pair: tuple[_Flow, _Flow], ready: dict[int, int]) -> bool:
    """Move available bytes; return False if both directions have ended or one side has failed."""
    try:
        for flow in pair:
            if flow.waiting and ready.get(flow.target.fileno(), 0) & ~select.POLLIN:
                flow.give()
            elif not (flow.waiting or flow.ended) and (
                ready.get(flow.source.fileno(), 0) & ~select.POLLOUT
            ):
                flow.take()
    except OSError:
        _close(pair)
        return False
    if all(flow.ended for flow in pair):
        _close(pair)
        return False
    return True


def _close(pair: tuple[_Flow, _Flow]) -> None:
    for flow in pair:
        flow.source.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
