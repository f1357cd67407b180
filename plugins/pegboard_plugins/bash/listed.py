"""The files that a line lists, as they are there when it is judged."""

import os
import stat
from collections import deque
from collections.abc import Iterator

from pegboard.files import resolved_path
from pegboard.unstable import folder_entries, shell_fits
from pegboard_plugins.bash.findexpression import acted_on
from pegboard_plugins.bash.findings import Listing

MOST_FILES = 20_000
"""So many files below a folder are looked at."""
_OBJECTS = "/.git/objects"
"""Has very many files, of which none runs."""
_KERNEL = frozenset({"/dev", "/proc", "/sys"})
"""What is there is of the system's running, and other judges look after it."""


def listed_files(listing: Listing) -> list[str]:
    """Return the paths that may be in a listing; of a folder with very many files some."""
    files = dict(_below(listing))
    if not listing.is_find:
        names = (each for each, (_, is_folder) in files.items() if not is_folder)
        return [files[each][0] for each in names if _fits(each, listing)]
    asked = files.items() if "-empty" in listing.texts else ()
    empty = {each for each, (path, _) in asked if _is_empty(path)}
    shown = acted_on(
        listing.texts, {each: is_folder for each, (_, is_folder) in files.items()}, empty
    )
    return [files[each][0] for each in shown]


def _below(listing: Listing) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Yield each file below the folder as it is shown, with its path, and whether it is a folder.

    The nearest come first.
    """
    start = listing.start.rstrip("/")
    yield listing.start, (listing.folder, True)
    folders, number = deque([(start, resolved_path(listing.folder))]), 0
    while folders and number < MOST_FILES:
        shown, folder = folders.popleft()
        for name, is_folder in folder_entries(folder):
            number += 1
            path = f"{folder.rstrip('/')}/{name}"
            yield f"{shown}/{name}", (path, is_folder)
            if is_folder and not path.endswith(_OBJECTS) and path not in _KERNEL:
                folders.append((f"{shown}/{name}", path))


def _is_empty(path: str) -> bool:
    try:
        status = os.lstat(path)
        return not (os.listdir(path) if stat.S_ISDIR(status.st_mode) else status.st_size)  # noqa: PTH208
    except OSError:
        return False


def _fits(shown: str, listing: Listing) -> bool:
    """Whether a file is one of those that the words of a command name, or in such a folder."""
    inside = shown.removeprefix(f"{listing.start}/")
    name = inside.rpartition("/")[2]
    if inside.startswith(".git/") or (listing.hides and "/." in f"/{inside}"):
        return False
    return not listing.texts or any(
        shell_fits(text, inside)
        or shell_fits(text, name)
        or inside.startswith(f"{text.rstrip('/')}/")
        or text in (".", "./")
        for text in listing.texts
    )
