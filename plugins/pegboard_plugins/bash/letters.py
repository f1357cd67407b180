"""Letters that make a line look like another one."""

import re
import unicodedata
from collections.abc import Callable, Iterator

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DRAWN = r"[\u2190-\u2bff\U0001f000-\U0001faff]"
_INVISIBLE = re.compile(
    rf"(?:(?<={_DRAWN})[\ufe0e\ufe0f]\u200d?|(?<={_DRAWN})\u200d(?={_DRAWN})|(?<=[0-9#*])\ufe0f\u20e3)"
    r"|([\u00a0\u00ad\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200d\u2028\u2029"
    r"\u202f\u205f-\u2064\u206a-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff])"
)
"""Odd blanks and what nobody sees; what belongs to a picture in front of it is none of them."""
_WORD = re.compile(r"[^\W\d_]+")
_LOOKALIKES = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")


def suspicion(text: str) -> tuple[str, int, int] | None:
    """What a reader of the line could not see, or would take for other letters: code and place."""
    if text.isascii() and text.isprintable():
        return None
    found: Iterator[tuple[str, re.Match[str] | None]] = (
        (code, search(text)) for code, search in _SEARCHES[: 1 if text.isascii() else None]
    )
    return next(((code, *place.span()) for code, place in found if place), None)


def _invisible(text: str) -> re.Match[str] | None:
    return next((each for each in _INVISIBLE.finditer(text) if each[1]), None)


def _confusable(text: str) -> re.Match[str] | None:
    return next((each for each in _WORD.finditer(text) if _is_mixed(each[0])), None)


def _is_mixed(word: str) -> bool:
    """Whether Latin letters stand in one word with those of an alphabet that looks like it."""
    if word.isascii() or not any(letter.isascii() for letter in word):
        return False
    return any(unicodedata.name(letter, "").startswith(_LOOKALIKES) for letter in word)


_SEARCHES: tuple[tuple[str, Callable[[str], re.Match[str] | None]], ...] = (
    ("control-char", _CONTROL.search),
    ("unicode-bidi", _BIDI.search),
    ("unicode-invisible", _invisible),
    ("unicode-confusable", _confusable),
)
