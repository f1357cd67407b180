"""The search for a patch's chunks in a file, and their application."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, groupby
from operator import itemgetter

import msgspec

from pegboard.unstable import in_letters_of, plain
from pegboard_plugins.apply_patch.parser import PatchChunk, PatchError, Sign

SHOWN_LINES = 12
SHOWN_PLACES = 5
SHOWN_LETTERS = 200
"""Of one line of a place."""
SEARCHED_LETTERS = 2_000_000_000
"""In one file: the chunks of a longer patch are each looked for in a shorter one (some seconds)."""
_LINE = re.compile(r"([^\n]*?)(\r?\n|\Z)")


def _plain(line: str) -> str:
    return plain(line.replace("\u2026", "..."))


_PASSES: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip, _plain)
"""Lines are the same when one of these makes them so; the strictest is asked first."""


class AmbiguousChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk with lines that occur several times in the file; the first occurrence was changed.

    Numbers count from 1; lines are those of the old file. `others` has at most `SHOWN_PLACES`
    lines; `more` says that there are further ones.
    """

    chunk: int
    line: int
    others: tuple[int, ...]
    more: bool

    def __str__(self) -> str:
        others = ", ".join(map(str, self.others))
        return (
            f"line {self.line} was taken; the same lines stand at {others}{', ...' * self.more},"
            " counted before the patch"
        )


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text with the chunks applied, and the chunks that also fit elsewhere in the file."""

    text: str
    choices: tuple[AmbiguousChunk, ...]


def apply(text: str, chunks: Sequence[PatchChunk], *, path: str) -> Applied:
    """Return `text` with the chunks applied from the top down, each in the first place that fits.

    Only lines with `-` and `+` change. New lines get the line end of the line before. A file that
    ends without a line break stays without.

    :raises PatchError: `context`, when the file does not contain a header or a chunk's lines, or
        contains lines in several places that only resemble a chunk's.
    """
    lines = _split(text)
    keys = [_Keys([line for line, _ in lines], key) for key in _PASSES]
    made: list[tuple[str, str]] = []
    choices: list[AmbiguousChunk] = []
    done = 0
    for number, chunk in enumerate(chunks, start=1):
        at, found = _place(chunk, keys, start=done, path=path)
        if len(found) > 1:
            choices.append(_choice(number, found))
        made += lines[done:at]
        done = _changed(chunk, lines, at, made)
    after = _joined([*made, *lines[done:]], open_end=bool(lines) and not lines[-1][1])
    return Applied(text=after, choices=tuple(choices))


def _choice(number: int, found: Sequence[int]) -> AmbiguousChunk:
    taken, *others = (place + 1 for place in found)
    return AmbiguousChunk(
        chunk=number,
        line=taken,
        others=tuple(others[:SHOWN_PLACES]),
        more=len(others) > SHOWN_PLACES,
    )


def _split(text: str) -> list[tuple[str, str]]:
    """Return the lines of `text`, each with its line end; only LF and CRLF end a line."""
    lines = [(match[1], match[2]) for match in _LINE.finditer(text)]
    return [line for line in lines if line != ("", "")]


def _joined(lines: Sequence[tuple[str, str]], *, open_end: bool) -> str:
    """Join lines, each with a line end; with `open_end`, the last line has none."""
    usual = next((end for _, end in lines if end), "\n")
    text = "".join(line + (end or usual) for line, end in lines)
    return text.removesuffix("\n").removesuffix("\r") if open_end else text


def _changed(
    chunk: PatchChunk, lines: Sequence[tuple[str, str]], at: int, made: list[tuple[str, str]]
) -> int:
    """Append the chunk's kept and added lines to `made`; return the next index in `lines`."""
    for sign, text in _in_letters_of_the_file(chunk, lines, at):
        if sign == " ":
            made.append(lines[at])
        elif sign == "+":
            near = lines[max(at - 1, 0) : at + 1]
            made.append((text, near[0][1] if near else "\n"))
        at += sign != "+"
    return at


def _in_letters_of_the_file(
    chunk: PatchChunk, lines: Sequence[tuple[str, str]], at: int
) -> Iterator[tuple[Sign, str]]:
    """Yield the chunk's lines, with added lines in the file's characters.

    For example, if the file has a curly quote where the patch's removed line has a straight one,
    added lines get the curly one too.
    """
    there: list[str] = []
    given: list[str] = []
    for sign, group in groupby(chunk.body, key=itemgetter(0)):
        texts = [text for _, text in group]
        if sign == "+":
            if there != given:
                added = in_letters_of("\n".join(there), "\n".join(given), "\n".join(texts))
                texts = added.split("\n")
        else:
            there = [line for line, _ in lines[at : at + len(texts)]] if sign == "-" else []
            given = texts if sign == "-" else []
            at += len(texts)
        yield from ((sign, text) for text in texts)


