"""A log of decisions and tool calls; a change of any line is detected."""

from typing import TYPE_CHECKING

from pegboard import Host, ToolError, hookimpl
from pegboard.plugins import Stash, StashKey
from pegboard.schema.session import Decided, Verdict
from pegboard_plugins.audit.trail import Audit  # at the start: a first call shall not wait for it

if TYPE_CHECKING:
    from pegboard.app import UserFolders

_LOG = StashKey[Audit]()
_LIMIT_S = 60.0
"""Others may hold the log for 30 s; a disk that takes longer than this is one that fails."""


@hookimpl(timeout_s=_LIMIT_S)
async def permission_decided(
    decided: Decided, stash: Stash, places: "UserFolders", secrets: tuple[str, ...]
) -> Verdict | None:
    """Write a permission decision to the audit log; deny the request if it cannot be logged."""
    log = stash.setdefault(_LOG, lambda: Audit.at(places, secrets=secrets))
    try:
        await log.write(decided.kind, decided.facts)
    except ToolError as error:
        return Verdict(action="deny", reason=str(error))
    return None


@hookimpl(timeout_s=_LIMIT_S)
async def shutdown(app: Host) -> None:
    """Flush the lines of the audit log to the disk."""
    if (log := app.stash.get(_LOG)) is not None:
        await log.aclose()
