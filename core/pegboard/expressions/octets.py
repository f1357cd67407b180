"""The pieces of an expression for text in which a letter is a byte, as `(?-u)` asks for.

Letters are the sequences of their bytes in UTF-8 then.
"""

from collections.abc import Iterator
from functools import lru_cache

from pegboard.expressions.classes import NOTHING, Class, letter_class, quoted
from pegboard.expressions.letters import ASCII_WORD, BOUNDARIES
from pegboard.expressions.source import Flags, Letter

_BYTES = "".join(map(chr, range(0x100)))
_LETTERS = ((0, 0xD7FF), (0xE000, 0x10FFFF))
_LENGTHS = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF))
"""The letters that have a byte, two, three and four."""
_LINE_ENDS = "\n\r"
_ANY = Class(r"\s\S", cased=False)
_WORD = Class(r"\w", plain=True, cased=False)
_FIRST, _LAST = "\x80", "\xbf"
"""What the second byte of a letter, and each after it, can be."""


class Octets:
    """Pieces for text of bytes, decoded as Latin-1."""

    encoding = "latin-1"

    def letter(self, letter: Letter, flags: Flags) -> tuple[bool, str]:
        """A piece, which is never to be taken in any case: it names both."""
        if letter.byte:
            return False, quoted(letter.text)
        if flags.i and (flags.u or letter.text.isascii()):
            return False, self.one_of(letter_class(letter), flags)
        octets = letter.text.encode().decode(self.encoding)
        return False, f"(?:{''.join(map(quoted, octets))})"

    def any(self, flags: Flags) -> str:
        """Any letter of a line, or any byte."""
        return self.one_of(_ANY, flags)

    def one_of(self, kind: Class, flags: Flags) -> str:
        """A letter of a class, or a byte."""
        folding = flags.i and kind.cased
        if not flags.u:
            return _set(_found(kind, _BYTES, ascii_cases=folding)) or NOTHING
        return _sequences(kind, folding)

    def boundary(self, name: str, flags: Flags) -> str:
        """A place beside a word."""
        if not flags.u:
            return f"(?:{BOUNDARIES[name].format(w=ASCII_WORD, before='', after='')})"
        word, letter = self.one_of(_WORD, flags), self.one_of(_ANY, flags)
        before, after = f"(?<=^|\\r|{letter})", f"(?={letter}|[\\r\\n]|\\Z)"
        return f"(?:{BOUNDARIES[name].format(w=word, before=before, after=after)})"


def _found(
    kind: Class, letters: str, *, ascii_cases: bool = False, cases: bool = False
) -> list[str]:
    """The pieces of `letters` that are of a class, without the ends of lines."""
    import regex  # type: ignore[import-untyped]  # as in `line_expression`; it has no types

    flags = regex.VERSION0
    if cases or ascii_cases:
        flags |= regex.IGNORECASE
    if ascii_cases:
        flags |= regex.ASCII
    found: list[str] = regex.findall(f"{kind.without(_LINE_ENDS)}+", letters, flags)
    return found


def _set(runs: list[str]) -> str:
    ranges = (f"{quoted(run[0])}-{quoted(run[-1])}" for run in runs)
    return f"[{''.join(ranges)}]" if runs else ""


@lru_cache(maxsize=64)
def _sequences(kind: Class, cases: bool) -> str:  # noqa: FBT001 - a key of the cache
    """The letters of a class, each as its bytes."""
    runs = (
        (ord(run[0]), ord(run[-1]))
        for first, last in _LETTERS
        for run in _found(kind, "".join(map(chr, range(first, last + 1))), cases=cases)
    )
    pieces = [
        piece
        for start, end in runs
        for first, last in _LENGTHS
        if start <= last and first <= end
        for piece in _split(_octets(max(start, first)), _octets(min(end, last)))
    ]
    return f"(?:{'|'.join(pieces)})" if pieces else NOTHING


def _octets(number: int) -> str:
    return chr(number).encode().decode("latin-1")


def _split(first: str, last: str) -> Iterator[str]:
    """The sequences of bytes from one to another of the same length."""
    if len(first) == 1:
        yield _set([first + last])
        return
    start, end = ord(first[0]), ord(last[0])
    count = len(first) - 1
    lowest, highest = _FIRST * count, _LAST * count
    if start == end:
        yield from (quoted(first[0]) + piece for piece in _split(first[1:], last[1:]))
        return
    if first[1:] != lowest:
        yield from (quoted(first[0]) + piece for piece in _split(first[1:], highest))
        start += 1
    tail = []
    if last[1:] != highest:
        tail = [quoted(last[0]) + piece for piece in _split(lowest, last[1:])]
        end -= 1
    if start <= end:
        yield _set([chr(start) + chr(end)]) + _set([_FIRST + _LAST]) * count
    yield from tail
