"""Processes of tools: started, heard within bounds, and ended with all that they started."""

import asyncio
import os
import signal
import time
from codecs import getincrementaldecoder, utf_8_decode
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

import msgspec

from pegboard.context import ProcessResult
from pegboard.errors import ToolError
from pegboard.family import MARK, Family
from pegboard.limits import Bounds, Watch

DRAIN_S = 0.2
"""How long the output is heard after the process has ended, while others hold its pipe."""
GRACE_S = 0.2
"""How long a process may tidy up after SIGTERM, before SIGKILL."""
REAP_S = 2.0
"""How long we wait for the kernel to report a process that was killed."""
SPILL_LIMIT_BYTES = 64 << 20
"""The longest file of output; what a runaway process writes beyond it is lost."""
KILL_ROUNDS = 40
SERVICE_TICK_S = 1.0
"""How often a process that may run for hours is looked at."""

_SECRET_NAMES = (
    *("*_API_KEY", "*_APIKEY", "*_ACCESS_KEY", "*_ACCESS_KEY_ID", "*_PRIVATE_KEY", "*_TOKEN"),
    *("*TOKEN_*", "*SECRET*", "*PASSWORD*", "*_CREDENTIALS", "PEGBOARD_*", "OPENCODE_*"),
)
_QUIET = {
    "AGENT": "pegboard",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
}


def child_env(env: Mapping[str, str], *, secrets: Iterable[str] = ()) -> dict[str, str]:
    """`env` for a process of a tool: without keys, and so that no program waits for a person.

    Left out are the names in `secrets` (the variables that hold providers' keys), every name
    that looks like a credential (`*_API_KEY`, `*_TOKEN`, `*SECRET*`, `*PASSWORD*`, ...) and our
    own settings (`PEGBOARD_*`). Set are `AGENT=pegboard`, `TERM=dumb`, pagers to `cat`, git's
    editor to `true`, and no prompts of git and ssh.
    """
    return without_secrets(env, secrets) | _QUIET


def without_secrets(env: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
    """What `child_env` leaves of `env`, for a program that a person works with."""
    hidden = {name.upper() for name in secrets}
    return {
        name: value
        for name, value in env.items()
        if name.upper() not in hidden and not _looks_secret(name.upper())
    }


@lru_cache(maxsize=1024)
def _looks_secret(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES)


async def run_process(  # noqa: PLR0913 - the facts of a process, all keyword-only
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    limit_bytes: int,
    on_output: Callable[[str], None] | None = None,
    on_start: Callable[[int], None] | None = None,
    spill_dir: Path | None = None,
    bounds: Bounds | None = None,
) -> ProcessResult:
    """How the process ended; neither it nor anything that it started outlives the call.

    It runs in a session of its own with closed input; stdout and stderr are one stream. Of
    more than `limit_bytes` the head and the tail are kept, and the whole (64 MiB at most) goes
    to a file in `spill_dir`. The call returns when the process ends, and 200 ms later if
    others still hold its output; they are ended. After `timeout_s`, and when the call is
    cancelled, all get SIGTERM, and SIGKILL 200 ms later. `on_start` gets the process's id, and
    `on_output` the text piece by piece, on the event loop. What takes more of the machine than
    the `bounds` allow is killed.

    :raises ToolError: when the program or the directory cannot be used.
    """
    output = _Output(limit_bytes, spill_dir, on_output)
    family = Family(env.get(MARK, ""))
    started = time.monotonic()
    with bounds.group() if bounds is not None else nullcontext() as family.group:
        watch = None
        if bounds is not None:
            argv = bounds.around(argv, cwd=cwd, env=env, group=family.group, seal=family.seal)
            watch = Watch(bounds, family.members, family.group)
        transport, child = await _start(argv, cwd, {**env, MARK: family.mark}, output)
        family.leader = transport.get_pid()
        if on_start is not None:
            on_start(family.leader)
        try:
            ending = await _ended(family, child, transport, timeout_s, watch)
        finally:
            output.close()
    return output.result(ending, duration_s=time.monotonic() - started)


@asynccontextmanager
async def service_process(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], bounds: Bounds
) -> AsyncIterator[Sequence[str]]:
    """The command line of a process that is started and heard by others, for as long as it runs.

    What takes more of the machine than the `bounds` allow is killed, and so is at the end of the
    context all that is left of it.

    :raises ToolError: when there is no such program or directory.
    """
    family = Family(env.get(MARK, ""))
    with bounds.group() as family.group:
        bound = bounds.around(argv, cwd=cwd, env=env, group=family.group, seal=family.seal)
        watch = Watch(bounds, family.members, family.group)
        watching = asyncio.create_task(_kept_within(watch, family), name=f"watch {argv[0]}")
        try:
            yield ["/usr/bin/env", f"{MARK}={family.mark}", *bound]
        finally:
            watching.cancel()
            if family.kill(thorough=True):
                await _gone(family)
            await asyncio.wait({watching})  # it ends at once


async def _kept_within(watch: Watch, family: Family) -> None:
    while True:
        await asyncio.sleep(SERVICE_TICK_S)
        if watch.exceeded():
            family.kill(thorough=True)
            return


