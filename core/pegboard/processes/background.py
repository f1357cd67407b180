"""The processes of an App's tools: the processes of a single call, and background processes.

Background processes outlive the call that started them, until their session or the App ends.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from pegboard.enclosing import BackgroundProcess, Enclosure, ProcessResult
from pegboard.errors import ToolError
from pegboard.processes.lifeline import Lifeline
from pegboard.processes.limits import Bounds
from pegboard.processes.process import run_process, service_process
from pegboard.schema.config import ProcessLimits

MOST_RUNNING = 8
"""Of one session at the same time."""
MOST_KEPT = 50
"""Processes of a session that are listed; of those that have ended the oldest are forgotten."""
LONGEST_S = 24 * 3600.0
OUTPUT_LIMIT_BYTES = 64 << 20
"""The longest file of output; what a process writes beyond it is lost."""


@dataclass(slots=True)
class _Running:
    process: BackgroundProcess
    task: asyncio.Task[None]


class ToolProcesses:
    """The processes of one App's tools, within limits; no process outlives the App."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._bounds = Bounds(limits)
        self._lifeline = Lifeline()
        self._sessions: dict[str, SessionBackground] = {}
        self._closed = False

    def variables(self) -> Mapping[str, str]:
        """Return the variables that make a process end with this program."""
        return self._lifeline.hold()

    async def run(  # noqa: PLR0913 - the facts of a process, all keyword-only
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout_s: float,
        limit_bytes: int,
        on_output: Callable[[str], None] | None = None,
        spill_dir: Path | None = None,
    ) -> ProcessResult:
        """Run a process and return its result; all its children end with the call.

        :raises ToolError: when the program or the directory cannot be used, or after `end`.
        """
        self._refuse_late(argv)
        return await run_process(
            argv,
            cwd=cwd,
            env=env,
            timeout_s=timeout_s,
            limit_bytes=limit_bytes,
            on_output=on_output,
            spill_dir=spill_dir,
            bounds=self._bounds,
        )

    def service(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Return a context manager with the command line for a process that the caller starts.

        Leaving the context ends the process.

        :raises ToolError: after `end`.
        """
        self._refuse_late(argv)
        return service_process(argv, cwd=cwd, env=env, bounds=self._bounds)

    def background(
        self, session_id: str, *, output_dir: Path, enclosure: Enclosure | None = None
    ) -> "SessionBackground":
        """Return the background processes of a session; their output goes to `output_dir`."""
        found = self._sessions.get(session_id)
        if found is None:
            found = SessionBackground(output_dir, enclosure, self._bounds, closed=self._closed)
            self._sessions[session_id] = found
        return found

    async def end(self, session_id: str | None = None) -> None:
        """End the processes of one session, or of all sessions, and wait until they have ended.

        After ending all processes, no other process can start.
        """
        self._closed = self._closed or session_id is None
        ending = list(self._sessions) if session_id is None else [session_id]
        left = [each for name in ending if (each := self._sessions.pop(name, None))]
        async with asyncio.TaskGroup() as group:
            for each in left:
                group.create_task(each.aclose())
        if session_id is None:
            await self._lifeline.aclose()
            self._bounds.close()

    def _refuse_late(self, argv: Sequence[str]) -> None:
        if self._closed:
            raise ToolError(f"cannot run {argv[0]!r}: the program ends")


class SessionBackground:
    """The `BackgroundAccess` for the tools of one session."""

    def __init__(
        self,
        output_dir: Path,
        enclosure: Enclosure | None = None,
        bounds: Bounds | None = None,
        *,
        closed: bool = False,
    ) -> None:
        self._closed = closed
        self._output_dir = output_dir
        self._enclosure = enclosure
        self._bounds = bounds
        self._running: dict[str, _Running] = {}
        self._started = 0

    def listed(self) -> tuple[BackgroundProcess, ...]:
        """Return all running processes, oldest first, and up to fifty that have ended."""
        return tuple(each.process for each in self._running.values())

    async def start(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], title: str
    ) -> BackgroundProcess:
        """Start a process that outlives the tool call, for a day at most.

        :raises ToolError: when the program or the directory cannot be used, or when the session
          already runs eight processes.
        """
        if self._closed:
            raise ToolError(f"cannot run {argv[0]!r}: its session has ended")
        self._make_room()
        self._started += 1
        name = f"p{self._started}"
        path, file = await asyncio.to_thread(_new_file, self._output_dir)
        pid: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        work = self._run(name, argv, _Log(file), cwd=cwd, env=env, pid=pid)
        task = asyncio.create_task(work, name=f"background {name}")
        process = BackgroundProcess(
            id=name, title=title, pid=0, output_path=path, started_at=time.time_ns() // 10**6
        )
        self._running[name] = _Running(process, task)
        first: set[asyncio.Future[Any]] = {task, pid}
        try:
            # No limit: only fork and exec are awaited.
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not pid.done():
                del self._running[name]
                await asyncio.to_thread(path.unlink)
                await task
        except asyncio.CancelledError:
            task.cancel()
            raise
        return self._changed(name, pid=pid.result())

    async def wait(self, process_id: str, *, limit_s: float) -> BackgroundProcess:
        """Wait for the end of the process, but at most `limit_s` seconds, and return its state.

        :raises ToolError: when the session has no such process.
        """
        running = self._process(process_id)
        await asyncio.wait({running.task}, timeout=limit_s)
        return running.process

    async def stop(self, process_id: str) -> BackgroundProcess:
        """End the process and all its children, first with SIGTERM, and return its final state.

        :raises ToolError: when the session has no such process.
        """
        running = self._process(process_id)
        running.task.cancel()
        # Without a limit: run_process has its own for each step of the end.
        await asyncio.wait({running.task})
        return running.process

    async def aclose(self) -> None:
        """End all processes, allow no new ones, and wait until all have ended."""
        self._closed = True
        tasks = {each.task for each in self._running.values()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)  # without a limit, as in `stop`

    def _make_room(self) -> None:
        ended = [name for name, each in self._running.items() if not each.process.running]
        if len(self._running) - len(ended) >= MOST_RUNNING:
            raise ToolError(f"{MOST_RUNNING} processes run in the background: stop one first")
        for name in ended[: max(len(self._running) + 1 - MOST_KEPT, 0)]:
            del self._running[name]

    def _process(self, process_id: str) -> _Running:
        found = self._running.get(process_id)
        if found is None:
            names = ", ".join(self._running) or "none"
            raise ToolError(f"no background process {process_id!r}; there are: {names}")
        return found

    def _changed(self, name: str, **facts: object) -> BackgroundProcess:
        running = self._running[name]
        running.process = replace(running.process, **facts)
        return running.process

    async def _run(  # noqa: PLR0913 - the facts of a process
        self,
        name: str,
        argv: Sequence[str],
        log: "_Log",
        *,
        cwd: Path,
        env: Mapping[str, str],
        pid: asyncio.Future[int],
    ) -> None:
        ending = "stopped"
        try:
            async with self._enclosed(argv, cwd, env) as command:
                result = await run_process(
                    command,
                    cwd=cwd,
                    env=env,
                    timeout_s=LONGEST_S,
                    limit_bytes=1,
                    on_output=log.write,
                    on_start=pid.set_result,
                    bounds=self._bounds,
                )
            ending = _ending(result)
            if name in self._running:
                self._changed(name, exit_code=result.exit_code)
        finally:
            log.close(ending)
            if name in self._running:
                self._changed(name, running=False, ending=ending)

    def _enclosed(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        if self._enclosure is None:
            return nullcontext(argv)
        search, reads = env.get("PATH", os.defpath), (self._output_dir,)
        return self._enclosure.around(argv, cwd=cwd, search=search, reads=reads)


def _ending(result: ProcessResult) -> str:
    if result.timed_out:
        return f"ended after {LONGEST_S / 3600:g} hours"
    if result.exceeded:
        return f"stopped: {result.exceeded}"
    code = result.exit_code
    ending = f"exit code {code}" if code is None or code >= 0 else f"ended by signal {-code}"
    return f"{ending}; what it had left running was ended" if result.background_ended else ending


class _Log:
    """The output file of a process; when the disk is full, output is lost without an error."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._room = OUTPUT_LIMIT_BYTES

    def write(self, text: str) -> None:
        data = text.encode(errors="replace")[: self._room]
        self._room -= len(data)
        if data:
            with suppress(OSError):
                self._file.write(data)

    def close(self, ending: str) -> None:
        lost = "" if self._room else "[what it wrote after that is lost]\n"
        with suppress(OSError):
            self._file.write(f"\n{lost}[{ending}]\n".encode())
        self._file.close()


def _new_file(folder: Path) -> tuple[Path, BinaryIO]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"run_{os.urandom(8).hex()}.txt"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return path, os.fdopen(file, "wb", buffering=0)
