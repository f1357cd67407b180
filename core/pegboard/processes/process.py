"""Processes of tools: their start, their output, and the end of all their children."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard.enclosing import ProcessResult
from pegboard.errors import ToolError
from pegboard.kit.threads import shield
from pegboard.processes.family import MARK, Family
from pegboard.processes.limits import LONGEST_BYTES, Bounds, FamilyWatch, without_limits
from pegboard.processes.output import BoundedOutput, Output

DRAIN_S = 0.2
"""How long the output is heard after the process has ended, while others hold its pipe."""
GRACE_S = 0.2
"""How long a process may tidy up after SIGTERM, before SIGKILL."""
REAP_S = 2.0
"""How long we wait for the kernel to report a process that was killed."""
KILL_ROUNDS = 40
EXEC_PAUSES_S = (0.0005, 0.002)
"""The pauses before another look at processes that were becoming a program: are they ours?"""
START_AGAIN_S = 0.05
"""How long a start waits before the conditions are checked again."""
CANCEL_AGAIN_S = 0.01
"""The pause before a start that the end of the event loop has cancelled is cancelled again."""
SERVICE_TICK_S = 1.0
"""How often a process that may run for hours is looked at."""
_conditions: list[Callable[[], bool]] = []


def add_start_condition(condition: Callable[[], bool]) -> Callable[[], None]:
    """Let tools start processes only while `condition` is true; return a function to remove it.

    It applies to the whole program and is called directly before each start, so it must be quick
    and must not raise. While it returns false, starts wait; cancelling a call ends its wait.
    """
    _conditions.append(condition)
    return lambda: _conditions.remove(condition)


def may_start() -> bool:
    """Return whether tools may start processes now; call this just before you start a process."""
    return all(condition() for condition in _conditions)


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
    """Run a process; neither it nor its children outlive the call.

    It runs in its own session without input; stdout and stderr are one stream. If the output
    exceeds `limit_bytes`, only its start and end are returned. The whole output (64 MiB at most)
    then goes to a file in `spill_dir`.

    The call returns when the process ends, or up to 200 ms later if child processes keep its output
    open. The remaining children are killed. After `timeout_s`, or when the call is cancelled, all
    processes get SIGTERM, and SIGKILL 200 ms later. A family that exceeds the `bounds` is killed.
    `on_start` receives the pid. `on_output` receives the text in chunks, on the event loop.

    :raises ToolError: when the program or the directory cannot be used.
    """
    output = Output(limit_bytes, spill_dir, on_output)

    def hear(_: int, data: bytes) -> None:
        # Only a line that bash cannot read is quoted, before anything of it runs.
        output.write(data if output.total > LONGEST_BYTES else without_limits(data))

    child = _Child(hear)
    family = Family(env.get(MARK, ""))
    started = time.monotonic()
    with bounds.group() if bounds is not None else nullcontext() as family.group:
        watch = None
        if bounds is not None:
            argv, env = bounds.around(argv, cwd=cwd, env=env, group=family.group, seal=family.seal)
            watch = FamilyWatch(bounds, family.members, family.group)
        transport = await _start(argv, cwd, env, child, family)
        if on_start is not None:
            on_start(family.leader)
        try:
            ending = await _ended(family, child, transport, timeout_s, watch)
        finally:
            output.close()
    return ProcessResult(
        exit_code=ending.exit_code,
        output=output.text,
        timed_out=ending.timed_out,
        exceeded=ending.exceeded,
        truncated=output.truncated,
        output_path=output.path,
        output_bytes=output.total,
        background_ended=ending.left and not ending.timed_out and not ending.exceeded,
        duration_s=time.monotonic() - started,
    )


class ProgramResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a program; `exit_code` is None if it had to be killed.

    `output` is its standard output. If that exceeded the limit, the program was `flooded`, and the
    rest is lost. `errors` is its standard error, 64 KiB at most.
    """

    exit_code: int | None
    output: bytes
    errors: bytes
    timed_out: bool
    flooded: bool


async def run_program(  # noqa: PLR0913 - the facts of a process, all keyword-only
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    limit_bytes: int,
    given: bytes = b"",
    as_tool: bool = False,
) -> ProgramResult:
    """Run a program that Pegboard itself needs, such as git, and return the program's result.

    `given` is its input. The program is ended after `timeout_s`, when it has printed more than
    `limit_bytes`, and when the call is cancelled. None of its children outlives the call. With
    `as_tool` it starts only while the conditions of `add_start_condition` hold, as a tool's does.

    :raises ToolError: when the program or the directory cannot be used.
    """
    heard = BoundedOutput(limit_bytes)
    child, family = _Child(heard.hear, apart=True, waits=as_tool), Family(env.get(MARK, ""))
    transport = await _start(argv, cwd, env, child, family)
    _feed(transport, given)
    ending = await _ended(family, child, transport, timeout_s, heard)
    return ProgramResult(
        exit_code=ending.exit_code,
        output=bytes(heard.output),
        errors=bytes(heard.errors),
        timed_out=ending.timed_out,
        flooded=heard.flooded,
    )


def _feed(transport: asyncio.SubprocessTransport, given: bytes) -> None:
    pipe = transport.get_pipe_transport(0)
    assert isinstance(pipe, asyncio.WriteTransport)
    pipe.write(given)
    pipe.write_eof()  # after all input is written, or the program has closed it


