"""Programs that run in a pseudo-terminal, with all processes that the programs start."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which

import msgspec

from pegboard import InvalidInputError
from pegboard.unstable import MARK, Family

READ_BYTES = 64 << 10
GRACE_S = 0.2
"""How long a program may tidy up when its terminal is gone, before it is killed."""
REAP_S = 2.0
"""How long the kernel has to report a program that was killed."""
KILL_ROUNDS = 40
PAUSE_S = 0.005
"""After a full read: a program that floods its terminal gets 13 MB/s, and not the whole loop."""
MOST_CELLS = 1000
_SIGNALLED = 128
# A session's leader owns the first terminal that it opens; so no code of ours runs after a fork.
_AT_TERMINAL = 'exec "$@" <"$0" >"$0" 2>&1'


class TerminalSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a terminal in rows and columns, each from 1 to 1,000."""

    rows: int = 24
    cols: int = 80


class Terminal:
    """A program in a new pseudo-terminal; `aclose` ends the program with all its children.

    `on_output` is called with the program's output, on the event loop. `exited` is set to the exit
    code when the program has ended and all output is delivered. A signal counts as 128 plus its
    number.
    """

    def __init__(
        self, command: Sequence[str], cwd: Path, on_output: Callable[[bytes], None]
    ) -> None:
        self.command = tuple(command)
        self.cwd = cwd
        self._loop = asyncio.get_running_loop()
        # Held open too, the far end keeps the near one readable until the program has it.
        self._master, self._far_end = os.openpty()
        self._family = Family("")
        self._on_output = on_output
        self._writing = asyncio.Lock()
        self._transport: asyncio.SubprocessTransport | None = None
        self._closed = False
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def open(
        cls,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        size: TerminalSize,
        on_output: Callable[[bytes], None],
    ) -> "Terminal":
        """Start a program in a new pseudo-terminal.

        :raises InvalidInputError: when there is no such program, or the program cannot run there.
        """
        program = which(command[0], path=env.get("PATH"))
        if program is None or any("\0" in word for word in (*command, *env, *env.values())):
            raise InvalidInputError(f"no program to run: {command[0][:200]!r}")
        _check(size)
        terminal = cls((program, *command[1:]), cwd, on_output)
        try:
            await terminal._start(env, size)
        except (OSError, ValueError) as error:
            terminal._close()
            raise InvalidInputError(f"cannot run {command[0][:200]!r} in {cwd}: {error}") from error
        return terminal

    async def _start(self, env: Mapping[str, str], size: TerminalSize) -> None:
        self.resize(size)
        os.set_blocking(self._master, False)
        words = ("/bin/sh", "-c", _AT_TERMINAL, os.ttyname(self._far_end), *self.command)
        self._family = Family(env.get(MARK, ""))
        self._transport, _ = await self._loop.subprocess_exec(
            lambda: _Watch(self._finish),
            *words,
            cwd=str(self.cwd),
            env={**env, MARK: self._family.mark},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._family.leader = self.pid
        self._listen()

    @property
    def pid(self) -> int:
        """The process id of the terminal's program."""
        assert self._transport is not None
        return self._transport.get_pid()

    def resize(self, size: TerminalSize) -> None:
        """Resize the terminal and notify the terminal's program.

        :raises InvalidInputError: when there is no such size.
        """
        _check(size)
        import fcntl  # 1 ms that only who has terminals needs
        import struct
        import termios

        if not self._closed:
            packed = struct.pack("HHHH", size.rows, size.cols, 0, 0)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, packed)

    async def write(self, content: bytes) -> None:
        """Write `content` as input; wait while the program does not read it."""
        async with self._writing:
            while content and not self._closed:
                try:
                    content = content[os.write(self._master, content) :]
                except BlockingIOError:
                    await self._room()
                except OSError:
                    return

    async def aclose(self) -> None:
        """Hang up, and end the remaining processes; a second call does nothing."""
        if self._closed:
            return
        self._close()
        with suppress(ProcessLookupError):
            self._family.signal(signal.SIGHUP)
            self._family.signal(signal.SIGTERM)
        await asyncio.wait({self._gone}, timeout=GRACE_S)
        await self._reap()

    async def _reap(self) -> None:
        """Wait until all processes that the terminal's program started have ended."""
        for _ in range(KILL_ROUNDS):
            if not self._family.kill(thorough=True):
                break
            await asyncio.sleep(0.001)
        await asyncio.wait({self._gone}, timeout=REAP_S)
        assert self._transport is not None
        self._transport.close()

    async def _room(self) -> None:
        """Wait until the program reads or ends; without a limit, as a user may suspend it."""
        free = self._loop.create_future()
        self._loop.add_writer(self._master, _settle, free)
        try:
            await asyncio.wait({free, self._gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._closed:
                self._loop.remove_writer(self._master)

    def _listen(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._master, self._read)

    def _read(self) -> None:
        heard = self._read_output()
        if heard is None:
            self._loop.remove_reader(self._master)
        elif len(heard) == READ_BYTES:
            self._loop.remove_reader(self._master)
            self._loop.call_later(PAUSE_S, self._listen)

    def _read_output(self) -> bytes | None:
        """Pass available output to `on_output`; return None when the terminal is closed."""
        try:
            content = os.read(self._master, READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            return None
        if content:
            self._on_output(content)
        return content or None

    def _finish(self) -> None:
        """Pass on the last output of the ended program, and set `exited` to its exit code."""
        assert self._transport is not None
        while not self._closed and self._read_output():
            pass
        _settle(self._gone)
        code = self._transport.get_returncode() or 0
        if not self.exited.done():
            self.exited.set_result(code if code >= 0 else _SIGNALLED - code)

    def _close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)
        os.close(self._master)
        os.close(self._far_end)


class _Watch(asyncio.SubprocessProtocol):
    """The asyncio protocol that reports the end of the terminal's program."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self._finish = ended

    def process_exited(self) -> None:
        # It may have ended before its start has returned.
        asyncio.get_running_loop().call_soon(self._finish)


def _check(size: TerminalSize) -> None:
    if not (0 < size.rows <= MOST_CELLS and 0 < size.cols <= MOST_CELLS):
        raise InvalidInputError(f"a terminal has 1 to {MOST_CELLS} rows and columns")


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
