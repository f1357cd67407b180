"""The piece of the system prompt that says where the agent works."""

import sys
from datetime import UTC, datetime

from pegboard import SessionView, hookimpl

_MILLISECONDS = 1000
_PLATFORMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


@hookimpl
async def chat_system_transform(session: SessionView, system: tuple[str, ...]) -> tuple[str, ...]:
    """The system prompt with the session's surroundings at the end."""
    return (*system, surroundings(session))


def surroundings(session: SessionView) -> str:
    """Directory, worktree, git, platform and date.

    The same text all through a session, so that providers find their cached prefix again: the
    date is that of the session's first moment, in local time.
    """
    began = datetime.fromtimestamp(session.info.time.created / _MILLISECONDS, UTC).astimezone()
    git = "yes" if (session.worktree / ".git").exists() else "no"
    return "\n".join(
        (
            "Where you work:",
            f"- Working directory: {session.directory}",
            f"- Root of the project: {session.worktree}",
            f"- Git repository: {git}",
            f"- Platform: {_PLATFORMS.get(sys.platform, sys.platform)}",
            f"- Today's date: {began:%Y-%m-%d}",
        )
    )
