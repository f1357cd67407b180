"""The detection of a text's encoding from its bytes, without a byte order mark or UTF-8.

A library guesses the encoding, as browsers do. The guess is accepted only if the whole text is in
that encoding, encodes to the same bytes, and has plausible words. Other texts are taken as
Windows-1252 if possible, because it includes Latin-1 and is what such files mostly are.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

WESTERN = "cp1252"
SAMPLE_BYTES = 64 << 10
MOST_LINES = 20_000
"""Of a piece so many lines are looked at."""
_BEFORE_BYTES = 64
"""Of a line, so much before its first letter beyond ASCII belongs to the sample."""
_LEAST_LETTERS = {"east": 4, "script": 4, "caseless": 4, "latin": 3}
"""The fewest letters that must be where words have letters,"""
_LEAST_SHARE = 0.6
"""and so many of all that are not as in Windows-1252: less is luck, or no text."""
_CHANCE_SHARE = 0.1
"""As many lines of a text in another encoding may look like UTF-8,"""
_CHANCE_BYTES = 8
"""if none of them has more than so many bytes beyond ASCII."""
_KINDS = {
    "Shift_JIS": ("east", "cp932"),
    "EUC-JP": ("east", "euc_jp"),
    "gb18030": ("east", "gb18030"),
    "Big5": ("east", "cp950", "big5hkscs"),
    "EUC-KR": ("east", "cp949"),
    "windows-1251": ("script", "cp1251", "mac_cyrillic"),
    "KOI8-U": ("script", "koi8_r", "koi8_u"),
    "IBM866": ("script", "cp866"),
    "windows-1253": ("script", "cp1253", "iso8859_7"),
    "ISO-8859-7": ("script", "cp1253", "iso8859_7"),
    "windows-1255": ("caseless", "cp1255"),
    "windows-1256": ("caseless", "cp1256"),
    "cp874": ("caseless", "cp874"),
    "windows-1250": ("latin", "cp1250", "iso8859_2"),
    "ISO-8859-2": ("latin", "cp1250", "iso8859_2"),
    "windows-1254": ("latin", "cp1254"),
}
"""By the library's name: what words are made of, and which of Python's encodings it may be."""
_WORDS = {
    "east": re.compile("[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff01-\uffe6]{2,}"),
    "script": re.compile("[\u0370-\u03ff]{3,}|[\u0400-\u04ff]{3,}"),
    "caseless": re.compile("[\u05b0-\u05ea]{3,}|[\u0621-\u0652]{3,}|[\u0e01-\u0e4e]{3,}"),
    "latin": re.compile(r"[^\W\d_]{3,}"),
}
_CASED = frozenset({"script", "latin"})
_JAPANESE = frozenset({"cp932", "euc_jp"})
_KANA = re.compile("[\u3040-\u30ff\uff66-\uff9f]")
_KANA_SHARE = 0.1
"""Of the letters of a Japanese text so many are kana: other languages have characters alone."""
_ALPHABETS = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        "ąćęłńóśźż",  # Polish
        "áčďéěíňóřšťúůýž",  # Czech
        "áäčďéíĺľňóôŕšťúýž",  # Slovak
        "áéíóöőúüű",  # Hungarian
        "čćđšž",  # Croatian, Slovene
        "ăâîşţ",  # Romanian
        "çğıöşüâîûİ",  # Turkish
    )
)
_ODD = re.compile("[\x80-\x9f\ue000-\uf8ff\ufffd]")
"""What no text has: controls, private letters, and what could not be read."""
_BEYOND_ASCII = re.compile(rb"[\x80-\xff][^\n]*")
_ASCII = bytes(range(0x80))
_UNKNOWN = "\ufffd"

Pieces = Callable[[], Iterable[bytes]]


def detect_encoding(pieces: Pieces, *, whole: bool = True) -> str:
    """Return Python's name of the encoding, or "" for mixed or unknown encodings.

    `pieces` returns the text's bytes from the start at each call, in pieces of 1 MiB of whole
    lines. Without `whole`, the last piece may end within a character.
    """
    lines = _LineSigns()
    for piece in pieces():
        lines.add(piece)
    if lines.may_be_other:
        for encoding in _guessed(bytes(lines.sample)):
            if _is_in(pieces(), encoding, whole=whole):
                return encoding
    return WESTERN if lines.may_be_western and _is_in(pieces(), WESTERN, whole=whole) else ""


class _LineSigns:
    """Statistics of a text's non-ASCII lines, with the first of these lines as a sample."""

    def __init__(self) -> None:
        self.sample = bytearray()
        self._count = self._valid = self._longest_valid = 0
        self._letters = self._strays = 0

    @property
    def may_be_other(self) -> bool:
        """Whether so little of the text is valid UTF-8 that the text may be in another encoding."""
        return self._valid <= self._count * _CHANCE_SHARE and self._longest_valid <= _CHANCE_BYTES

    @property
    def may_be_western(self) -> bool:
        """Whether no line is valid UTF-8, and at least half of the non-ASCII parts are invalid."""
        return not self._valid and self._letters <= self._strays

    def add(self, piece: bytes) -> None:
        """Count the non-ASCII lines in the next piece of the text."""
        for line in islice(_BEYOND_ASCII.finditer(piece), MOST_LINES):
            self._note(line[0])
            if len(self.sample) < SAMPLE_BYTES:
                first = line.start()
                start = max(piece.rfind(b"\n", 0, first) + 1, first - _BEFORE_BYTES)
                end = min(line.end() + 1, start + SAMPLE_BYTES - len(self.sample))
                self.sample += piece[start:end]

    def _note(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        beyond = len(text) - len(text.encode("ascii", "ignore"))
        strays = text.count(_UNKNOWN) - line.count(_UNKNOWN.encode())
        self._count += 1
        self._letters += beyond - strays
        self._strays += strays
        if not strays:
            self._valid += 1
            self._longest_valid = max(self._longest_valid, len(line.translate(None, _ASCII)))


def _guessed(sample: bytes) -> Sequence[str]:
    """Return the encodings that match the sample, the most likely first."""
    try:
        # 8 ms, at the first file that is not UTF-8.
        from chardetng_py import EncodingDetector  # type: ignore[import-untyped]  # not marked so
    except ImportError:  # there is none for the newest Pythons
        return ()
    detector = EncodingDetector()
    detector.feed(sample, last=False)
    kind, *encodings = _KINDS.get(detector.guess(tld=None, allow_utf8=False), ("",))
    telling = {encoding: _telling(kind, sample, encoding) for encoding in encodings}
    likely = [encoding for encoding in encodings if telling[encoding] >= _LEAST_LETTERS[kind]]
    likely.sort(key=lambda encoding: -telling[encoding])
    # Where nothing speaks for one of two, it would be a toss of a coin.
    equal = kind == "latin" and len({telling[encoding] for encoding in likely}) < len(likely)
    return () if equal and len({_start(sample, each) for each in likely}) > 1 else likely


def _telling(kind: str, sample: bytes, encoding: str) -> int:
    """Return the number of non-ASCII letters in plausible words of the `sample`, once decoded.

    Return 0 if too few of these letters are in plausible words.
    """
    text = _start(sample, encoding)
    letters = {letter for letter in text if letter > "\x7f" and letter.isalpha()}
    if _ODD.search(text) or (kind == "latin" and not any(map(letters.issubset, _ALPHABETS))):
        return 0
    western = _start(sample, WESTERN) if kind == "latin" else " " * len(text)
    # Of a letter that is repeated only the first counts: rulers and boxes are no words.
    letters_before = zip(text, western, " " + text, strict=False)
    other = bytes(a > "\x7f" and a not in {b, before} for a, b, before in letters_before)
    cased = kind in _CASED
    words = (word for word in _WORDS[kind].finditer(text) if not cased or _is_small(word[0]))
    telling = sum(other.count(1, *word.span()) for word in words)
    if encoding in _JAPANESE and len(_KANA.findall(text)) < telling * _KANA_SHARE:
        return 0
    return telling if telling >= other.count(1) * _LEAST_SHARE else 0


def _is_small(word: str) -> bool:
    """Return whether all letters after the first are lower case.

    In a wrong encoding, symbols often look like capital letters.
    """
    return word[1:].islower()


def _start(sample: bytes, encoding: str) -> str:
    return codecs.getincrementaldecoder(encoding)("replace").decode(sample)


def _is_in(pieces: Iterable[bytes], encoding: str, *, whole: bool) -> bool:
    """Return whether all of the text is in the encoding and encodes to the same bytes."""
    decoder = codecs.getincrementaldecoder(encoding)()
    left = b""
    try:
        for piece in pieces:
            content = left + piece
            text = decoder.decode(piece)
            left = decoder.getstate()[0]
            if text.encode(encoding) + left != content:
                return False
        decoder.decode(b"", final=whole)
    except UnicodeError:
        return False
    return True