@asynccontextmanager
async def service_process(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], bounds: Bounds
) -> AsyncIterator[Sequence[str]]:
    """Yield the command line of a process that the caller starts, such as a language server.

    A process that exceeds the `bounds` is killed. At the end of the context all remaining processes
    are killed.

    :raises ToolError: when the program or directory is missing.
    """
    family = Family(env.get(MARK, ""))
    with bounds.group() as family.group:
        bound, full = bounds.around(argv, cwd=cwd, env=env, group=family.group, seal=family.seal)
        given = [f"{name}={value}" for name, value in full.items() - env.items()]
        watch = FamilyWatch(bounds, family.members, family.group)
        watching = asyncio.create_task(_watch_limits(watch, family), name=f"watch {argv[0]}")
        try:
            yield ["/usr/bin/env", f"{MARK}={family.mark}", *given, *bound]
        finally:
            watching.cancel()
            if family.kill(thorough=True):
                await shield(_kill_all(family))
            await asyncio.wait({watching})  # it ends at once


async def _watch_limits(watch: FamilyWatch, family: Family) -> None:
    while True:
        await asyncio.sleep(SERVICE_TICK_S)
        if watch.exceeded():
            family.kill(thorough=True)
            return


class _Watching(Protocol):
    """The protocol of an object that checks a running process against limits."""

    @property
    def tick_s(self) -> float: ...

    def exceeded(self) -> str: ...


class _Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a process; `left` is whether children of the process had to be killed."""

    exit_code: int | None
    timed_out: bool
    exceeded: str
    left: bool


async def _ended(
    family: Family,
    child: "_Child",
    transport: asyncio.SubprocessTransport,
    timeout_s: float,
    watch: _Watching | None,
) -> _Ending:
    """Wait for the end of a process, and end its child processes."""
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
        if left or family.unclear or not child.is_gone:
            left = await shield(_reap(family, child, transport, left=left))
        transport.close()
    code = transport.get_returncode() if by_itself else None
    return _Ending(exit_code=code, timed_out=timed_out, exceeded=exceeded, left=left)


async def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], child: "_Child", family: Family
) -> asyncio.SubprocessTransport:
    """Start a process with the mark of its family; a cancelled start leaves no process."""
    started: list[asyncio.SubprocessTransport] = []

    async def start() -> None:
        if child.waits and not may_start():
            return  # no await from here until the process runs
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *argv,
            cwd=str(cwd),
            env={**env, MARK: family.mark},
            stdin=asyncio.subprocess.PIPE if child.apart else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if child.apart else asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        family.leader = transport.get_pid()
        started.append(transport)

    try:
        await _whole(asyncio.create_task(start()))
        while not started:
            await asyncio.sleep(START_AGAIN_S)
            await _whole(asyncio.create_task(start()))
    except asyncio.CancelledError:
        left = family.kill(thorough=True)
        for transport in started:
            await shield(_reap(family, child, transport, left=left))
        raise
    except (OSError, ValueError, RuntimeError) as error:  # the last: no thread to wait in for it
        family.kill(thorough=True)
        raise ToolError(f"cannot run {argv[0]!r} in {cwd}: {error}") from error
    return started[0]


async def _whole(start: "asyncio.Task[None]") -> None:
    """Wait until the task that starts a process has finished, even if the caller is cancelled.

    When the event loop ends, it cancels this task itself. asyncio then waits for pipes that are
    never connected. Therefore the task is cancelled repeatedly.
    """
    cancelled = False
    while not start.done():
        try:
            await asyncio.wait({start}, timeout=CANCEL_AGAIN_S if start.cancelling() else None)
        except asyncio.CancelledError:
            cancelled = True
        if start.cancelling():
            start.cancel()
    if cancelled:
        raise asyncio.CancelledError
    start.result()


async def _within(limit_s: float, future: asyncio.Future[None]) -> bool:
    """Wait up to `limit_s` and return whether the future is done; do not cancel the future."""
    if not future.done():
        await asyncio.wait({future}, timeout=limit_s)
    return future.done()


async def _watched(
    limit_s: float, future: asyncio.Future[None], watch: _Watching | None
) -> tuple[bool, str]:
    """Return whether a future is done in time, and the limit exceeded before, or ""."""
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
) -> bool:
    """Wait until all processes of the family have ended, and close the transport.

    Return whether children were left and had to be killed; `left` is what is known so far.
    """
    for pause_s in EXEC_PAUSES_S:
        if left or not family.unclear:
            break
        await asyncio.sleep(pause_s)
        left = family.kill(thorough=False)
    if left:
        await _kill_all(family)
    await _within(REAP_S, child.exited)
    transport.close()
    await _within(REAP_S, child.closed)
    return left


async def _kill_all(family: Family) -> None:
    """Kill the family repeatedly until no new member appears."""
    quiet = 0
    for count in range(KILL_ROUNDS):
        await asyncio.sleep(0.001 * (1 + count))  # 0.8 s, for a large family
        quiet = 0 if family.kill(thorough=True) else quiet + 1
        if quiet > len(EXEC_PAUSES_S) or (quiet and not family.unclear):
            break


class _Child(asyncio.SubprocessProtocol):
    """The asyncio protocol of a process, with futures for the end of the process.

    If `apart` is set, the process has an input, and its standard error is a separate stream. If
    `waits` is set, it starts only while the conditions hold.
    """

    def __init__(
        self, hear: Callable[[int, bytes], None], *, apart: bool = False, waits: bool = True
    ) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._hear = hear
        self.apart, self.waits = apart, waits
        self._outputs = {1, 2} if apart else {1}

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended and asyncio has closed its pipes."""
        return self.exited.done() and self.closed.done()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._hear(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        self._outputs.discard(fd)
        if not self._outputs:
            _settle(self.drained)

    def process_exited(self) -> None:
        _settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - not our failure
        _settle(self.closed)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
