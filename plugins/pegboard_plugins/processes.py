"""The processes of tools: within the user's limits, each ended with all that it has started."""

from typing import TYPE_CHECKING

from pegboard import hookimpl

if TYPE_CHECKING:
    from pegboard.processes import OpenProcesses, Processes
    from pegboard.schema.config import ProcessLimits


@hookimpl
async def register_processes() -> "OpenProcesses":
    """Return the processes of this machine, which Linux helps to find and to bound."""
    return open_processes


def open_processes(limits: "ProcessLimits") -> "Processes":
    """Return the runner of one App's tool processes."""
    from pegboard.unstable import ToolProcesses  # a run that starts no process does without it

    return ToolProcesses(limits)
