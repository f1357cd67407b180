"""A permission policy: folders that no call edits.

The user lists them with `plugins.permission_policy.options.frozen`. A policy can tighten and never
loosen: None leaves the decision to others, and the strictest opinion of all plugins counts. When it
raises, as for options that it cannot read, the request is denied.

A policy judges the request. The sandbox bounds what a script does once it runs.
"""

from collections.abc import Sequence

from pegboard import InvalidInputError, SessionView, hookimpl
from pegboard.schema.config import PluginConfig
from pegboard.schema.session import PermissionRequest, Verdict

NAME = "permission_policy"
"""The plugin's name: that of its file, or of its entry point."""


@hookimpl
async def permission_ask(session: SessionView, request: PermissionRequest) -> Verdict | None:
    """Deny edits, and ask before shell lines; user and model read the reason."""
    for folder in _frozen(session):
        for pattern in request.patterns:
            if request.permission == "edit" and f"{pattern}/".startswith(f"{folder}/"):
                return Verdict(action="deny", reason=f"{folder} is frozen: change its source")
            if request.permission == "bash" and folder in pattern:
                # `firm`: an approval of an earlier line does not answer for this one.
                return Verdict(action="ask", reason=f"the line names {folder}", firm=True)
    return None


def _frozen(session: SessionView) -> Sequence[str]:
    """Return the folders, as paths from the root of the repository, as those of edits are."""
    folders = session.config.plugins.get(NAME, PluginConfig()).options.get("frozen", ["vendor"])
    if not isinstance(folders, list) or not all(isinstance(each, str) for each in folders):
        raise InvalidInputError(f"plugins.{NAME}.options.frozen is a list of folders")
    return folders
