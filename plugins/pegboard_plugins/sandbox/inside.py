"""The check that an enclosed command only affects the project."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pegboard.files import resolved_path
from pegboard.permissions import Ruleset, deciding_rule
from pegboard.schema.session import PermissionRequest

RUNS_IN = "runs_in"
"""In a request's metadata: the folder of a process that the tool starts by its context alone."""
_PATHS = ("paths", "writes", "destroys", "linked", "lands")
_OWN_SOURCES = frozenset({"config", "agent"})


def stays_inside(
    request: PermissionRequest, rulesets: Sequence[Ruleset], *, worktree: Path, home: Path
) -> bool:
    """Return whether a command needs no question, because the sandbox keeps it in the project.

    False if a permission rule other than the user's own `*` asks, if the command is unclear, or if
    it names a path outside of the project. Reads the disk.
    """
    folder = request.metadata.get(RUNS_IN)
    if not folder or request.metadata.get("unclear") or _is_named(request, rulesets, home):
        return False
    paths = _paths(request, str(folder), worktree)
    return all(path and Path(resolved_path(path)).is_relative_to(worktree) for path in paths)


def _is_named(request: PermissionRequest, rulesets: Sequence[Ruleset], home: Path) -> bool:
    """Return whether a permission rule asks, other than `*` in the user's configuration."""
    speaking = (
        (ruleset.source, deciding_rule(ruleset, request.permission, text, home=home))
        for ruleset in rulesets
        for text in request.patterns or ("*",)
    )
    return any(
        rule.action == "ask" and (rule.pattern != "*" or source not in _OWN_SOURCES)
        for source, rule in speaking
        if rule is not None
    )


def _paths(request: PermissionRequest, folder: str, worktree: Path) -> Iterator[str]:
    yield folder
    if not any(key in request.metadata for key in _PATHS):  # then its patterns are paths
        yield from (str(worktree / pattern) for pattern in request.patterns)
    for key in _PATHS:
        found = request.metadata.get(key)
        yield from found if isinstance(found, list) else ()
