"""The paths that commands in a substitution print, as in `$(pwd)` or `$(git rev-parse ...)`."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pegboard_plugins.bash.marks import is_wild, marked, plain
from pegboard_plugins.bash.syntax import ANYTHING, Simple, Statement, StatementBlock, Word, lone

_IN_ORDER = frozenset({"list", "and", "group"})
_TOP = "--show-toplevel"
_OWN = frozenset({"--git-dir", "--absolute-git-dir", "--git-common-dir"})
_FORMAT = "--path-format="


def put_out(
    body: Sequence[Statement], folders: Sequence[str], texts_of: Callable[[Word], Sequence[str]]
) -> tuple[str, ...]:
    """Return the paths that statements print when run in `folders`, as marked texts; () if unknown.

    Known are `pwd`, also after a `cd`, `dirname` and `git rev-parse`.
    """
    one = lone(body)
    if one is None:
        return _reached(body, folders, texts_of)
    words = [word.literal or "" for word in one.words]
    if words[0] == "pwd" and {"-L", "-P"}.issuperset(words[1:]):
        return tuple(folders)
    if found := [each for folder in folders for each in places_of_git(words, plain(folder))]:
        return tuple(map(marked, found))
    texts = texts_of(one.words[1]) if len(words) == len(("dirname", "x")) else ()
    is_known = len(texts) == 1 and ANYTHING not in texts[0] and texts[0][:1] != "~"
    is_known &= all(piece.kind != "glob" for word in one.words for piece in word.pieces)
    return (str(Path(texts[0]).parent),) if words[0] == "dirname" and is_known else ()


def _reached(
    body: Sequence[Statement], folders: Sequence[str], texts_of: Callable[[Word], Sequence[str]]
) -> tuple[str, ...]:
    """Return the folders that `pwd` may print after a `cd`; `ANYTHING` after other statements."""
    parts = body
    while len(parts) == 1 and isinstance(parts[0], StatementBlock) and parts[0].kind in _IN_ORDER:
        parts = parts[0].parts
    words = [one.words if isinstance(one, Simple) else [] for one in parts]
    names = [word.literal for each in words for word in each[:1]]
    if "pwd" not in names:
        return ()
    texts: Sequence[str] = (ANYTHING,)
    if names == ["cd", "pwd"] and len(parts) == len(names) and len(words[0]) == len(("cd", "x")):
        texts = texts_of(words[0][1])
    if any(ANYTHING in text or is_wild(text) or text[:1] == "-" for text in (*texts, *folders)):
        return (ANYTHING,)
    reached = (os.path.join(plain(each), plain(text)) for each in folders for text in texts)  # noqa: PTH118 - texts
    return tuple(dict.fromkeys((*folders, *(marked(os.path.normpath(path)) for path in reached))))


def places_of_git(texts: Sequence[str], folder: str) -> tuple[str, ...]:
    """Return the paths that `git rev-parse` with these words may print in the folder.

    In the top folder git may print a relative path. The result always names `.git`. If the
    repository lies elsewhere, `.git` is a link or a file that is protected in the same way.
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
