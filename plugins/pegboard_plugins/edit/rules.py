"""The looser rules that find a text in a file; each returns the places where it matches.

Texts have only LF line ends. A rule returns all places, so that the caller can refuse ambiguous
ones. No place begins or ends inside a word.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

import msgspec

import pegboard.unstable

SIMILAR_LINE = 0.8
"""Each line between the anchors is at least so similar,"""
SIMILAR_BLOCK = 0.9
"""and all of them together: only slips of the pen are forgiven."""
SHORTEST_BLOCK = 3
LONGEST_COMPARED_LINE = 1000
MOST_COMPARISONS = 20_000
FOLDING_BUDGET = 50_000_000
"""Words times letters: above, only whole lines are searched (about a second at worst)."""

_ESCAPE = re.compile(r"\\([ntr'\"`\\$\n])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class EditPlace(msgspec.Struct, frozen=True):
    """A place in a text, from `start` to before `end`.

    `lines` is set for whole lines without the last line break. If `whole`, all places of this kind
    may be replaced together. If `trimmed`, the outer white space of the searched text is not part
    of the place.
    """

    start: int
    end: int
    lines: int | None = None
    whole: bool = False
    trimmed: bool = False


def trimmed_lines(text: str, old: str) -> list[EditPlace]:
    """Return the blocks of lines that are equal after both ends of each line are trimmed.

    If the trimmed text also occurs within lines, these places are returned too.
    """
    lines = [line.strip() for line in text.split("\n")]
    blocks = _blocks(text, lines, _keys(old, str.strip))
    return _all_of(blocks, trimmed_boundary(text, old)) if blocks else []


def folded_whitespace(text: str, old: str) -> list[EditPlace]:
    """Return the places equal to `old` if all white space within a line counts as one blank.

    Whole lines come first, but a place within a line makes them ambiguous too.
    """
    lines, wanted = [_fold(line) for line in text.split("\n")], _keys(old, _fold)
    blocks = _blocks(text, lines, wanted)
    if len(old.split()) * len(text) <= FOLDING_BUDGET:
        return _all_of(blocks, _within_lines(text, old))
    all_places = _words("\n".join(lines), "\n".join(wanted).strip())
    return blocks if len(all_places) == len(blocks) else []


def unescaped(text: str, old: str) -> list[EditPlace]:
    r"""Return the places of `old` with its escapes (`\n`, `\"`, ...) decoded."""
    plain = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), old)
    return _words(text, plain) if plain != old else []


def trimmed_boundary(text: str, old: str) -> list[EditPlace]:
    """Return the places of `old` without the white space at its start and end."""
    return [EditPlace(place.start, place.end, trimmed=True) for place in _words(text, old.strip())]


def plain_punctuation(text: str, old: str) -> list[EditPlace]:
    """Return the places equal to `old` except for typographic characters, such as curly quotes.

    Dashes, special blanks, and letters composed of several code points count too.
    """
    keys = [pegboard.unstable.plain(line) for line in text.split("\n")]
    blocks = _blocks(text, keys, _keys(old, pegboard.unstable.plain))
    flat, wanted = (each.translate(pegboard.unstable.PLAIN) for each in (text, old))
    return _all_of(blocks, _words(flat, wanted))


def anchored_block(text: str, old: str) -> list[EditPlace]:
    """Return blocks of equal length with the same first and last line, and similar lines between.

    The first and last line must be distinctive; blank lines and single braces do not count.
    """
    wanted = _keys(old, str.strip)
    if len(wanted) < SHORTEST_BLOCK or not _are_anchors(wanted[0], wanted[-1]):
        return []
    lines = [line.strip() for line in text.split("\n")]
    comparer = _Comparer(wanted[1:-1])
    last = len(wanted) - 1
    starts = [
        start
        for start in range(len(lines) - last)
        if lines[start] == wanted[0]
        and lines[start + last] == wanted[-1]
        and comparer.is_similar(lines[start + 1 : start + last])
    ]
    if comparer.is_unsure:
        return []
    found = _lines_at(text, starts, len(wanted))
    return [EditPlace(place.start, place.end, lines=place.lines) for place in found]


def _all_of(blocks: list[EditPlace], within: list[EditPlace]) -> list[EditPlace]:
    """Return the blocks of whole lines, or all places if some of `within` are outside the blocks.

    `within` are the places that may begin and end within lines.
    """
    ends = [block.end for block in blocks]
    apart = [place for place in within if not _is_in_block(place, blocks, ends)]
    return sorted([*blocks, *apart], key=lambda place: place.start) if apart else blocks


def _is_in_block(place: EditPlace, blocks: list[EditPlace], ends: list[int]) -> bool:
    at = bisect_left(ends, place.end)
    return at < len(blocks) and blocks[at].start <= place.start


def _keys(old: str, key: Callable[[str], str]) -> list[str]:
    """Return `key` of each line of `old`; after a final line break, no further line begins."""
    return [key(line) for line in old.removesuffix("\n").split("\n")]


def _fold(line: str) -> str:
    return " ".join(line.split())


def _blocks(text: str, keys: list[str], wanted: list[str]) -> list[EditPlace]:
    """Return the blocks of lines with keys that equal `wanted`; `keys` has a key for each line.

    A key is a line in normalized form. Keys are searched as one joined string, which takes linear
    time even if lines repeat.
    """
    if not any(wanted):
        return []
    haystack, needle = "\n".join(["", *keys, ""]), "\n".join(["", *wanted, ""])
    starts, line, seen = [], 0, 0
    at = haystack.find(needle)
    while at >= 0:
        line += haystack.count("\n", seen, at)
        seen = at
        starts.append(line)
        at = haystack.find(needle, at + 1)
    return _lines_at(text, starts, len(wanted))


def _lines_at(text: str, starts: list[int], count: int) -> list[EditPlace]:
    """Return the places of `count` lines from each of these line numbers (from 0) on."""
    if not starts:
        return []
    offsets = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
    return [
        EditPlace(offsets[start], offsets[start + count] - 1, lines=count, whole=True)
        for start in starts
    ]


def _within_lines(text: str, old: str) -> list[EditPlace]:
    """Return the places that equal `old` except for blanks; they may begin within a line."""
    lines = [[re.escape(word) for word in line.split()] for line in old.strip().split("\n")]
    if not any(lines):
        return []
    blank = r"[^\S\n]"
    pattern = rf"{blank}*\n{blank}*".join(rf"{blank}+".join(line) for line in lines)
    return [
        EditPlace(start, end, trimmed=True)
        for start, end in _matches(re.compile(pattern), text)
        if not _splits_word(text, start, end)
    ]


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of all matches, including overlapping ones."""
    match = pattern.search(text)
    while match is not None:
        yield match.span()
        match = pattern.search(text, match.start() + 1)


