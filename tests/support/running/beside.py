"""Plugins of other people that are installed beside Pegboard: they have no say in its tests.

This process and its forks do not find them; in programs that start anew they are switched off.
"""

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path

VARIABLE = "PEGBOARD_DISABLE_PLUGINS"
_SECTIONS = ("[pegboard]", "[pegboard.commands]")


def _metadata() -> list[Path]:
    """The metadata of distributions that bring plugins or commands and are not Pegboard's."""
    found = (path for entry in sys.path for path in Path(entry).glob("*/entry_points.txt"))
    brings = (path for path in found if any(each in path.read_text() for each in _SECTIONS))
    return [path.parent for path in brings if Distribution.at(path.parent).name != "pegboard"]


_FOLDERS = _metadata()
_NAMES = tuple(
    f"{distribution.name.lower().replace('_', '-')}/{point.name}"
    for distribution in map(Distribution.at, _FOLDERS)
    for point in distribution.entry_points
    if point.group == "pegboard"
)


def without_others(disabled: str = "") -> str:
    """The variable's value, with which they are switched off beside those that are already."""
    return ",".join(filter(None, (disabled, *_NAMES)))


def path_without_others() -> list[str]:
    """`sys.path` with folders that are as they were, but for the metadata of others."""
    return [_mirrors().get(entry, entry) for entry in sys.path]


@cache
def _mirrors() -> dict[str, str]:
    return {str(folder): _mirror(folder) for folder in {each.parent for each in _FOLDERS}}


def _mirror(folder: Path) -> str:
    """A folder of the same name, by which Pegboard knows where packages are installed."""
    mirror = Path(tempfile.mkdtemp(prefix="beside-")) / folder.name
    mirror.mkdir()
    for entry in folder.iterdir():
        if entry not in _FOLDERS:
            (mirror / entry.name).symlink_to(entry)
    atexit.register(_remove, mirror.parent, os.getpid())
    return str(mirror)


def _remove(mirror: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(mirror, ignore_errors=True)
