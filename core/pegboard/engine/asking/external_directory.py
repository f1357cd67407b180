"""Where a path of a call leads, and what is asked for where that is outside."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from pegboard.engine.content.truncate import is_output
from pegboard.errors import ToolError
from pegboard.kit.openat import resolved_path
from pegboard.paths import Places
from pegboard.workspace import Workspace


async def asked_path(
    workspace: Workspace, places: Places, path: Path, ask: Callable[..., Awaitable[None]]
) -> Path:
    """The path with links resolved, once it is within, or `ask` lets the call out.

    A relative path starts at the session's directory. `ask` is that of a `ToolContext`.

    :raises ToolError: for what is no path.
    """
    real, folder = await asyncio.to_thread(_placed, workspace, places, path)
    if folder is not None:
        pattern = str(folder / "*")
        await ask(
            "external_directory",
            (pattern,),
            always=(pattern,),
            metadata={"filepath": str(real), "parentDir": str(folder)},
        )
    return real


def _placed(workspace: Workspace, places: Places, path: Path) -> tuple[Path, Path | None]:
    """The path with links resolved, and the folder to be asked for; None for a path within.

    Reads the disk.

    :raises ToolError: for what is no path.
    """
    try:
        with suppress(OSError):
            (workspace.directory / path).lstat()
    except ValueError as error:
        raise ToolError(f"{str(path)!r} is no path: {error}") from error
    real = Path(resolved_path(workspace.directory / path))
    if real.is_relative_to(workspace.directory) or real.is_relative_to(workspace.worktree):
        return real, None
    # An output is for who was told its name: the folders have those of all projects.
    if is_output(real, places.tool_output.resolve()):
        return real, None
    is_folder = os.path.isdir(real)  # noqa: PTH112 - no error where the name is too long for one
    return real, real if is_folder else real.parent
