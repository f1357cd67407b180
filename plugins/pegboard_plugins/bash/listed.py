"""The files that commands of a shell line would list, looked up before the line runs."""

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from pegboard.files import resolved_path, walk_files
from pegboard.unstable import folder_entries, shell_escape, shell_fits, shell_paths, shell_unescape
from pegboard_plugins.bash.findexpression import acted_on
from pegboard_plugins.bash.findings import FolderListing, Lost
from pegboard_plugins.bash.listings import finds

MOST_FILES = 20_000
"""So many files below a folder are looked at."""
_OBJECTS = "/.git/objects"
"""Folders with very many files, none of which runs."""
_KERNEL = frozenset({"/dev", "/proc", "/sys"})
"""What is there is of the system's running, and other judges look after it."""


def listed_files(listing: FolderListing) -> list[str]:
    """Return the paths that a listing may contain; for a very large folder, only some paths."""
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


def _below(listing: FolderListing) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Yield each file below the listed folder: its printed name, its path, and if it is a folder.

    The files nearest to the folder come first.
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


def _fits(shown: str, listing: FolderListing) -> bool:
    """Return whether the words of a listing select a file, or a folder that contains the file."""
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


_MOST_LEFT = 0.1
"""A line that leaves less of the files of a folder has destroyed it."""
_NUMBER = re.compile(r"(?:-n ?|--lines[= ]|-)([-+]?\d+)")
_CHOICE = re.compile(r"/([^/]+)/")
_GREPS = frozenset({"ag", "egrep", "fgrep", "grep", "rg"})


def gone(every: Sequence[Lost]) -> Iterator[str]:
    """Yield patterns for the files that are lost if the listed names are destroyed.

    A listing of nearly all visible files in a folder counts as the whole folder. Hidden files, and
    files that git ignores, need not be listed for that.
    """
    shown: dict[tuple[str, str], list[str]] = {}
    for lost in every:
        listing = lost.listing
        if listing is None:
            places = {_name_of(path, lost.shown): path for path in shell_paths(lost.place)}
            yield from (shell_escape(places[name]) for name in sifted([*places], lost.sieves))
            continue
        folder = os.path.normpath(shell_unescape(listing.folder))
        if (listing.start, folder) not in shown:
            shown[listing.start, folder] = _visible(listing, folder)
        there = shown[listing.start, folder]
        names = sifted(_chosen(there, listing), lost.sieves)
        depth = listing.start.rstrip("/").count("/") + bool(listing.start)
        tops = [sum(each.count("/") == depth for each in some) for some in (names, there)]
        if _is_all(len(names), len(there)) or _is_all(*tops):
            yield lost.place


def _is_all(number: int, there: int) -> bool:
    return number > 1 and number > (1 - _MOST_LEFT) * there


def _name_of(path: str, shown: str) -> str:
    """Return the last components of a path, as many as `shown` has."""
    return "/".join(path.split("/")[-1 - shown.count("/") :])


def _visible(listing: FolderListing, folder: str) -> list[str]:
    """Return the names below a folder as they are printed, without hidden and ignored files."""
    start = listing.start.rstrip("/")
    before = f"{start}/" if start or listing.start else ""
    inside = len(folder.rstrip("/")) + 1
    files = (path[inside:] for path in islice(walk_files(Path(folder)), MOST_FILES))
    return [f"{before}{name}" for name in files if "/." not in f"/{name}"]


def _chosen(names: Sequence[str], listing: FolderListing) -> list[str]:
    """Return the names that the words of a listing select."""
    if not listing.is_find:
        return [each for each in names if _fits(each, listing)]
    files: dict[str, bool] = {}
    for name in names:
        parts = name.split("/")
        files |= {"/".join(parts[:end]): True for end in range(1, len(parts))}
        files[name] = False
    return [each for each in acted_on(listing.texts, files) if not files[each]]


def sifted(names: list[str], sieves: Sequence[Sequence[str]]) -> list[str]:
    """Return the names that pass all filters; each filter gets the output of the previous one.

    A program that is not a known filter passes on all names.
    """
    for program, *words in sieves:
        base = program.rpartition("/")[2]
        sieve = _SIEVES.get(base) or (_searched if base in _GREPS else None)
        names = names if sieve is None else sieve(names, words)
    return names


def _searched(names: list[str], words: Sequence[str]) -> list[str]:
    """Return the names that a search such as `grep` prints; all for an unknown pattern."""
    flags = "".join(word for word in words if re.match(r"-[a-zA-Z]", word))
    is_inverse = "v" in flags or "--invert-match" in words
    sought = [word.replace("\\|", "|") for word in words if not word.startswith("-")][:1]
    fits = {name: finds("".join(sought), name) for name in names}
    return [name for name in names if fits[name] is None or fits[name] != is_inverse]


def _first(names: list[str], words: Sequence[str]) -> list[str]:
    found = _NUMBER.fullmatch(" ".join(words))
    return names[: int(found[1]) if found else 10]


def _last(names: list[str], words: Sequence[str]) -> list[str]:
    found = _NUMBER.fullmatch(" ".join(words))
    if found is None or not found[1].startswith("+"):
        return names[-abs(int(found[1]) if found else 10) :]
    return names[max(int(found[1]) - 1, 0) :]


def _columns(names: list[str], words: Sequence[str]) -> list[str]:
    """Return the names that an awk program prints; all names if the program is complex."""
    found = _CHOICE.match(" ".join(words))
    return _searched(names, [found[1]]) if found else names


_SIEVES: Mapping[str, Callable[[list[str], Sequence[str]], list[str]]] = {
    "head": _first,
    "tail": _last,
    **dict.fromkeys(("awk", "gawk", "mawk"), _columns),
}
