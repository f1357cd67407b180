"""Shell patterns as in bash: `*`, `?`, sets with ranges and classes, and backslashes.

Source: bash's manual, 3.5.8.1, and its `lib/glob/sm_loop.c`. A test compares them with real bash.
"""

import os
import re
from collections.abc import Iterator
from functools import lru_cache

_SIGN = re.compile(r"[*?\[\\]")
_WILDCARD = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r"\[([*?\[])\]|\[\\\\\]")
_QUOTED = re.compile(r"\\(.)", re.DOTALL)
_NAMED = re.compile(r"\[([:.=])(.*?)\1\]", re.DOTALL)
_LETTERS = [chr(code) for code in range(0x250)]
"""Of ASCII and the Latin alphabets."""
_CLASSES = {
    "alpha": r"[^\W\d_]",
    "digit": "[0-9]",
    "alnum": r"[^\W_]",
    "upper": f"[{''.join(filter(str.isupper, _LETTERS))}]",
    "lower": f"[{''.join(filter(str.islower, _LETTERS))}]",
    "xdigit": "[0-9A-Fa-f]",
    "blank": r"[ \t]",
    "space": r"(?![\xa0\u2007\u202f\x1c-\x1f\x85])\s",
    "punct": r"(?:[^\w\s\x00-\x1f\x7f-\x9f]|_)",
    "cntrl": r"[\x00-\x1f\x7f-\x9f]",
    "print": r"[^\x00-\x1f\x7f-\x9f]",
    "graph": r"[^\s\x00-\x1f\x7f-\x9f]",
    "word": r"\w",
    "ascii": r"[\x00-\x7f]",
}
_NOTHING = "(?!)"


def shell_fits(pattern: str, text: str) -> bool:
    """Return whether the whole string matches a pattern of `case` or `${name%pattern}`."""
    return shell_expression(pattern).fullmatch(text) is not None


def shell_escape(text: str) -> str:
    """Return the pattern that matches exactly this string."""
    return _SIGN.sub(lambda found: f"[{found[0]}]" if found[0] != "\\" else r"[\\]", text)


def shell_unescape(pattern: str) -> str:
    """Return the string from which `shell_escape` made the pattern."""
    return _ESCAPED.sub(lambda found: found[1] or "\\", pattern)


@lru_cache(maxsize=4096)
def shell_expression(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a shell pattern, for full matches."""
    parts: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        sign, found = pattern[at], None
        if sign == "*":
            parts.append([])
        elif sign == "[" and (found := _set(pattern, at)) is not None:
            parts[-1].append(found[0])
        elif sign == "\\" and at + 1 < len(pattern):
            at += 1
            parts[-1].append(re.escape(pattern[at]))
        else:
            parts[-1].append("." if sign == "?" else re.escape(sign))
        at = at + 1 if found is None else found[1]
    first, *rest = ("".join(part) for part in parts)
    between = (f"(?>.*?{part})" for part in rest[:-1] if part)  # no star takes back what it took
    last = f".*{rest[-1]}" if rest else ""
    return re.compile(f"{first}{''.join(between)}{last}", re.DOTALL)


def _set(pattern: str, start: int) -> tuple[str, int] | None:
    """Return the expression for the set at `start`, and the set's end; None for an unclosed set."""
    at = start + 1
    inverts = pattern[at : at + 1] in tuple("!^")
    at += inverts
    first, choices = at, list[str]()
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        found = _NAMED.match(pattern, at)
        if found is not None and found[1] == ":":
            choices.append(_CLASSES.get(found[2], _NOTHING))
            at = found.end()
            continue
        low, at = _letter(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _letter(pattern, at + 1)
            is_range = 0 < len(low) <= len(high) == 1 and low <= high
            choices.append(f"[{re.escape(low)}-{re.escape(high)}]" if is_range else _NOTHING)
        else:
            choices.append(re.escape(low) or _NOTHING)
    if at >= len(pattern):
        return None
    either = "|".join(choices)
    return (f"(?:(?!{either}).)" if inverts else f"(?:{either})"), at + 1


def _letter(pattern: str, at: int) -> tuple[str, int]:
    """Return the character at index `at` in a set such as `[a-z]`, and the index after it.

    The character is "" for a named character that is longer than one character.
    """
    found = _NAMED.match(pattern, at)
    if found is not None and found[1] != ":":
        return (found[2] if len(found[2]) == 1 else ""), found.end()
    at += pattern[at] == "\\" and at + 1 < len(pattern)
    return pattern[at], at + 1


def shell_paths(pattern: str, *, deep: bool = False) -> Iterator[str]:
    """Yield the paths that exist and match an absolute pattern.

    Hidden names match only a pattern that starts with a dot. With `deep`, `**` matches any number
    of folders, like bash's `globstar`.
    """
    if pattern.startswith("/"):
        yield from _paths("", pattern.split("/")[1:], deep=deep)


def _paths(folder: str, parts: list[str], *, deep: bool) -> Iterator[str]:
    part, *rest = parts
    if _WILDCARD.search(part) is None:
        path = f"{folder}/" + _QUOTED.sub(r"\1", part)
        if rest:
            yield from _paths(path, rest, deep=deep)
        elif os.path.lexists(path):
            yield path
        return
    if deep and part == "**":
        yield from _paths(folder, rest or ["*"], deep=deep)
    for name, is_folder in folder_entries(folder or "/"):
        if deep and part == "**" and is_folder and not name.startswith("."):
            yield from _paths(f"{folder}/{name}", parts, deep=deep)
        elif not (deep and part == "**") and shell_names(part, name):
            path = f"{folder}/{name}"
            if not rest:
                yield path
            elif os.path.isdir(path):  # noqa: PTH112 - a text
                yield from _paths(path, rest, deep=deep)


def shell_names(pattern: str, name: str) -> bool:
    """Return whether a file name matches a pattern; wildcards do not match a leading dot."""
    is_hidden = name.startswith(".") and not pattern.startswith((".", "\\."))
    return not is_hidden and shell_fits(pattern, name)


def folder_entries(folder: str) -> list[tuple[str, bool]]:
    """Return each name in a folder, with whether it is a real folder (no link); [] on an error."""
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []
