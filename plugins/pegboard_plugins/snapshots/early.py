"""Facts about a worktree and its sessions, which are needed before the first snapshot."""

from collections.abc import Mapping
from pathlib import Path


class Lineages:
    """The ancestors of each session, because a subagent's changes also count for its callers."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """Record a session; return the session's id and the ids of the sessions above it."""
        above = () if parent_id is None else self._known.get(parent_id, (parent_id,))
        return self._known.setdefault(session_id, (session_id, *above))


def refusal(worktree: Path, env: Mapping[str, str]) -> str:
    """Return why snapshots of the worktree must not be taken, or "" if they may be."""
    home = Path(env.get("HOME") or "/")
    if home.is_relative_to(worktree):
        return f"{worktree} is a home folder or above one, of which no snapshots are taken"
    return ""
