"""Where git keeps a repository, as `git rev-parse` puts it out."""

import os
from collections.abc import Sequence
from pathlib import Path

_TOP = "--show-toplevel"
_OWN = frozenset({"--git-dir", "--absolute-git-dir", "--git-common-dir"})
_FORMAT = "--path-format="


def places_of_git(texts: Sequence[str], folder: str) -> tuple[str, ...]:
    """Return the paths that a command with these words may put out in the folder.

    It is a relative one in the top folder. The folder of git is always called `.git`: where it is
    elsewhere, that name is a link or a file in its place, and as much protected.
    """
    if texts[:2] != ["git", "rev-parse"]:
        return ()
    words = [text for text in texts[2:] if not text.startswith(_FORMAT)]
    places = (folder, *map(str, Path(folder).parents))
    top = next((each for each in places if os.path.lexists(f"{each}/.git")), None)
    if top is None:
        return ()
    if words == [_TOP]:
        return (top,)
    if len(words) == 1 and words[0] in _OWN:
        found = ".git"
    elif len(words) == len(("--git-path", "x")) and words[0] == "--git-path":
        found = f".git/{words[1]}"
    else:
        return ()
    return (f"{top}/{found}", found) if top == folder else (f"{top}/{found}",)