class _Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How the process ended; `left`: something of it lived on and had to be killed."""

    exit_code: int | None
    timed_out: bool
    exceeded: str
    left: bool


async def _ended(
    family: Family,
    child: "_Child",
    transport: asyncio.SubprocessTransport,
    timeout_s: float,
    watch: Watch | None,
) -> _Ending:
    """How it ended, or was ended, with all that it had started."""
    timed_out, exceeded = False, ""
    try:
        in_time, exceeded = await _watched(timeout_s, child.exited, watch)
        timed_out = not in_time and not exceeded
        if timed_out:
            await _ask_to_end(family, child)
        elif not exceeded:
            _, exceeded = await _watched(DRAIN_S, child.drained, watch)
    except asyncio.CancelledError:
        await _ask_to_end(family, child)
        raise
    finally:
        by_itself = child.exited.done() and not timed_out and not exceeded
        left = family.kill(thorough=not by_itself)
        await _reap(family, child, transport, left=left)
    code = transport.get_returncode() if by_itself else None
    return _Ending(exit_code=code, timed_out=timed_out, exceeded=exceeded, left=left)


async def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], output: "_Output"
) -> tuple[asyncio.SubprocessTransport, "_Child"]:
    loop = asyncio.get_running_loop()
    try:
        return await loop.subprocess_exec(
            lambda: _Child(loop, output),
            *argv,
            cwd=str(cwd),
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"cannot run {argv[0]!r} in {cwd}: {error}") from error


async def _within(limit_s: float, future: asyncio.Future[None]) -> bool:
    """Whether it is done in time; a future that is not stays as it is."""
    done, _ = await asyncio.wait({future}, timeout=limit_s)
    return bool(done)


async def _watched(
    limit_s: float, future: asyncio.Future[None], watch: Watch | None
) -> tuple[bool, str]:
    """Whether it is done in time, and what was exceeded before that."""
    if watch is None:
        return await _within(limit_s, future), ""
    end = time.monotonic() + limit_s
    while not await _within(min(watch.tick_s, max(end - time.monotonic(), 0)), future):
        if exceeded := watch.exceeded():
            return False, exceeded
        if time.monotonic() >= end:
            return False, ""
    return True, ""


async def _ask_to_end(family: "Family", child: "_Child") -> None:
    family.signal(signal.SIGTERM)
    await _within(GRACE_S, child.exited)


async def _reap(
    family: "Family", child: "_Child", transport: asyncio.SubprocessTransport, *, left: bool
) -> None:
    """Waits until nothing is left; a second cancellation may interrupt it after the kill."""
    try:
        if left:
            await _gone(family)
        await _within(REAP_S, child.exited)
    finally:
        transport.close()
    await _within(REAP_S, child.closed)


async def _gone(family: Family) -> None:
    """Kill until nobody is left who was born meanwhile."""
    for count in range(KILL_ROUNDS):
        await asyncio.sleep(0.001 * (1 + count))  # 0.8 s: a crowd takes its time
        if not family.kill(thorough=True):
            break


class _Child(asyncio.SubprocessProtocol):
    """What happens to the process, as three facts that can be waited for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, output: "_Output") -> None:
        self.exited: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._output = output

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - one pipe only
        self._output.write(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        _settle(self.drained)

    def process_exited(self) -> None:
        _settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - not our failure
        _settle(self.closed)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Output:
    """The bytes of a process: all of few, head and tail of many, which go to a file too."""

    def __init__(
        self, limit_bytes: int, spill_dir: Path | None, on_output: Callable[[str], None] | None
    ) -> None:
        self._half = max(limit_bytes // 2, 1)
        self._limit = self._half * 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._spill_dir = spill_dir
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._on_output = on_output
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def write(self, data: bytes) -> None:
        before, self._total = self._total, self._total + len(data)
        room = max(self._half - len(self._head), 0)
        self._head += data[:room]
        self._tail += data[room:]
        if self._total > self._limit:
            self._spill(data, first=before <= self._limit)
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        if self._on_output is not None and (text := self._decode(data)):
            self._on_output(text)

    def _spill(self, data: bytes, *, first: bool) -> None:
        """Appends to the file; a full disk costs the file and nothing else."""
        try:
            if first and self._spill_dir is not None:
                self._path, self._file = _new_file(self._spill_dir)
                data = bytes(self._head + self._tail)
            if self._file is not None:
                room = SPILL_LIMIT_BYTES - self._file.tell()
                self._file.write(data[: max(room, 0)])
        except OSError:
            self._lose_the_file()

    def close(self) -> None:
        """Closes the file, which may be gone: a command can remove it, as any other."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
            if self._path is not None:
                self._path.stat()
        except OSError:
            self._lose_the_file()

    def _lose_the_file(self) -> None:
        file, path = self._file, self._path
        self._file = self._path = None
        with suppress(OSError):
            if path is not None:
                path.unlink()
        with suppress(OSError):
            if file is not None:
                file.close()

    def result(self, ending: _Ending, *, duration_s: float) -> ProcessResult:
        truncated = self._total > self._limit
        return ProcessResult(
            exit_code=ending.exit_code,
            output=self._cut() if truncated else (self._head + self._tail).decode(errors="replace"),
            timed_out=ending.timed_out,
            exceeded=ending.exceeded,
            truncated=truncated,
            output_path=self._path,
            output_bytes=self._total,
            background_ended=ending.left and not ending.timed_out and not ending.exceeded,
            duration_s=duration_s,
        )

    def _cut(self) -> str:
        head, _ = utf_8_decode(self._head, "replace", False)  # noqa: FBT003 - without a half letter
        tail = _from_a_letter(self._tail[-self._half :]).decode(errors="replace")
        missing = self._total - self._limit
        return f"{head}\n\n[{missing:,} bytes of the output are left out here]\n\n{tail}"


def _from_a_letter(text: bytearray) -> bytearray:
    """The text without the rest of a letter of UTF-8 that began before it."""
    rests = (byte & 0xC0 == 0x80 for byte in text[:3])  # noqa: PLR2004 - RFC 3629 3
    return text[sum(takewhile(bool, rests)) :]


def _new_file(folder: Path) -> tuple[Path, BinaryIO]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"run_{os.urandom(8).hex()}.txt"
    return path, os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
