"""What the shell calculates: sums of names and numbers alone, whose names are noted."""

import re

from pegboard_plugins.bash.source import Source
from pegboard_plugins.bash.syntax import Word

_LETTERS = re.compile(
    r"(?:[A-Za-z0-9_ \t+*/%<>=!&|^~?:,-]|\$[A-Za-z_]\w*|\$\{#?[A-Za-z_]\w*(?:\[@\])?\}|\$[#?1-9])*"
)
_COUNTED = re.compile(r"\$\{#\w+(\[@\])?\}")
_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d*")


def read_sum(source: Source, closer: str, separator: str = "") -> str:
    """The text of a sum up to its closer, which is taken; parentheses in it are balanced."""
    start, level = source.at, 0
    while True:
        source.take(_LETTERS)
        if level == 0 and source.sees(closer):
            break
        if not source.letter or source.letter not in f"(){separator}":
            source.no("calculation")
        level += {"(": 1, ")": -1}.get(source.letter, 0)
        if level < 0:
            source.no("calculation")
        source.at += 1
    text = source.text[start : source.at]
    source.at += len(closer)
    note_names(source, text, start)
    return text


def note_names(source: Source, text: str, start: int) -> None:
    """The names in a text that is calculated."""
    for name in _NAME.findall(_COUNTED.sub("0", text)):
        source.sums.setdefault(name, start)
    for number in re.findall(r"\$([1-9])", text):
        source.sums.setdefault(number, start)


def calculates(source: Source, word: Word) -> None:
    """Note the names in a word that a comparison calculates."""
    for piece in word.pieces:
        if piece.kind == "variable" or (piece.kind == "text" and _NAME.fullmatch(piece.text)):
            source.sums.setdefault(piece.text, word.at)
        elif piece.kind != "sum" and not (piece.kind == "text" and _NUMBER.fullmatch(piece.text)):
            source.no("calculation", word.at)
