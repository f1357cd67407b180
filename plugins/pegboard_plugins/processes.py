"""The processes of tools, which have limits and end together with their child processes."""

from typing import TYPE_CHECKING

from pegboard import hookimpl

if TYPE_CHECKING:
    from pegboard.processes import OpenProcesses, Processes
    from pegboard.schema.config import ProcessLimits


@hookimpl
async def register_processes() -> "OpenProcesses":
    """Return the function that opens the tool processes of an App."""
    return open_processes


def open_processes(limits: "ProcessLimits") -> "Processes":
    """Return the object that runs the tool processes of one App."""
    from pegboard.unstable import ToolProcesses  # a run that starts no process does without it

    return ToolProcesses(limits)
