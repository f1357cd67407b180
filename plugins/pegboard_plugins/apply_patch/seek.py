"""Where the chunks of a patch stand in a file, and the file with them applied."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate

from pegboard_plugins.apply_patch.parser import Chunk, PatchError

SHOWN_LINES = 12
_LINE = re.compile(r"([^\n]*?)(\r?\n|\Z)")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
        "\u2026": "...",
    }
)


def _plain(line: str) -> str:
    return unicodedata.normalize("NFC", line.translate(_PLAIN)).strip()


_PASSES: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip, _plain)
"""Lines are the same when one of these makes them so; the strictest is asked first."""


def apply(text: str, chunks: Sequence[Chunk], *, path: str) -> str:
    """`text` with the chunks applied from the top down.

    Only lines with `-` and `+` change. New lines end as those around them do, and a file
    without a break at its end stays so.

    :raises PatchError: `context`, when a header or a chunk's lines are not where they must be.
    """
    lines = _split(text)
    keys = [_Keys([line for line, _ in lines], key) for key in _PASSES]
    made: list[tuple[str, str]] = []
    done = 0
    for chunk in chunks:
        at = _place(chunk, keys, start=done, path=path)
        made += lines[done:at]
        done = _changed(chunk, lines, at, made)
    return _joined([*made, *lines[done:]], open_end=bool(lines) and not lines[-1][1])


def _split(text: str) -> list[tuple[str, str]]:
    """Each line with its end; only LF and CRLF end one."""
    lines = [(match[1], match[2]) for match in _LINE.finditer(text)]
    return [line for line in lines if line != ("", "")]


def _joined(lines: Sequence[tuple[str, str]], *, open_end: bool) -> str:
    """The text again, in which every line has an end; with `open_end` the last has none."""
    usual = next((end for _, end in lines if end), "\n")
    text = "".join(line + (end or usual) for line, end in lines)
    return text.removesuffix("\n").removesuffix("\r") if open_end else text


def _changed(
    chunk: Chunk, lines: Sequence[tuple[str, str]], at: int, made: list[tuple[str, str]]
) -> int:
    """Where the chunk ends in the file, once its outcome is added to `made`."""
    for sign, text in chunk.body:
        if sign == " ":
            made.append(lines[at])
        elif sign == "+":
            near = lines[max(at - 1, 0) : at + 1]
            made.append((text, near[0][1] if near else "\n"))
        at += sign != "+"
    return at


class _Keys:
    """The lines of a file under one notion of sameness."""

    def __init__(self, lines: list[str], key: Callable[[str], str]) -> None:
        self._raw = lines
        self._key = key

    @cached_property
    def lines(self) -> list[str]:
        """What stands for each line."""
        return [self._key(line) for line in self._raw]

    @cached_property
    def _text(self) -> str:
        return "\n".join(["", *self.lines, ""])

    @cached_property
    def _starts(self) -> list[int]:
        """Where the break before each line stands in the text, then where the last one does."""
        return list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    def find(self, wanted: Sequence[str], start: int) -> int:
        """The first place of these lines from `start` on, -1 without one."""
        # A search in one text takes linear time, where comparing line by line is quadratic.
        text = "\n".join(["", *(self._key(line) for line in wanted), ""])
        found = self._text.find(text, self._starts[start])
        return bisect_left(self._starts, found) if found >= 0 else -1

    def ends_with(self, wanted: Sequence[str], start: int) -> bool:
        """Whether the file ends in these lines, which begin at `start` or later."""
        at = len(self.lines) - len(wanted)
        return at >= start and self.lines[at:] == [self._key(line) for line in wanted]


def _place(chunk: Chunk, keys: Sequence[_Keys], *, start: int, path: str) -> int:
    """The line where the chunk begins."""
    for header in chunk.headers:
        found = _first(keys, [header], start)
        if found < 0:
            raise PatchError(
                "context", f"{path} has no line {header!r}{_below(start)}", line=chunk.line
            )
        start = found + 1
    old, length = chunk.old, len(keys[0].lines)
    if chunk.at_end:
        if any(key.ends_with(old, start) for key in keys):
            return length - len(old)
        raise PatchError(
            "context", f"{path} does not end in these lines:\n{_shown(old)}", line=chunk.line
        )
    if not old:
        return start if chunk.headers else length
    found = _first(keys, old, start)
    if found < 0:
        raise PatchError(
            "context", f"{path} has no such lines{_below(start)}:\n{_shown(old)}", line=chunk.line
        )
    return found


def _first(keys: Sequence[_Keys], wanted: Sequence[str], start: int) -> int:
    places = (key.find(wanted, start) for key in keys)
    return next((place for place in places if place >= 0), -1)


def _below(start: int) -> str:
    return f" below line {start}" if start else ""


def _shown(lines: Sequence[str]) -> str:
    more = [f"(and {len(lines) - SHOWN_LINES} more)"] if len(lines) > SHOWN_LINES else []
    return "\n".join([*lines[:SHOWN_LINES], *more])
