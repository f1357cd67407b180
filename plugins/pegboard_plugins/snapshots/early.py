"""The facts of a worktree and of its sessions that are needed before the first snapshot."""

from collections.abc import Mapping
from pathlib import Path


class Lineages:
    """Sessions with their ancestors; a subagent's work also counts as its callers'."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """Record a session; return it and its ancestors."""
        above = () if parent_id is None else self._known.get(parent_id, (parent_id,))
        return self._known.setdefault(session_id, (session_id, *above))


def refusal(worktree: Path, env: Mapping[str, str]) -> str:
    """Return why no snapshots are taken of a worktree, "" if they are."""
    home = Path(env.get("HOME") or "/")
    if home.is_relative_to(worktree):
        return f"{worktree} is a home folder or above one, of which no snapshots are taken"
    return ""
