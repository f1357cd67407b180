"""Programs that we run by ourselves, which no project can stand in for."""

import os
import shutil
from collections.abc import Mapping


def search_path(env: Mapping[str, str]) -> str:
    """The PATH without entries that are relative, empty ones too: they lead into the project."""
    entries = env.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, entries)) or os.defpath


def find_program(name: str, env: Mapping[str, str], *more: str) -> str | None:
    """The program of this name on the user's PATH, or in one of `more` folders behind it."""
    return shutil.which(name, path=os.pathsep.join((search_path(env), *more)))
