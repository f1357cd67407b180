"""The kind of text that a command prints: names of existing files or numbers, or anything.

A loop over `git ls-files` gives names of existing files. Text that is decoded, computed or read
from a file may name any file. Source of the tables: the manuals of GNU, git and BSD.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from pegboard.files import secret_path
from pegboard.unstable import shell_fits
from pegboard_plugins.bash.programs import git_words, kinds
from pegboard_plugins.bash.syntax import Simple, Statement, Word, is_any
from pegboard_plugins.bash.tables import patterns, rows

_NAMES_ONLY = re.compile(r"-[a-zA-Z]*[lLc][a-zA-Z]*|--(files\S*|name-only|count)")
_PIECES = re.compile(r"-[a-zA-Z]*o[a-zA-Z]*|--only-matching")
_INVERSE = re.compile(r"-[a-zA-Z]*v[a-zA-Z]*|--invert-match")
_LISTS = {
    name: frozenset(" ".join(each).split()) for name, each in rows("programs", "lists").items()
}
_PRINTS_MORE, _PICKS = (
    {name: re.compile(each) for name, each in patterns("programs", section).items()}
    for section in ("says", "picks")
)
_COLUMN = re.compile(r"(/[\w^$. -]*/|NR[=<>!]+\d+)?\s*\{\s*print \$(\d+|NF)\s*;?\s*\}")
_ACTS = re.compile(r"-(?:exec|execdir|ok|okdir) (\S+)")
_RAW = re.compile(r"-[a-zA-Z]*[rj]|--(raw|join)-output")
_HASHES = re.compile(r"--(format|pretty)=(format:)?%[hH]|--name-only|--name-status")
_LINE_OF = (["cut", "-d:", "-f1"], ["cut", "-d", ":", "-f", "1"])
_SECRETS = (
    *(".env", ".env.local", ".env.production", "prod.env", "id_rsa", "id_ed25519", ".netrc"),
    *(".pgpass", ".git-credentials", "credentials.json", "server.key"),
)
_ORDINARY = "src/main.py"
_LONGEST = 200
_MOST_GROUPS = 2
_MOST_REPEATED = 3
_REPEATED_GROUP = re.compile(r"\)\\?[*+?{]")
_OTHERWISE_READ = re.compile(r"\[\^?\]?[^\]]*(\[|--|&&|~~|\|\|)")
"""A set that has a class such as `[:space:]`, or what Python may come to read as one."""
_FITS_ALL = frozenset({"*", "*.*", "?*", "**", ".", ".*"})
Texts = Callable[[Word], Sequence[str]]
"""What a word may come to."""


@lru_cache(maxsize=4096)
def names_secret(text: str) -> bool:
    """Return whether a word, perhaps with wildcards, names a file with secrets."""
    name = text.rstrip("/").rpartition("/")[2].rpartition("=")[2]
    if not name or name in _FITS_ALL:
        return False
    if any(sign in name for sign in "*?["):
        return any(shell_fits(name, secret) for secret in _SECRETS[:-2])
    return secret_path(Path(text)) or secret_path(Path(name))


def lists(statements: Sequence[Statement], texts_of: Texts) -> bool:
    """Return whether these statements print only names of existing files, or numbers."""
    answers = [_prints_names(each, texts_of) for each in statements]
    found = [each for each in answers if each is not None]
    return bool(found) and all(found)


def _prints_names(statement: Statement, texts_of: Texts) -> bool | None:
    """Return whether a statement prints only names or numbers; None if it has no output."""
    if isinstance(statement, Simple):
        if not statement.words or statement.kind:
            return False if statement.redirections else None
        name, texts = _called(statement)
        if "silent" in kinds(name):
            return None
        is_fed = any("<" in each.sign for each in statement.redirections)
        return _lists(name, texts, statement, texts_of) and not (is_fed and name != "wc")
    if statement.kind == "pipe":
        return pipes(statement.parts, texts_of)
    found = [_prints_names(each, texts_of) for each in statement.parts]
    printed = [each for each in found if each is not None]
    return all(printed) if printed else None


def _called(statement: Statement) -> tuple[str, list[str]]:
    """Return a command's program and arguments; "" and [] for a statement of another kind."""
    if not isinstance(statement, Simple) or not statement.words:
        return "", []
    name, *texts = [word.shown for word in statement.words]
    return name.rpartition("/")[2], texts


def pipes(parts: Sequence[Statement], texts_of: Texts) -> bool:
    """Return whether the commands of a pipe print only names of files, or numbers."""
    if not parts:
        return False
    is_listing = _prints_names(parts[0], texts_of) or False
    others = (part for part in parts[1:] if "keeps-lines" not in kinds(_called(part)[0]))
    cut = next(others, None)
    is_listing = is_listing or (cut is not None and _leads_lines(parts[0], cut, texts_of))
    for part in parts[1:]:
        name, texts = _called(part)
        if not isinstance(part, Simple) or not name:
            return False
        if "numbers" in kinds(name):
            is_listing = True
        elif not _keeps(name, texts, part, texts_of):
            return False
    return is_listing


