"""A permission policy: folders that nobody edits, and no pushes by subagents.

The user lists the folders with `plugins.permission_policy.options.frozen`. A policy can tighten
and never loosen: None is no opinion, and the strictest opinion of all plugins counts. It fails
closed: when it raises, as for options that it cannot read, the request is denied.
"""

from collections.abc import Iterator, Sequence

from pegboard import InvalidInputError, SessionView, hookimpl
from pegboard.schema.config import PluginConfig
from pegboard.schema.permission import PermissionRequest, Verdict

NAME = "permission_policy"
"""The plugin's name: that of its file, or of its entry point."""


@hookimpl
async def permission_ask(session: SessionView, request: PermissionRequest) -> Verdict | None:
    """A deny with the sentence that the model and the user read, or no opinion."""
    if request.permission == "edit":
        for path in _within(_frozen(session), request.patterns):
            return Verdict(action="deny", reason=f"{path} is frozen: change its source instead")
    pushes = any(line.startswith("git push") for line in request.patterns)
    if request.permission == "bash" and pushes and session.depth > 0:
        return Verdict(action="deny", reason="subagents do not push")
    return None


def _frozen(session: SessionView) -> Sequence[str]:
    folders = session.config.plugins.get(NAME, PluginConfig()).options.get("frozen", ["vendor"])
    if not isinstance(folders, list) or not all(isinstance(each, str) for each in folders):
        raise InvalidInputError(f"plugins.{NAME}.options.frozen is a list of folders")
    return folders


def _within(folders: Sequence[str], paths: Sequence[str]) -> Iterator[str]:
    """The paths below a folder; both are relative to the root of the repository."""
    for path in paths:
        if any(path == each or path.startswith(f"{each}/") for each in folders):
            yield path
