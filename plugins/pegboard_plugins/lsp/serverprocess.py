"""The process of a language server: its pipes, its end, and its memory."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

HEAD_BYTES = 1 << 16
"""No head of a message is longer."""
EXIT_S = 1.0
"""How long the system may take to end a process that is killed."""


class _Pipes(asyncio.subprocess.SubprocessStreamProtocol):
    """The streams of a process; `wait` waits until the process and its streams end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=HEAD_BYTES, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        self.exited.set()
        super().process_exited()


@asynccontextmanager
async def running(
    command: Sequence[str], folder: Path, env: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process in a new session; kill it at the end of the `async with` block.

    :raises OSError: when it cannot be started.
    """
    loop = asyncio.get_running_loop()
    transport, pipes = await loop.subprocess_exec(
        lambda: _Pipes(loop),
        *command,
        cwd=folder,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield asyncio.subprocess.Process(transport, pipes, loop)
    finally:
        kill_group(transport.get_pid())
        with suppress(TimeoutError):
            await asyncio.wait_for(pipes.exited.wait(), EXIT_S)
        transport.close()  # else what is unread would keep who waits for the process


def kill_group(pid: int) -> None:
    """Kill a process and its process group, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def rss_bytes(pid: int) -> int:
    """Return the memory of a process and its children in bytes, or 0 if it cannot be read."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(rss_bytes(int(child)) for child in children)
