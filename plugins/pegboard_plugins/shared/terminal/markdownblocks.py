"""A splitter of streamed Markdown into finished blocks."""

import re
from collections.abc import Iterator

LONGEST_BLOCK = 64_000
"""The maximum length of a block or a line, which then counts as finished."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST = re.compile(r" {0,3}([-*+]|\d{1,9}[.)])\s")
_HEADING = re.compile(r" {0,3}#{1,6}\s")


class MarkdownBlocks:
    """A splitter of streamed Markdown into paragraphs, lists, tables and code blocks.

    Each line is parsed once, however small the chunks are.
    """

    def __init__(self) -> None:
        self._line: list[str] = []
        self._line_letters = 0
        self._block: list[str] = []
        self._fence = ""
        self._blank = False
        self._letters = 0

    def feed(self, piece: str) -> Iterator[str]:
        """Yield the blocks that this chunk completes."""
        for start in range(0, len(piece), LONGEST_BLOCK):
            first, *others = piece[start : start + LONGEST_BLOCK].split("\n")
            self._line.append(first)
            self._line_letters += len(first)
            for line in others:
                yield from self._next_line(line)
            if self._line_letters > LONGEST_BLOCK:
                yield from self._next_line("")

    def _next_line(self, begun: str) -> Iterator[str]:
        whole, self._line = "".join(self._line), [begun]
        self._line_letters = len(begun)
        yield from self._take(whole)

    def flush(self) -> Iterator[str]:
        """Yield the remaining text as a block, and start anew with the next text."""
        line, self._line, self._line_letters = "".join(self._line), [], 0
        if line:
            yield from self._take(line)
        yield from self._end()
        self._fence = ""

    def tail(self, lines: int, letters: int) -> str:
        """Return the end of the incomplete block, at most `lines` lines and `letters` letters."""
        last, room = [], letters
        for piece in reversed(self._line):
            last.append(piece[-room:])
            room -= len(last[-1])
            if room <= 0:
                break
        return "\n".join([*self._block[1 - lines :], "".join(reversed(last))][-lines:])

    def _take(self, line: str) -> Iterator[str]:
        if self._fence:
            yield from self._in_fence(line)
            return
        fence = _FENCE.match(line)
        if not line.strip():
            if self._block and _LIST.match(self._block[0]):
                self._blank = True  # a list goes on behind empty lines
                self._put(line)
            else:
                yield from self._end()
            return
        if self._blank and not (line[:1].isspace() or _LIST.match(line)):
            yield from self._end()
        indented = bool(self._block) and line[:1].isspace()
        if (fence and not indented) or _HEADING.match(line):
            yield from self._end()
        self._put(line)
        if fence:
            self._fence = fence[1]
        elif _HEADING.match(line) or self._letters > LONGEST_BLOCK:
            yield from self._end()

    def _in_fence(self, line: str) -> Iterator[str]:
        self._put(line)
        closing = line.strip()
        if closing.startswith(self._fence) and not closing.strip(self._fence[0]):
            self._fence = ""
            if not _LIST.match(self._block[0]):
                yield from self._end()
        elif self._letters > LONGEST_BLOCK:
            yield from self._cut_fence()

    def _cut_fence(self) -> Iterator[str]:
        """Yield a long code block so far, and begin a new code block with the same fence."""
        opening = self._block[0]
        self._put(self._fence)
        yield from self._end()
        self._put(opening)

    def _put(self, line: str) -> None:
        self._block.append(line)
        self._letters += len(line) + 1

    def _end(self) -> Iterator[str]:
        block = "\n".join(self._block).rstrip()
        self._block, self._blank, self._letters = [], False, 0
        if block.strip():
            yield block
