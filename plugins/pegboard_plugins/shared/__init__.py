"""Code that several built-in plugins share; it is not public.

This module has the functions that plugins need before they import the rest of the package.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from weakref import ref

    from pegboard import Host
    from pegboard.app import UserFolders

BUNDLE_PLACES = (".agents/plugins", ".pegboard/bundles")
"""The folders of a project in which each subfolder may be a bundle."""
_ENVIRONMENTS = (".venv", "venv")
_ACTIVE = ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT")


class FileWarnings:
    """The warnings of a plugin about files of an App, each of which the user gets once."""

    def __init__(self, app: "ref[Host]") -> None:
        self._app = app
        self._shown: set[str] = set()

    async def show(self, session_id: str, text: str) -> None:
        """Show a warning in a session, unless a session of the App has already shown it."""
        if text not in self._shown and (app := self._app()) is not None:
            self._shown.add(text)
            await app.warn(session_id, text)


def environments(worktree: "Path") -> "tuple[Path, ...]":
    """Return the existing virtual environments of the project at `worktree`, active ones first."""
    active = (worktree / name for each in _ACTIVE if (name := os.environ.get(each)))
    inside = (each for each in active if each.is_relative_to(worktree))
    own = (worktree / name for name in _ENVIRONMENTS)
    return tuple(folder for folder in (*inside, *own) if folder.is_dir())


def has_bundles(places: "UserFolders", worktree: "Path") -> bool:
    """Return whether the user or project may have bundles (folders of skills and agents)."""
    return places.bundles.exists() or has_project_bundles(worktree)


def has_project_bundles(worktree: "Path") -> bool:
    """Return whether the project at `worktree` has a folder for bundles."""
    return any((worktree / name).is_dir() for name in BUNDLE_PLACES)


def rule_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Add the options `--allow` and `--deny` to a command; `RunRules` parses their values."""
    import click  # few plugins have commands

    allow = "Allow in this run what would be asked, such as `Bash(git *)`; repeatable."
    deny = "Deny this in this run, such as `Edit(docs/**)`; repeatable."
    command = click.option("--deny", multiple=True, metavar="RULES", help=deny)(command)
    return click.option("--allow", multiple=True, metavar="RULES", help=allow)(command)
