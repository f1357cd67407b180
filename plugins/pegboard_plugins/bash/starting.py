"""The shell that runs a line, started in the state that the line's reader assumes."""

import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from pegboard.processes import find_program
from pegboard.unstable import try_program

_FIRST = 5
"""Older ones, such as that of macOS, read some of the grammar otherwise."""
_VERSION = re.compile(r"version (\d+)\.")
_LONGEST_WAIT_S = 10
_Identity = tuple[int, int, int] | None


def shell_argv(root: Path) -> list[str]:
    """Return the arguments before the line: a bash without the environment's functions.

    It never lies in the project, of which `root` is the top.
    """
    bash = _bash(root)
    return ["/bin/sh", "-c"] if bash is None else [bash, "-p", "-c"]


def is_read_as_bash(root: Path) -> bool:
    """Return whether the installed bash reads the whole grammar; its version is asked once."""
    bash = _bash(root)
    return bash is not None and _major(bash) >= _FIRST


def _bash(root: Path) -> str | None:
    """Return the path of bash, looked up once and again when the file changes."""
    path = os.environ.get("PATH", os.defpath)
    bash, identity = _find(path, root)
    if bash is None or _identity(bash) != identity:
        _find.cache_clear()
        bash, _ = _find(path, root)
    return bash


@lru_cache(maxsize=4)
def _find(path: str, root: Path) -> tuple[str | None, _Identity]:
    bash = find_program("bash", {"PATH": path}, root=root)
    return bash, None if bash is None else _identity(bash)


def _identity(path: str) -> _Identity:
    """Return the identity of a file, which changes when the file is changed or moved."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - a text, asked for at each call
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_ctime_ns


@lru_cache(maxsize=4)
def _major(path: str) -> int:
    try:
        done = try_program((path, "--version"), timeout_s=_LONGEST_WAIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(done.stdout.decode(errors="replace"))
    return 0 if found is None else int(found[1])