class _Keys:
    """The lines of a file, normalized for comparison at one degree of strictness."""

    def __init__(self, lines: list[str], key: Callable[[str], str]) -> None:
        self._raw = lines
        self._key = key
        self._searched = 0

    @cached_property
    def lines(self) -> list[str]:
        """The lines, normalized for comparison."""
        return [self._key(line) for line in self._raw]

    @cached_property
    def _joined_lines(self) -> str:
        return "\n".join(["", *self.lines, ""])

    @cached_property
    def _starts(self) -> list[int]:
        """The offset of each line in `lines` joined by line breaks; the last offset is the end."""
        return list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    def find(self, wanted: Sequence[str], start: int) -> list[int]:
        """Return the first lines at which `wanted` begins, from line `start` on.

        The result has at most one line more than error messages list.

        :raises PatchError: when all searches together take too long.
        """
        # A search in one text takes linear time, where comparing line by line is quadratic.
        text = "\n".join(["", *(self._key(line) for line in wanted), ""])
        places: list[int] = []
        at = self._starts[start]
        while len(places) < SHOWN_PLACES + 2 and (at := self._find(text, at)) >= 0:
            places.append(bisect_left(self._starts, at))
            at += 1
        return places

    def _find(self, text: str, start: int) -> int:
        at = self._joined_lines.find(text, start)
        self._searched += (at if at >= 0 else len(self._joined_lines)) - start
        if self._searched > SEARCHED_LETTERS:
            raise PatchError("context", "there are too many chunks for so long a file: use several")
        return at

    def shown(self, places: Sequence[int]) -> str:
        """Return the lines with these indexes, each with its number, for an error message."""
        rows = [f"{at + 1:05}| {self.lines[at][:SHOWN_LETTERS]}" for at in places[:SHOWN_PLACES]]
        return "\n".join([*rows, *["..."] * (len(places) > SHOWN_PLACES)])

    def ends_with(self, wanted: Sequence[str], start: int) -> bool:
        """Return whether the file ends with the lines `wanted`, which begin at `start` or later."""
        at = len(self.lines) - len(wanted)
        return at >= start and self.lines[at:] == [self._key(line) for line in wanted]


def _place(
    chunk: PatchChunk, keys: Sequence[_Keys], *, start: int, path: str
) -> tuple[int, Sequence[int]]:
    """Return the line at which the chunk is applied, and all lines at which it would fit."""
    old, length = chunk.old, len(keys[0].lines)
    found, exact = [length], True
    for header in chunk.headers:
        found, exact = _fitting(keys, [header], start)
        if not found:
            raise PatchError(
                "context", f"{path} has no line {header!r}{_below(start)}", line=chunk.line
            )
        start = found[0] + 1
    if chunk.at_end:
        if any(key.ends_with(old, start) for key in keys):
            return length - len(old), ()
        raise PatchError(
            "context", f"{path} does not end in these lines:\n{_excerpt(old)}", line=chunk.line
        )
    if old:
        found, exact = _fitting(keys, old, start)
        if not found:
            text = f"{path} has no such lines{_below(start)}:\n{_excerpt(old)}"
            raise PatchError("context", text, line=chunk.line)
    if len(found) > 1 and not exact:
        raise PatchError(
            "context",
            f"{path} has these lines in several places, and nowhere exactly:\n"
            f"{keys[0].shown(found)}\nCopy them exactly, or say a line above them after '@@'",
            line=chunk.line,
        )
    return found[0] if old else start if chunk.headers else length, found


def _fitting(keys: Sequence[_Keys], wanted: Sequence[str], start: int) -> tuple[list[int], bool]:
    """Return the lines that the strictest successful comparison finds, and whether it is exact."""
    for key in keys:
        if places := key.find(wanted, start):
            return places, key is keys[0]
    return [], True


def _below(start: int) -> str:
    return f" below line {start}" if start else ""


def _excerpt(lines: Sequence[str]) -> str:
    more = [f"(and {len(lines) - SHOWN_LINES} more)"] if len(lines) > SHOWN_LINES else []
    return "\n".join([*lines[:SHOWN_LINES], *more])
