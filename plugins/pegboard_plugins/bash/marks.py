"""Marks in texts, for characters that the shell takes literally.

In a marked text `*`, `?` and `[` are wildcards, and blanks separate words. A character that was
in quotes, or comes from the value of a variable, is replaced by its mark, a private code point.
"""

import re

from pegboard_plugins.bash.syntax import Piece, Word

_MARK = 0xE100
_SIGNS, _BLANKS = "*?[]\\", " \t\n"
_TO_MARK = re.compile(r"[*?\[\]\\ \t\n]")
_WILD = re.compile(r"[*?\[]")
_WHOLE = str.maketrans({sign: chr(_MARK + ord(sign)) for sign in _SIGNS + _BLANKS})
_CLOSED = str.maketrans({sign: chr(_MARK + ord(sign)) for sign in _BLANKS})
_OPENED = {_MARK + ord(sign): sign for sign in _BLANKS}
_PLAIN = {_MARK + ord(sign): sign for sign in _SIGNS + _BLANKS}
_PATTERN = {**_PLAIN, **{_MARK + ord(sign): f"[{sign}]" for sign in "*?["}, _MARK + 92: r"[\\]"}
BLANK, BACKSLASH, BRACKET = (chr(_MARK + ord(sign)) for sign in " \\[")


def marked(text: str) -> str:
    """Return a text with all special characters marked as quoted."""
    return text.translate(_WHOLE) if _TO_MARK.search(text) else text


def closed(text: str) -> str:
    """Return a marked text in which blanks are marked too, so that the shell does not split it."""
    return text.translate(_CLOSED)


def opened(text: str) -> str:
    """Return a marked text in which blanks are not marked, so that the shell splits it."""
    return text if text.isascii() else text.translate(_OPENED)


def plain(text: str) -> str:
    """Return a marked text with the marks removed, as a program receives the text."""
    return text if text.isascii() else text.translate(_PLAIN)


def is_wild(text: str) -> bool:
    """Return whether a marked text has wildcards without a mark."""
    return _WILD.search(text) is not None


def as_name(text: str) -> str:
    """Return a marked text as a glob pattern, or as a plain name if the text has no wildcards."""
    return text if text.isascii() else text.translate(_PATTERN if is_wild(text) else _PLAIN)


def unquoted(text: str) -> tuple[str, ...]:
    """Return the texts that an unquoted value may become, with wildcard characters in the value.

    The shell leaves a `[...]` that matches no file as it is.
    """
    if text.isascii():
        return (text,)
    names = (plain(text), opened(text)) if BRACKET in text else (plain(text),)
    return tuple(dict.fromkeys(names))


def as_string(word: Word) -> Word:
    """Return a word as an assignment expands the word: without wildcards and word splitting."""
    if word.literal is not None:
        return word
    pieces = [_in_quotes(piece) for piece in word.pieces]
    return Word(pieces, word.raw, word.at)


def _in_quotes(piece: Piece) -> Piece:
    kind = "text" if piece.kind == "glob" else piece.kind
    return piece if piece.kind == "tilde" else piece._replace(kind=kind, quoted=True)