def _words(text: str, wanted: str) -> list[EditPlace]:
    """Return the places of `wanted` in the text that neither begin nor end inside a word."""
    if not wanted.strip():
        return []
    spans = _matches(re.compile(re.escape(wanted)), text)
    return [EditPlace(start, end) for start, end in spans if not _splits_word(text, start, end)]


def _splits_word(text: str, start: int, end: int) -> bool:
    """Return whether a span begins or ends inside a word or a number."""
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    first, last = text[start], text[end - 1]
    if _is_word(first) and before and _is_word(before[-1]):
        return True
    if _is_word(last) and after and _is_word(after[0]):
        return True
    begins_in_number = first.isdigit() and re.fullmatch(r"\d\.", before) is not None
    ends_in_number = last.isdigit() and re.fullmatch(r"\.\d", after) is not None
    return begins_in_number or ends_in_number


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _are_anchors(first: str, last: str) -> bool:
    return bool(first and last) and any(map(str.isalnum, first + last))


class _Comparer:
    """A comparison of blocks of lines with one text, which limits the number of comparisons.

    `is_unsure` is set when a possibly similar line was not compared, so that there may be more
    matches.
    """

    def __init__(self, wanted: list[str]) -> None:
        self._wanted = wanted
        self._left = MOST_COMPARISONS
        self.is_unsure = False

    def is_similar(self, lines: list[str]) -> bool:
        """Return whether each line is similar to the wanted line at the same position."""
        length = different = 0.0
        for line, wanted in zip(lines, self._wanted, strict=True):
            size = max(len(line), len(wanted))
            length += size
            if line == wanted:
                continue
            similarity = self._similarity(line, wanted)
            if similarity < SIMILAR_LINE:
                return False
            different += size * (1 - similarity)
        return different <= length * (1 - SIMILAR_BLOCK)

    def _similarity(self, line: str, wanted: str) -> float:
        """Return the similarity from 0 to 1; 0 if a line is too long, or too many were compared."""
        if 2 * min(len(line), len(wanted)) < SIMILAR_LINE * (len(line) + len(wanted)):
            return 0
        self._left -= 1
        if self._left < 0 or max(len(line), len(wanted)) > LONGEST_COMPARED_LINE:
            self.is_unsure = True
            return 0
        matcher = SequenceMatcher(None, line, wanted, autojunk=False)
        return matcher.ratio() if matcher.quick_ratio() >= SIMILAR_LINE else 0
