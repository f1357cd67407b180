"""The shell that runs a line, with the options for which the parser was written."""

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
    """Return the shell and its options, to put before the line; bash ignores exported functions.

    A bash below `root`, the top folder of the project, is never used.
    """
    bash = _bash(root)
    return ["/bin/sh", "-c"] if bash is None else [bash, "-p", "-c"]


def is_read_as_bash(root: Path) -> bool:
    """Return whether the installed bash is new enough for the whole grammar of the parser."""
    bash = _bash(root)
    return bash is not None and _major(bash) >= _FIRST


def _bash(root: Path) -> str | None:
    """Return the path of bash or None; the path is cached until the bash file changes."""
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
    """Return numbers that identify a version of a file, or None if the file is missing."""
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
