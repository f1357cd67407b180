"""The section of the system prompt that describes the agent's machine, folder and user.

The plugin also adds a note on the state of the Git checkout to the first prompt of a session.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pegboard import SessionView, ToolError, hookimpl
from pegboard.processes import find_program
from pegboard.schema.message import Turn
from pegboard.schema.part import TextPart
from pegboard.unstable import open_workspace
from pegboard_plugins.shared import frontend

TIME_LIMIT_S = 1.0
"""The longest time for listing the tree, for which the prompt waits; then it is left out."""
LONGEST_OUTPUT_BYTES = 16 << 20
_STATUS = (
    *("-c", "core.fsmonitor=false", "status", "--porcelain", "-z"),
    *("--no-renames", "--ignore-submodules=all", "--untracked-files=normal"),
)
_UNTRACKED = "?? "
_MILLISECONDS = 1000
_ANSWERS = "The user is there, and can answer questions"
_NO_ANSWERS = "No user can answer: what needs permission is refused; decide the rest"
_PLATFORMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


@hookimpl
async def chat_system_transform(session: SessionView, system: tuple[str, ...]) -> tuple[str, ...]:
    """Append a section about the environment to the system prompt of a turn."""
    return (*system, surroundings(session)) if session.purpose == "turn" else system


def surroundings(session: SessionView) -> str:
    """Return a section about the environment: folders, git, platform, date, model and user.

    The section stays the same throughout a session, so that the provider's prompt cache holds. The
    date is the local date on which the session began. The check for Git runs once per prompt.
    """
    began = datetime.fromtimestamp(session.info.time.created / _MILLISECONDS, UTC).astimezone()
    prompt_id = session.turns[-1].prompt_id if session.turns else session.id
    git = "yes" if _is_repository(session.worktree, prompt_id) else "no"
    directory, root = plain(str(session.directory)), plain(str(session.worktree))
    platform = f"{_PLATFORMS.get(sys.platform, sys.platform)} {os.uname().release}"
    return "\n".join(
        (
            "# Where you work",
            f"- Session: {session.id}",
            f"- Working directory: {directory}",
            *([] if root == directory else [f"- Root of the project: {root}"]),
            f"- Git repository: {git}",
            f"- Platform: {platform}; bash runs commands",
            f"- Today's date: {began:%Y-%m-%d}",
            f"- Model: {session.model.provider_id}/{session.model.id}",
            f"- {_ANSWERS if session.interactive else _NO_ANSWERS}",
            f"- {_sandbox(session)}",
        )
    )


@lru_cache(maxsize=128)
def _is_repository(worktree: Path, prompt_id: str) -> bool:  # noqa: ARG001 - the key
    entry = worktree / ".git"  # an empty folder is none
    return entry.is_file() or (entry / "HEAD").exists()


def _sandbox(session: SessionView) -> str:
    """Return a line on the sandbox, so that the model knows the limits before a command fails."""
    config = session.config
    if config.sandbox == "off":
        return "Sandbox: none"
    network = "no network"
    if isinstance(config.sandbox_network, tuple):
        hosts = ", ".join(config.sandbox_network)
        network = f"of the network only these hosts, by the proxy in $HTTPS_PROXY: {hosts}"
    elif config.sandbox_network and config.sandbox == "workspace":
        network = "network"
    home = "; the home folder is empty" if config.sandbox == "strict" else ""
    return (
        "Sandbox: what commands start can write below the root of the project (not .git and"
        f" Pegboard's own files) and in $TMPDIR; {network}{home}"
    )


@hookimpl
async def chat_message(session: SessionView, message: Turn) -> Turn | None:
    """Add the state of the Git checkout to a session's first prompt, as a stored text part."""
    if session.info.model is not None or session.info.parent_id is not None or not message.parts:
        return None
    state = await tree_state(session.directory)
    if state is None:
        return None
    text = f"The checkout when this session began: {state}."
    part = TextPart(
        id=f"{message.parts[-1].id}0",  # behind the last one, and before whatever comes next
        session_id=session.id,
        message_id=message.info.id,
        text=f'<system-reminder session="{session.id}">\n{text}\n</system-reminder>',
        synthetic=True,
    )
    return Turn(info=message.info, parts=(*message.parts, part))


async def tree_state(directory: Path) -> str | None:
    """Return the Git branch and the number of uncommitted files, or None outside a repository.

    The count is left out if the repository's own settings would make git run programs.
    """
    found = await asyncio.to_thread(_checkout, directory)
    if found is None:
        return None
    facts = [f"branch {plain(found.branch)}" if found.branch else "no branch (detached HEAD)"]
    if found.git is not None:
        facts += await _changes(found.git, found.root)
    return ", ".join(facts)


@lru_cache(maxsize=128)
def plain(name: str) -> str:
    """Return the name with `?` in place of `<`, `>` and characters that are not printable."""
    return "".join(sign if sign.isprintable() and sign not in "<>" else "?" for sign in name)


class _Checkout(NamedTuple):
    """A Git worktree; `git` is the path of a git program that is safe to run here, or None."""

    root: Path
    branch: str | None
    git: str | None


def _checkout(directory: Path) -> _Checkout | None:
    workspace = open_workspace(directory)
    if workspace.git_dir is None:
        return None
    root, git = workspace.worktree, None
    if not frontend.running_settings(workspace.git_dirs):
        git = find_program("git", os.environ, root=root)
    return _Checkout(root, frontend.branch(workspace), git)


async def _changes(program: str, root: Path) -> list[str]:
    from pegboard.processes import run_program  # only a checkout needs it

    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = await run_program(
            [program, *_STATUS],
            cwd=root,
            env={**env, "GIT_OPTIONAL_LOCKS": "0"},
            timeout_s=TIME_LIMIT_S,
            limit_bytes=LONGEST_OUTPUT_BYTES,
        )
    except ToolError:
        return []
    if done.exit_code != 0 or done.flooded:
        return []
    entries = [entry for entry in done.output.decode(errors="replace").split("\0") if entry]
    new = sum(entry.startswith(_UNTRACKED) for entry in entries)
    if not entries:
        return ["no uncommitted changes"]
    return [f"{len(entries) - new} changed and {new} untracked files, which are the user's"]
