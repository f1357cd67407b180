"""Regular expressions for the lines of files, as ripgrep writes them, where it is not there."""

from collections.abc import Callable, Iterator
from typing import Any

from pegboard.errors import InvalidInputError
from pegboard.expressions.letters import BytesMeantError, Letters
from pegboard.expressions.octets import Octets
from pegboard.expressions.reading import read


class LineExpression:
    """An expression, and the lines in which it fits."""

    def __init__(self, expression: Any, encoding: str, *, alone: bool) -> None:  # noqa: ANN401 - of `regex`, which has no types
        self._expression = expression
        self._encoding = encoding
        self._alone = alone

    def lines(self, content: bytes) -> Iterator[tuple[int, int]]:
        """The lines in which it fits: each one's number from 0, and where it starts, in bytes."""
        text = content.decode(self._encoding, errors="surrogateescape")
        width = len if content.isascii() else self._bytes
        return self._one_by_one(text, width) if self._alone else self._at_once(text, width)

    def _at_once(self, text: str, width: Callable[[str], int]) -> Iterator[tuple[int, int]]:
        number = offset = start = 0
        while found := self._expression.search(text, start):
            first = text.rfind("\n", start, found.start()) + 1 or start
            if first == len(text):
                return
            number += text.count("\n", start, first)
            offset += width(text[start:first])
            yield number, offset
            end = text.find("\n", found.start()) + 1
            if not end:
                return
            number += 1
            offset += width(text[first:end])
            start = end

    def _one_by_one(self, text: str, width: Callable[[str], int]) -> Iterator[tuple[int, int]]:
        offset = 0
        for number, line in enumerate(text.removesuffix("\n").split("\n") if text else ()):
            if self._expression.search(line.removesuffix("\r")):
                yield number, offset
            offset += width(line) + 1

    def _bytes(self, text: str) -> int:
        return len(text.encode(self._encoding, errors="surrogateescape"))


def line_expression(pattern: str) -> LineExpression:
    r"""The expression, which fits within one line.

    It is read as ripgrep reads it with `--crlf`: letters and classes are Unicode's, `$` is before
    the end of a line whether that is `\n` or `\r\n`, and a byte that is no UTF-8 is of no class.
    Look-around, atomic groups and back-references, which ripgrep does not know, may be in it. What
    it refuses otherwise is read as the library `regex` does.

    :raises InvalidInputError: for what is no regular expression either way.
    """
    import regex  # type: ignore[import-untyped]  # 20 ms that few programs pay; it has no types

    flags = regex.VERSION0 | regex.MULTILINE
    try:
        try:
            text, encoding = read(pattern, Letters()), Letters.encoding
        except BytesMeantError:
            text, encoding = read(pattern, Octets()), Octets.encoding
        return LineExpression(regex.compile(text, flags), encoding, alone=False)
    except InvalidInputError as error:
        if "\n" in pattern or r"\n" in pattern:
            raise
        try:
            return LineExpression(regex.compile(pattern, flags), "utf-8", alone=True)
        except (regex.error, OverflowError, RecursionError):
            raise error from None
    except (regex.error, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"{pattern!r} is not a regular expression: {error}") from error
