"""Commands in the background: how the tools start, list and stop such commands."""

import asyncio
import os
import time
from pathlib import Path

from pegboard import ToolContext, ToolResult
from pegboard.processes import BackgroundProcess
from pegboard_plugins.bash.display import plain

SETTLE_S = 1.0
"""How long a command is watched before the call ends: most that fail do it at once."""
SHOWN_BYTES = 4000
"""The end of the output that a call tells; the file has all of it."""


async def left_running(
    context: ToolContext, argv: list[str], cwd: Path, *, command: str, description: str
) -> ToolResult:
    """Start a command in the background, and return the output of the command's first second."""
    process = await context.background.start(
        argv, cwd=cwd, env=await context.process_env(), title=description or command
    )
    try:
        process = await context.background.wait(process.id, limit_s=SETTLE_S)
    except asyncio.CancelledError:
        await context.background.stop(process.id)  # no result would report it
        raise
    output, note = await asyncio.to_thread(_ending, process), ""
    if process.running:
        until = "your task is done" if context.session.depth else "Pegboard ends"
        note = (
            f"[it runs on in the background as {process.id}, with process id {process.pid}, until"
            f" {until}. Its output goes to {process.output_path}; the tool processes can stop"
            " it]"
        )
    return ToolResult(
        output="\n".join(piece for piece in (output, note) if piece),
        title=process.title,
        metadata={
            "output": output,
            "description": description,
            "exit": process.exit_code,
            "background": process.id,
            "outputPath": str(process.output_path),
        },
    )


def listed(context: ToolContext) -> ToolResult:
    """Return a list of all background processes of the session."""
    processes = context.background.listed()
    going = sum(process.running for process in processes)
    return ToolResult(
        output="\n".join(map(_line, processes)) or "Nothing was left running in the background.",
        title=f"{going} running",
        metadata={"running": [process.id for process in processes if process.running]},
    )


async def stopped(context: ToolContext, process_id: str) -> ToolResult:
    """Stop a process, and return its state with the end of its output."""
    process = await context.background.stop(process_id)
    output = await asyncio.to_thread(_ending, process)
    return ToolResult(output=f"{_line(process)}\n\n{output}", title=f"Stopped {process_id}")


def _line(process: BackgroundProcess) -> str:
    seconds = max(time.time_ns() // 10**6 - process.started_at, 0) // 1000
    state = f"process id {process.pid}, running" if process.running else process.ending
    return (
        f"{process.id}: {process.title} ({state}; started {seconds} s ago; output in"
        f" {process.output_path})"
    )


def _ending(process: BackgroundProcess) -> str:
    """Return the last output of a background process, and how the process ended."""
    try:
        with process.output_path.open("rb") as file:
            start = max(os.fstat(file.fileno()).st_size - SHOWN_BYTES, 0)
            file.seek(start)
            text = plain(file.read(SHOWN_BYTES).decode(errors="replace")).strip("\n")
    except OSError as error:
        start, text = 0, f"[its output is lost: {error.strerror}]"
    cut = f"[{start:,} bytes before this are in the file]\n" * (start > 0)
    ending = "" if process.running or process.ending in text else f"\n\n[{process.ending}]"
    return f"{cut}{text}{ending}".strip("\n")
