"""Copies of device files for processes of root, which could change the mode of a real device."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_NAMES = ("null", "zero", "full", "random", "urandom", "tty")
"""Those of the machine that `bwrap --dev` hands on, as its manual says."""
_MODE = 0o666


def copies(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield copies of devices in the folder, each with the path of the original.

    There are none on machines that cannot create device files, or cannot open them in the folder.
    """
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = [(_copy(folder / name, f"/dev/{name}"), f"/dev/{name}") for name in _NAMES]
        os.close(os.open(made[0][0], os.O_RDONLY))
        yield from made


def _copy(path: Path, device: str) -> Path:
    """Return the path of a device's copy; create the copy again if it was changed or removed."""
    number = Path(device).stat().st_rdev
    if not path.exists() or path.lstat().st_rdev != number:
        draft = path.with_name(f"{path.name}.{os.urandom(6).hex()}")
        os.mknod(draft, _MODE | stat.S_IFCHR, number)
        draft.replace(path)
    path.chmod(_MODE)
    return path
