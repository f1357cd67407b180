"""The lines of a file that an error message shows: the matching places, or the most similar."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import accumulate

SHOWN_PLACES = 5
SHOWN_LINES = 8
SHOWN_LETTERS = 200
"""Of one line."""
COMPARED_LETTERS = 1000
"""Of places that are equally likely by their lines, so much is compared."""
VOTING_LINES = 20
"""Of a text that is looked for, so many lines say where it may stand."""
MOST_COMPARED = 5000
"""So many lines of a file are compared letter by letter, if no line of the text is in it."""


def fitting(text: str, starts: Sequence[int]) -> str:
    """Return the lines that contain these offsets, each with the line before, without repeats."""
    lines = text.split("\n")
    breaks = [*accumulate((len(line) + 1 for line in lines), initial=0)]
    places = [bisect_right(breaks, start) - 1 for start in starts[:SHOWN_PLACES]]
    runs: list[tuple[int, int]] = []
    for place in sorted(places):
        start = max(place - 1, 0)
        if runs and start <= runs[-1][1]:
            start = runs.pop()[0]
        runs.append((start, place + 1))
    pieces = [_numbered(lines, start, end) for start, end in runs]
    more = ["..."] if len(starts) > SHOWN_PLACES else []
    return "\n...\n".join(pieces + more).removesuffix("\n...")


def nearest(text: str, wanted: str) -> str:
    """Return the lines of `text` most similar to `wanted`; "" if no line is similar."""
    lines = text.split("\n")
    keys = [line.strip() for line in lines]
    sought = [line.strip() for line in wanted.strip("\n").split("\n")]
    start = _most_equal(keys, sought[:VOTING_LINES])
    if start is None:
        start = _most_similar(keys[:MOST_COMPARED], sought)
    if start is None:
        return ""
    return _numbered(lines, start, min(start + len(sought), start + SHOWN_LINES))


def _most_equal(keys: Sequence[str], sought: Sequence[str]) -> int | None:
    """Return the first line of the block that has most lines of `sought`, or None without one."""
    offsets: dict[str, list[int]] = {}
    for offset, line in enumerate(sought):
        if any(map(str.isalnum, line)):
            offsets.setdefault(line, []).append(offset)
    votes = Counter(
        max(number - offset, 0)
        for number, key in enumerate(keys)
        for offset in offsets.get(key, ())
    )
    most = max(votes.values(), default=0)
    best = [start for start, count in votes.items() if count == most]

    def likeness(start: int) -> float:
        there = "\n".join(keys[start : start + len(sought)])[:COMPARED_LETTERS]
        return SequenceMatcher(None, "\n".join(sought)[:COMPARED_LETTERS], there).ratio()

    return max(best[:SHOWN_PLACES], key=likeness, default=None)


def _most_similar(keys: Sequence[str], sought: Sequence[str]) -> int | None:
    """Return the first line of a block like `sought`, found by its longest line, or None."""
    longest = max(sought, key=len)[:SHOWN_LETTERS]
    short = [key for key in keys if len(key) <= SHOWN_LETTERS]
    alike = get_close_matches(longest, short, n=1, cutoff=0.6)
    if not alike:
        return None
    offset = next(place for place, line in enumerate(sought) if line.startswith(longest))
    return max(keys.index(alike[0]) - offset, 0)


def _numbered(lines: Sequence[str], start: int, end: int) -> str:
    """Return lines in the format of the read tool."""
    return "\n".join(
        f"{number:05}| {line[:SHOWN_LETTERS]}{'...' * (len(line) > SHOWN_LETTERS)}"
        for number, line in enumerate(lines[start:end], start + 1)
    )
