"""A search process that is ended as soon as there is enough output."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from pegboard import ToolContext, ToolError
from pegboard.enclosing import ProcessResult

KEPT_BYTES = 16 << 20
"""Output is read as it comes; the part that is stored must not need a file of its own."""

UNREAD_LIMIT_BYTES = 4 << 20
"""More output without a result is not that of a search; names of binary files come to less."""


async def run_until(  # noqa: PLR0913 - what `context.run` needs, and when to end it
    context: ToolContext,
    argv: Sequence[str],
    *,
    enough: asyncio.Event,
    on_output: Callable[[str], int],
    timeout_s: float,
    cwd: Path | None = None,
) -> ProcessResult | None:
    """Run a process until it ends, or end it and return None when `enough` is set.

    `on_output` receives the output in chunks. It returns the number of characters that it holds
    back because a search result is incomplete. The process has ended when this function returns or
    is cancelled.

    :raises ToolError: when the program or the directory does not exist, and when more than
      `UNREAD_LIMIT_BYTES` are held back.
    """
    flooded = asyncio.Event()

    def hear(text: str) -> None:
        if not flooded.is_set() and on_output(text) > UNREAD_LIMIT_BYTES:
            flooded.set()
            enough.set()

    running = asyncio.create_task(
        context.run(argv, cwd=cwd, timeout_s=timeout_s, limit_bytes=KEPT_BYTES, on_output=hear)
    )
    watching = asyncio.create_task(enough.wait())
    try:
        # The process has its own time limit.
        await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
        if flooded.is_set():
            raise ToolError(
                f"{argv[0]} printed {UNREAD_LIMIT_BYTES >> 20} MiB without a result: check which"
                " program that is"
            )
        return running.result() if running.done() else None
    finally:
        # Both end at once: cancelling kills the process.
        for task in (running, watching):
            task.cancel()
        await asyncio.wait({running, watching})
