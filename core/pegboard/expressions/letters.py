"""The pieces of an expression for text in which a letter is a letter.

Bytes that are no UTF-8 are surrogates in it, as Python decodes them; no piece takes one, as in
ripgrep, but for what asks for the letters beside it not to be of a kind.
"""

from pegboard.expressions.classes import Class, quoted
from pegboard.expressions.source import Flags, Letter

_LEFT_OUT = r"\n\r\U0000d800-\U0000dfff"
_TURKISH = "[\u0130\u0131]"
"""`regex` takes these for cases of i; Unicode's simple folding, which is ripgrep's, does not."""
BOUNDARIES = {
    "b": "(?:(?<={w})(?!{w})|(?<!{w})(?={w}))",
    "B": "(?:(?<={w})(?={w})|(?<!{w})(?!{w})){before}{after}",
    "start": "(?:(?<!{w})(?={w}))",
    "end": "(?:(?<={w})(?!{w}))",
    "start-half": "(?:(?<!{w}){before})",
    "end-half": "(?:(?!{w}){after})",
}
"""Places beside words; `before` and `after` say that no byte is there that is no letter."""
ASCII_WORD = "[0-9A-Za-z_]"
_WORD = r"\w"
_BEFORE, _AFTER = r"(?<![\U0000d800-\U0000dfff])", r"(?![\U0000d800-\U0000dfff])"


class BytesMeantError(Exception):
    """The expression names bytes, so that the text has to be read byte by byte."""


class Letters:
    """Pieces for text that is decoded."""

    encoding = "utf-8"

    def letter(self, letter: Letter, flags: Flags) -> tuple[bool, str]:
        """A piece, and whether it is to be taken in any case."""
        if letter.byte:
            raise BytesMeantError
        if flags.i and letter.text in "iI":
            return False, "[iI]"
        return flags.i and letter.text not in "\u0130\u0131", quoted(letter.text)

    def any(self, flags: Flags) -> str:
        """Any letter of a line."""
        if not flags.u:
            raise BytesMeantError
        return f"[^{_LEFT_OUT}]"

    def one_of(self, kind: Class, flags: Flags) -> str:
        """A letter of a class."""
        if not flags.u and not kind.ascii:
            raise BytesMeantError
        text = kind.text if kind.plain else kind.without(_LEFT_OUT)
        if flags.i and kind.cased:
            return f"(?:(?!{_TURKISH})(?i:{text})|(?={_TURKISH}){text})"
        return text

    def boundary(self, name: str, flags: Flags) -> str:
        """A place beside a word."""
        if not flags.u:
            return f"(?:{BOUNDARIES[name].format(w=ASCII_WORD, before='', after='')})"
        if name == "b":
            return r"(?:\b)"
        return f"(?:{BOUNDARIES[name].format(w=_WORD, before=_BEFORE, after=_AFTER)})"
