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
    entry = session.worktree / ".git"  # an empty folder is none
    git = "yes" if entry.is_file() or (entry / "HEAD").exists() else "no"
    sandbox = [] if session.config.sandbox == "off" else [_sandbox(session)]
    return "\n".join(
        (
            "Where you work:",
            f"- Working directory: {session.directory}",
            f"- Root of the project: {session.worktree}",
            f"- Git repository: {git}",
            f"- Platform: {_PLATFORMS.get(sys.platform, sys.platform)}",
            f"- Today's date: {began:%Y-%m-%d}",
            *sandbox,
        )
    )


def _sandbox(session: SessionView) -> str:
    """What a model would otherwise find out by commands that fail."""
    config = session.config
    network = "no network"
    if isinstance(config.sandbox_network, tuple):
        hosts = ", ".join(config.sandbox_network)
        network = f"of the network only these hosts, by the proxy in $HTTPS_PROXY: {hosts}"
    elif config.sandbox_network and config.sandbox == "workspace":
        network = "network"
    home = "; the home folder is empty" if config.sandbox == "strict" else ""
    return (
        "- Sandbox: what commands start can write below the root of the project (not .git and"
        f" Pegboard's own files) and in $TMPDIR; {network}{home}"
    )
