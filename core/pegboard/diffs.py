"""What a change did to a text file: a unified diff, and the lines that came and went."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import msgspec

CONTEXT_LINES = 3
MOST_COMPARED_LINES = 4000
"""Between the first and the last changed line; of a longer stretch every line counts as changed,
because a comparison takes quadratic time in the worst case."""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is the unified diff, empty when nothing changed; the counts are of lines."""

    text: str
    additions: int
    deletions: int


def diff_texts(before: str, after: str, *, name: str) -> Diff:
    """How `after` differs from `before`, under the file's name; lines end at LF only."""
    old, new = _lines(before), _lines(after)
    shared = _equal(old, new)
    tail = min(_equal(old[::-1], new[::-1]), len(old) - shared, len(new) - shared)
    # Only what lies between the first and the last change is compared, with its context.
    lead, trail = max(shared - CONTEXT_LINES, 0), max(tail - CONTEXT_LINES, 0)
    lines = list(_hunks(old[lead : len(old) - trail], new[lead : len(new) - trail], lead))
    return Diff(
        text="".join([f"--- {name}\n+++ {name}\n", *lines]) if lines else "",
        additions=sum(line.startswith("+") for line in lines),
        deletions=sum(line.startswith("-") for line in lines),
    )


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])


def _equal(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines both begin with."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _hunks(old: list[str], new: list[str], lead: int) -> Iterator[str]:
    """The hunks of the diff, line by line; the given lines stand after `lead` others."""
    groups: list[list[tuple[str, int, int, int, int]]]
    if max(len(old), len(new)) > MOST_COMPARED_LINES:
        groups = [[("replace", 0, len(old), 0, len(new))]]
    else:
        groups = list(SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES))
    for group in groups:
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        old_range = _range(lead + old_start, old_end - old_start)
        yield f"@@ -{old_range} +{_range(lead + new_start, new_end - new_start)} @@\n"
        for kind, a, b, c, d in group:
            if kind == "equal":
                yield from (_line(" ", line) for line in old[a:b])
            else:
                yield from (_line("-", line) for line in old[a:b])
                yield from (_line("+", line) for line in new[c:d])


def _range(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
