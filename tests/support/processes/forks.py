"""Processes that begin with Pegboard in memory: forks of one that has imported it.

Nine tenths of what a short command takes are imports. A fork has all else of its own, as any
process has: folder, environment, streams, signals, exit code, and what it does to its modules.
`start` and `begin` start a process anew where a fork would not be the same: for other programs,
and where Python or its libraries would read at their start what we have not read. A fork's limits,
umask and process group are those that we had when the first one was asked for.
"""

import asyncio
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

FORKABLE = Path(__file__).with_name("forkable.py")
PEGBOARD = str(Path(sys.executable).with_name("pegboard"))
PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "COVERAGE_")
"""How the names of variables begin that are read before there is a command."""
LONGEST_S = 40
STREAMS = ("stdin", "stdout", "stderr")
Stream = int | IO[Any] | None


class Fork:
    """A forked process, with what `subprocess.Popen` has."""

    def __init__(self, asked: socket.socket, args: Sequence[str], pipes: Sequence[Any]) -> None:
        self.args = list(args)
        self.stdin, self.stdout, self.stderr = pipes
        self.returncode: int | None = None
        told, (self._process,), _, _ = socket.recv_fds(asked, 64, 1)
        self.pid = int(told)
        self._asked = asked

    def __enter__(self) -> "Fork":
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
        self.wait()

    def poll(self) -> int | None:
        """The exit code, None while the process runs."""
        return self.returncode if self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once there is one."""
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def _has_ended(self, timeout_s: float | None) -> bool:
        if self.returncode is None:
            if not select.select([self._asked], (), (), timeout_s)[0]:
                return False
            self.returncode = int(self._asked.recv(64))
            self._asked.close()
            os.close(self._process)
        return True

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    async def ended(self) -> int:
        """`wait`, and the loop goes on."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        if self.returncode is None:
            number = self._asked.fileno()
            loop.add_reader(number, over.set)
            try:
                await over.wait()
            finally:
                loop.remove_reader(number)
        return self.wait()


class Running:
    """A forked process, with what `asyncio.subprocess.Process` has."""

    def __init__(self, fork: Fork) -> None:
        self._fork = fork
        self.pid = fork.pid
        self.send_signal, self.kill = fork.send_signal, fork.kill
        self.wait = fork.ended
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None

    @property
    def returncode(self) -> int | None:
        """The exit code, None while the process runs."""
        return self._fork.poll()

    async def open(self) -> None:
        """Make streams of the pipes."""
        loop = asyncio.get_running_loop()
        if self._fork.stdin is not None:
            transport, protocol = await loop.connect_write_pipe(
                lambda: asyncio.streams.FlowControlMixin(loop), self._fork.stdin
            )
            self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        self.stdout, self.stderr = [
            await _reader(pipe) for pipe in (self._fork.stdout, self._fork.stderr)
        ]

    async def communicate(self, content: bytes | None = None) -> tuple[bytes, bytes]:
        """What it writes, after this was written to it."""
        _, out, err = await asyncio.gather(
            self._write(content or b""), _all_of(self.stdout), _all_of(self.stderr)
        )
        await self.wait()
        return out, err

    async def _write(self, content: bytes) -> None:
        if self.stdin is None:
            return
        with suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(content)
            await self.stdin.drain()
        self.stdin.close()


async def _reader(pipe: IO[bytes] | None) -> asyncio.StreamReader | None:
    if pipe is None:
        return None
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return reader


async def _all_of(reader: asyncio.StreamReader | None) -> bytes:
    return await reader.read() if reader else b""


def start(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], **streams: Stream
) -> "Fork | subprocess.Popen[bytes]":
    """A process that runs `pegboard`, or Python with a file or a module; `streams` as for Popen."""
    if _may_be_forked(command, env):
        return _forked(command, cwd, env, streams)
    given: dict[str, Any] = {**streams}
    return subprocess.Popen(command, cwd=cwd, env=env, **given)


def run(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: Stream = DEVNULL
) -> subprocess.CompletedProcess[str]:
    """How such a process ends; without `stdin` it is given nothing to read."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with start(command, cwd=cwd, env=env, stdin=stdin, stdout=out, stderr=err) as process:
            try:
                code = process.wait(LONGEST_S)
            finally:
                process.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, code, out.read().decode(), err.read().decode())


async def begin(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], **streams: Stream
) -> Running | asyncio.subprocess.Process:
    """`start`, with streams of the running loop."""
    if not _may_be_forked(command, env):
        given: dict[str, Any] = {**streams}
        return await asyncio.create_subprocess_exec(*command, cwd=cwd, env=env, **given)
    running = Running(_forked(command, cwd, env, streams))
    await running.open()
    return running


def environment() -> dict[str, str]:
    """Our environment, without what somebody has set for this Python."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _may_be_forked(command: Sequence[str], env: Mapping[str, str]) -> bool:
    known = command[0] in (PEGBOARD, sys.executable)
    return known and _read_at_start(env) == _read_at_start(environment())


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START)}


def _forked(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Mapping[str, Stream]
) -> Fork:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    opened = [_opened(number, streams.get(name)) for number, name in enumerate(STREAMS)]
    words = command if command[0] == PEGBOARD else command[1:]
    order = {"command": list(words), "cwd": str(cwd), "env": dict(env)}
    with theirs, tempfile.TemporaryFile() as file:
        file.write(json.dumps(order).encode())
        file.seek(0)
        descriptors = [theirs.fileno(), file.fileno(), *(given for given, _, _ in opened)]
        socket.send_fds(_forkable(), [b"."], descriptors)
    for given, is_ours, _ in opened:
        if is_ours:
            os.close(given)
    return Fork(ours, command, [pipe for _, _, pipe in opened])


def _opened(number: int, stream: Stream) -> "tuple[int, bool, IO[bytes] | None]":
    """What a process gets as this stream, whether it is ours to close, and our end of it."""
    if stream == DEVNULL:
        return os.open(os.devnull, os.O_RDWR), True, None
    if stream == PIPE:
        reads, writes = os.pipe()
        if number == 0:
            return reads, True, os.fdopen(writes, "wb", 0)
        return writes, True, os.fdopen(reads, "rb", 0)
    if stream is None:
        return number, False, None
    return stream if isinstance(stream, int) else stream.fileno(), False, None


@cache
def _forkable() -> socket.socket:
    """What asks the process that forks; that ends when nobody can ask any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, str(FORKABLE), str(theirs.fileno())]
    process = subprocess.Popen(
        command, env=environment(), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
    )
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours
