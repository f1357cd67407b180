"""Snapshots of the project's files, so that what a session did can be undone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pegboard import hookimpl
from pegboard.schema.config import Config

if TYPE_CHECKING:
    from pegboard import Workspace
    from pegboard.embedding import Places
    from pegboard.storage import Snapshots


@hookimpl
async def register_snapshots(
    config: Config, workspace: "Workspace", places: "Places", env: Mapping[str, str]
) -> "Snapshots | None":
    """Trees of a shadow repository of git, unless the user wants none."""
    if not config.snapshot:
        return None
    from pegboard_plugins.snapshots.late import LateSnapshots

    return LateSnapshots(workspace, folder=places.snapshots, env=env)
