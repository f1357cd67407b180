"""Where a path of a call leads, and which folder is to be asked for where that is outside."""

import os
from pathlib import Path

from pegboard.errors import ToolError
from pegboard.session.engine import Engine


def placed(engine: Engine, path: Path) -> tuple[Path, Path | None]:
    """The path with links resolved, and the folder to be asked for; None for a path within.

    A relative path starts at the session's directory. Reads the disk.

    :raises ToolError: for what is no path.
    """
    workspace = engine.workspace
    try:
        real = (workspace.directory / path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ToolError(f"{str(path)!r} is no path: {error}") from error
    if real.is_relative_to(workspace.directory) or real.is_relative_to(workspace.worktree):
        return real, None
    # An output is for who was told its name: the folder has those of all projects.
    if real.parent == engine.output_dir.resolve():
        return real, None
    is_folder = os.path.isdir(real)  # noqa: PTH112 - no error where the name is too long for one
    return real, real if is_folder else real.parent
