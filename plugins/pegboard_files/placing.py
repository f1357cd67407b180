"""Files moved and removed step by step, so that no link put in their way leads elsewhere."""

import os
import stat
from pathlib import Path

from pegboard.kit import folder_of


def is_resolved(path: Path) -> bool:
    """Whether there is something at an absolute path, no part of which is a link by now."""
    try:
        with folder_of(path) as folder:
            facts = os.stat(path.name or ".", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return not stat.S_ISLNK(facts.st_mode)


def move_resolved(path: Path, target: Path) -> None:
    """Rename a file, or the link that the last name is; missing folders of `target` are made.

    :raises OSError: when it cannot be renamed, or when a folder on one of the ways is a link.
    """
    with folder_of(path) as source, folder_of(target, make=True) as folder:
        os.rename(path.name, target.name, src_dir_fd=source, dst_dir_fd=folder)


def remove_resolved(path: Path) -> None:
    """Remove a file, an empty folder, or the link that the last name is.

    :raises OSError: when it cannot be removed, or when a folder on the way is a link.
    """
    with folder_of(path) as folder:
        facts = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            os.rmdir(path.name, dir_fd=folder)
        else:
            os.unlink(path.name, dir_fd=folder)
