"""The shell that runs a line: it is started as the reader of the line takes it to be."""

import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from pegboard import find_program

_FIRST = 5
"""Older ones, such as that of macOS, read some of the grammar otherwise."""
_VERSION = re.compile(r"version (\d+)\.")
_LONGEST_WAIT_S = 10


def shell_argv(root: Path) -> list[str]:
    """What stands before the line: a bash without functions and options from the environment.

    It is none that lies in the project, of which `root` is the top.
    """
    bash = find_program("bash", os.environ, root=root)
    return ["/bin/sh", "-c"] if bash is None else [bash, "-p", "-c"]


def is_read_as_bash(root: Path) -> bool:
    """Whether the shell is one that reads all of the grammar; asks it once for its version."""
    bash = find_program("bash", os.environ, root=root)
    return bash is not None and _major(bash) >= _FIRST


@lru_cache(maxsize=4)
def _major(path: str) -> int:
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_LONGEST_WAIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(done.stdout.decode(errors="replace"))
    return 0 if found is None else int(found[1])
