"""Terminals in the project's folder for users, and not for models."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from pegboard import App, InvalidInputError, PermissionDeniedError, Workspace
from pegboard_plugins.server.terminal import Terminal, TerminalSize

SHELLS = ("/bin/bash", "/bin/sh")
"""Tried in this order where `SHELL` names none."""
_KIND = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


class TerminalOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The program to run in the project's folder, by default the user's shell.

    `env` is added to the environment, which contains no keys of providers.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: Mapping[str, str] = {}
    size: TerminalSize = TerminalSize()


async def open_terminal(
    app: App, order: TerminalOrder, on_output: Callable[[bytes], None]
) -> Terminal:
    """Start a program at a terminal, which the caller closes; no permission is required.

    :raises PermissionDeniedError: for a folder outside of the project.
    :raises InvalidInputError: when there is no such program or folder.
    """
    env = {**await app.user_env(), **_KIND, **order.env}
    command = order.command or shell(env)
    return await Terminal.open(
        (command, *order.args),
        cwd=await asyncio.to_thread(_folder, app.workspace, order.cwd),
        env=env,
        size=order.size,
        on_output=on_output,
    )


def shell(env: Mapping[str, str]) -> str:
    """Return the user's shell."""
    named = (env.get("SHELL", ""), *SHELLS)
    return next((path for path in named if path and os.access(path, os.X_OK)), SHELLS[-1])


def _folder(workspace: Workspace, named: str | None) -> Path:
    """Return the folder in which to start a program; without a name, the project's directory.

    :raises PermissionDeniedError: when the folder is outside of the project.
    """
    if named is None:
        return workspace.directory
    if "\0" in named:
        raise InvalidInputError("the name of a folder has a NUL in it")
    try:
        real = (workspace.directory / named).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise InvalidInputError(f"no such folder: {named[:200]}") from error
    if not any(real.is_relative_to(top) for top in (workspace.directory, workspace.worktree)):
        raise PermissionDeniedError(f"outside of the project: {named[:200]}")
    return real
