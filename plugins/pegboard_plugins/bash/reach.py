"""Which file names a command may print: no names, names in the project, or any names."""

import re
from collections.abc import Sequence
from enum import IntEnum

from pegboard_plugins.bash.findexpression import acted_on, start_texts
from pegboard_plugins.bash.programs import git_words, kinds


class Reach(IntEnum):
    """The file names that a command's output may contain, from none to any."""

    WORDS = 0
    """Numbers, dates, branches: no path that leads elsewhere."""
    FILES = 1
    """Files of the project, without those that run by themselves."""
    ANY = 2
    """Any file, such as the inside of `.git`."""


_WORDS = frozenset(
    {"arch", "date", "hostname", "locale", "lsb_release", "mktemp", "uname", "whoami"}
)
_PLACES = re.compile(r"--(git-(dir|path|common-dir)|absolute-git-dir|show-\S+|resolve-\S+)")
"""With these `git rev-parse` puts out a folder."""
_FOLDERS = (".git", ".git/hooks")
_RUNNING = (
    *(".git/HEAD", ".git/config", ".git/hooks/pre-commit", ".git/hooks/post-checkout"),
    *(".bashrc", "config", "HEAD", "hooks/pre-commit"),
)
_EVERYWHERE = re.compile(r"\.{0,2}/?|~.*|/.*|\.\./.*|\.git\b.*|\*", re.DOTALL)
_HIDDEN = re.compile(r"-[a-zA-Z]*[aA]|--al|(.*/)?\.[^./]")
_DEEP = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--(dereference-)?recursive")
_UNHIDES = re.compile(r"-[a-zA-Z]*[u.][a-zA-Z]*|--(hidden|unrestricted|no-ignore\S*)")
_CHOSEN = re.compile(r"--(include|exclude-dir|glob|type)\b.*|-[gt].*", re.DOTALL)


def reach(base: str, texts: Sequence[str]) -> Reach | None:
    """Return which file names a command may print, or None if the command prints no names."""
    does = kinds(base)
    if "numbers" in does or base in _WORDS:
        return Reach.WORDS
    if base == "git":
        return _of_git(texts)
    if "finds" in does:
        return _of_find(texts) if base in ("find", "gfind") else _of_search(base, texts)
    if "searches" in does:
        return _of_search(base, texts)
    if base == "ls":
        is_hidden = any(
            re.match(r"-[a-zA-Z]*[aA]|--al|--.*-al|(.*/)?\.[^/]", text) for text in texts
        )
        return Reach.ANY if is_hidden or any(map(_EVERYWHERE.fullmatch, texts)) else Reach.FILES
    return Reach.ANY if "lists" in does and base not in ("basename", "pwd") else None


def _of_git(texts: Sequence[str]) -> Reach:
    name = next(iter(git_words(texts)), "")
    if name == "rev-parse":
        return Reach.ANY if any(map(_PLACES.match, texts)) else Reach.WORDS
    if name in ("branch", "describe", "for-each-ref", "symbolic-ref", "tag", "rev-list"):
        return Reach.WORDS
    return Reach.ANY if name in ("config", "worktree", "var") else Reach.FILES


def _of_find(texts: Sequence[str]) -> Reach:
    """Return which files a `find` may print: `ANY` if these may be files that run by themselves."""
    files = {
        f"{start.rstrip('/')}/{name}": True for start in start_texts(texts) for name in _FOLDERS
    }
    files |= {
        f"{start.rstrip('/')}/{name}": False for start in start_texts(texts) for name in _RUNNING
    }
    return Reach.ANY if acted_on(texts, files) else Reach.FILES


def _of_search(base: str, texts: Sequence[str]) -> Reach:
    """Return which files a search may print: `FILES` for a narrow search, else `ANY`."""
    places = [text for text in texts if not text.startswith("-")]
    if any(map(_CHOSEN.fullmatch, texts)):
        return Reach.FILES
    if base not in ("grep", "egrep", "fgrep"):
        is_hidden = any(map(_UNHIDES.fullmatch, texts))
        return Reach.ANY if is_hidden or any(map(_leads_out, places[1:])) else Reach.FILES
    is_wide = len(places) <= 1 or any(map(_EVERYWHERE.fullmatch, places[1:]))
    return Reach.ANY if any(map(_DEEP.fullmatch, texts)) and is_wide else Reach.FILES


def _leads_out(text: str) -> bool:
    return text.startswith(("/", "~", "..", ".git"))
