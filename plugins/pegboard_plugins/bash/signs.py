"""Letters that make a line look like another one."""

import re
import unicodedata
from collections.abc import Iterator

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u206a-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_BLANKS = re.compile(r"[\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u0085]")
_DRAWN = re.compile(
    r"(?<=[\u2190-\u2bff\U0001f000-\U0001faff])[\ufe0e\ufe0f]\u200d?"
    r"|(?<=[\u2190-\u2bff\U0001f000-\U0001faff])\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff])"
    r"|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
"""What belongs to a picture in front of it: its colours, or the picture that is joined to it."""
_HALVES = re.compile(r"[\ud800-\udc7f\udd00-\udfff]")
"""Halves of letters; those from U+DC80 to U+DCFF stand for bytes that are no UTF-8."""
_WORD = re.compile(r"[^\W\d_]+")
_LOOKALIKES = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")


def suspicions(text: str) -> Iterator[str]:
    """The codes of what a reader of the line could not see, or would take for other letters."""
    if text.isascii() and text.isprintable():
        return
    if _CONTROL.search(text) or _HALVES.search(text):
        yield "control-char"
    if text.isascii():
        return
    if _BIDI.search(text):
        yield "unicode-bidi"
    if _INVISIBLE.search(_DRAWN.sub("", text)) or _BLANKS.search(text):
        yield "unicode-invisible"
    if any(_is_mixed(word) for word in _WORD.findall(text)):
        yield "unicode-confusable"


def whole(text: str) -> str:
    """The text without halves of letters, which cannot be encoded."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def _is_mixed(word: str) -> bool:
    """Whether Latin letters stand in one word with those of an alphabet that looks like it."""
    if word.isascii() or not any(letter.isascii() for letter in word):
        return False
    return any(unicodedata.name(letter, "").startswith(_LOOKALIKES) for letter in word)