def _leads_lines(search: Statement, cut: Statement, texts_of: Texts) -> bool:
    """Return whether a `cut` keeps only file names or line numbers of a search's output."""
    name, texts = _called(search)
    if not isinstance(search, Simple) or not isinstance(cut, Simple):
        return False
    if "searches" not in kinds(name) or _is_open(search, texts_of):
        return False
    flags = "".join(text for text in texts if re.match(r"-[a-zA-Z]", text))
    leads = "n" in flags or (re.search("[rRH]", flags) is not None and "h" not in flags)
    return leads and [word.shown for word in cut.words] in _LINE_OF


def _lists(name: str, texts: Sequence[str], one: Simple, texts_of: Texts) -> bool:
    """Return whether a command prints only names of files, or numbers."""
    prints_more = name in _PRINTS_MORE and any(map(_PRINTS_MORE[name].match, texts))
    if one.words[0].literal is None or prints_more or _is_open(one, texts_of):
        return False
    if "searches" in kinds(name):
        return any(map(_NAMES_ONLY.fullmatch, texts))
    if name == "jq":
        return not any(map(_RAW.match, texts))  # JSON is no name of a file
    if name == "find" and (acts := _ACTS.findall(" ".join(texts))):
        return set(acts) == {"grep"} and any(map(_NAMES_ONLY.fullmatch, texts))
    first = git_words(texts)[:1] if name == "git" else list(texts[:1])
    if name == "git" and first in (["diff"], ["log"], ["show"], ["grep"]):
        return any(map((_NAMES_ONLY if first == ["grep"] else _HASHES).fullmatch, texts))
    is_lister = not kinds(name).isdisjoint(("numbers", "lists")) or (name == "echo" and not texts)
    return is_lister or any(word in _LISTS.get(name, ()) for word in first)


def _is_open(one: Simple, texts_of: Texts) -> bool:
    """Return whether an argument of a listing command may add a secret's name to the output."""
    return any(
        is_any(text) or any(map(names_secret, (text, *text.split("/"))))
        for word in one.words[1:]
        for text in texts_of(word)
    )


def _keeps(name: str, texts: Sequence[str], one: Simple, texts_of: Texts) -> bool:
    """Return whether a command in a pipeline only drops lines or columns of the input."""
    if any(is_any(text) for word in one.words for text in texts_of(word)):
        return False
    match name:
        case "awk" | "gawk" | "mawk":
            columns = [_COLUMN.fullmatch(text) for text in texts if not text.startswith("-F")]
            sought = [(column[1] or "NR").strip("/") for column in columns if column]
            return None not in columns and not any(map(_picks_secret, sought))
        case "cut" | "tr" | "sed":
            return all(map(_PICKS[name].fullmatch, texts))
        case "xargs":
            return _lists_again(texts)
        case _:
            return "keeps-lines" in kinds(name) or (
                "searches" in kinds(name) and _leaves_out(texts)
            )


def _leaves_out(texts: Sequence[str]) -> bool:
    """Return whether a search prints whole lines and does not select names of secrets."""
    is_inverse = any(map(_INVERSE.fullmatch, texts))
    picks = not is_inverse and any(map(_picks_secret, texts))
    return not picks and not any(map(_PIECES.fullmatch, texts))


def _lists_again(texts: Sequence[str]) -> bool:
    inner = [text for text in texts if not re.match(r"-|\d+$|\{\}$", text)]
    is_search = inner[:1] == ["grep"] and any(map(_NAMES_ONLY.fullmatch, texts))
    return is_search or inner[:1] in (["dirname"], ["basename"], ["realpath"], ["ls"])


def _picks_secret(pattern: str) -> bool:
    """Return whether a pattern matches names of secrets, but not ordinary names."""
    if pattern.startswith("-"):
        return False
    fits = [finds(pattern.replace("\\|", "|"), name) for name in (*_SECRETS[:-2], _ORDINARY)]
    return any(each is not False for each in fits[:-1]) and not fits[-1]


def finds(pattern: str, text: str) -> bool | None:
    """Return whether a grep or pgrep pattern matches anywhere in the text, ignoring case.

    Return None for a pattern that may take very long, or that Python reads differently.
    """
    if not _is_quick(pattern) or _OTHERWISE_READ.search(pattern):
        return None
    try:
        return re.search(pattern, text, re.IGNORECASE) is not None
    except (re.error, OverflowError):  # the latter for a number of repetitions
        return None


def _is_quick(pattern: str) -> bool:
    """Return whether a pattern is simple enough to be matched quickly.

    The time for a repeated group may double with each character.
    """
    return (
        len(pattern) <= _LONGEST
        and pattern.count("(") <= _MOST_GROUPS
        and len(re.findall(r"[*+?{]", pattern)) <= _MOST_REPEATED
        and _REPEATED_GROUP.search(pattern) is None
    )
