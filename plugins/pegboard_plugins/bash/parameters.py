"""The results of expansions such as `${name%pattern}`, for a given value of a variable."""

import re
from collections.abc import Callable, Mapping

from pegboard.unstable import shell_fits
from pegboard_plugins.bash.marks import plain
from pegboard_plugins.bash.syntax import ANYTHING

_SLICE = re.compile(r":\s?(-?\d+)(?::(\d+))?")
_TRIM = re.compile(r"(##?|%%?)([^$]*)", re.DOTALL)
_CASES: Mapping[str, Callable[[str], str]] = {
    "^^": str.upper,
    ",,": str.lower,
    "^": lambda text: text[:1].upper() + text[1:],
}
_CHANGES = re.compile(r"//?|\^|,|:\s?-?\d|#(?!#?\*/$)|%(?!%?/\*$)")
"""What is done with a name that makes another one of it; its folder and what is in one do not."""
_TOKEN = re.compile(r"\[[!^]?\]?(?:\[:\w+:\]|[^\]])*\]|.", re.DOTALL)
"""A letter, or a wildcard."""
_LONGEST_CHANGED = 200
_MOST_STARS = 2
"""Cutting pieces off a text takes time that grows with its length and with the stars."""


def changed(text: str, how: str) -> tuple[str, ...]:
    """Return the possible results of an operator `how`, such as `%.txt`, on a variable's value.

    The value and the results are marked texts. An unknown value may become any other text.
    """
    if ANYTHING in text:
        return (ANYTHING if _CHANGES.match(how) else text,)
    if len(text) > _LONGEST_CHANGED:
        return (ANYTHING,)
    tokens = _TOKEN.findall(text) if "[" in text else list(text)
    if found := _SLICE.fullmatch(how):
        return (_sliced(tokens, int(found[1]), int(found[2]) if found[2] else None),)
    if (found := _TRIM.fullmatch(how)) and found[2].count("*") <= _MOST_STARS:
        return _trimmed(tokens, *found.groups())
    if how in _CASES:
        return (_CASES[how]("".join("?" if "[:" in token else token for token in tokens)),)
    return (ANYTHING,)


def _sliced(tokens: list[str], start: int, count: int | None) -> str:
    """Return a slice of a value; `ANYTHING` if a `*` before the slice's end makes it unknown."""
    part = tokens[start:][:count]
    before = tokens if start < 0 or count is None else tokens[: start + count]
    return ANYTHING if "*" in before else "".join(part)


def _trimmed(tokens: list[str], sign: str, pattern: str) -> tuple[str, ...]:
    """Return the possible results of `${name%pattern}` or `${name#pattern}` for a value."""
    from_start, longest = sign[0] == "#", len(sign) > 1
    letters = ["?" if len(token) > len("[x]") else plain(token.strip("[]")) for token in tokens]
    cuts = range(len(tokens) + 1) if sign in ("#", "%%") else range(len(tokens), -1, -1)
    gone, left = list[str](), tokens
    for cut in cuts:
        head, tail = letters[:cut], letters[cut:]
        if shell_fits(pattern, "".join(head if from_start else tail)):
            gone = tokens[:cut] if from_start else tokens[cut:]
            left = tokens[cut:] if from_start else tokens[:cut]
            break
    wild = [at for at, token in enumerate(tokens) if token in ("*", "?") or len(token) > 1]
    is_certain = not wild or (gone and not longest and all(token not in gone for token in "*?"))
    if is_certain and not any(len(token) > 1 for token in gone):
        return ("".join(left),)
    other = ["*", *tokens[wild[-1] + 1 :]] if from_start else [*tokens[: wild[0]], "*"]
    return tuple(dict.fromkeys(("".join(left), "".join(other))))
