"""Programs that we run by ourselves, which no project can stand in for unless it may."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

_OWN_PROGRAMS = ("node_modules/.bin", ".venv/bin")
"""Where a project installs programs for itself."""


def search_path(env: Mapping[str, str]) -> str:
    """The PATH without entries that are relative, empty ones too: they lead into the project."""
    entries = env.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, entries)) or os.defpath


def find_program(name: str, env: Mapping[str, str], *more: str) -> str | None:
    """The program of this name on the user's PATH, or in one of `more` folders behind it."""
    return shutil.which(name, path=os.pathsep.join((search_path(env), *more)))


class ProgramSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Where the programs for a project are: `vouched` when the user has said yes to it.

    Without that none comes from the project itself. `env` has the PATH.
    """

    root: Path
    vouched: bool
    env: Mapping[str, str]

    def find(self, name: str, *, near: Path | None = None) -> str | None:
        """The program, of the project's own packages around the file `near` first, if given.

        A name with a slash is a path. Reads a few names; blocks.
        """
        if not self.vouched:
            strange = "/" in name and not os.path.isabs(name)  # noqa: PTH117 - may be no path
            return None if strange else find_program(name, self.env)
        folders = near.parents if near is not None else ()
        own = [
            str(folder / place)
            for folder in folders
            if folder.is_relative_to(self.root)
            for place in _OWN_PROGRAMS
        ]
        found = shutil.which(name, path=os.pathsep.join(own)) if own else None
        return found or find_program(name, self.env)
