"""The changes of a text file: a unified diff, and the numbers of added and removed lines."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import msgspec

CONTEXT_LINES = 3
MOST_COMPARED_LINES = 4000
"""Between the first and the last changed line; of a longer stretch every line counts as changed,
because a comparison takes quadratic time in the worst case."""

Opcode = tuple[str, int, int, int, int]


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """A unified diff in `text`, empty if nothing changed, and the numbers of changed lines."""

    text: str
    additions: int
    deletions: int


def diff_texts(before: str, after: str, *, name: str) -> Diff:
    """Return the diff from `before` to `after`, with the file's name; lines end at LF only."""
    old, new = _lines(before), _lines(after)
    shared = _equal(old, new)
    tail = min(_equal(old[::-1], new[::-1]), len(old) - shared, len(new) - shared)
    lines = list(_hunks(old, new, shared, tail)) if before != after else []
    return Diff(
        text="".join([f"--- {name}\n+++ {name}\n", *lines]) if lines else "",
        additions=sum(line.startswith("+") for line in lines),
        deletions=sum(line.startswith("-") for line in lines),
    )


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])


def _equal(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of equal lines at the start of both lists."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _hunks(old: list[str], new: list[str], shared: int, tail: int) -> Iterator[str]:
    """Yield the lines of the diff's hunks.

    The first `shared` lines and the last `tail` lines are equal and not compared. They must remain
    in the hunks as context, because git takes a hunk that ends with a change as the end of the
    file.
    """
    last, new_last = len(old) - tail, len(new) - tail
    matcher = SequenceMatcher[str]()
    matcher.opcodes = [  # type: ignore[attr-defined]  # where it keeps what it has found
        ("equal", 0, shared, 0, shared),
        *_changes(old[shared:last], new[shared:new_last], shared),
        ("equal", last, len(old), new_last, len(new)),
    ]
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        old_range = _range(old_start, old_end - old_start)
        yield f"@@ -{old_range} +{_range(new_start, new_end - new_start)} @@\n"
        for kind, a, b, c, d in group:
            if kind == "equal":
                yield from (_line(" ", line) for line in old[a:b])
            else:
                yield from (_line("-", line) for line in old[a:b])
                yield from (_line("+", line) for line in new[c:d])


def _changes(old: list[str], new: list[str], lead: int) -> Iterator[Opcode]:
    """Yield the changes from `old` to `new`, with `lead` added to all line indices."""
    if max(len(old), len(new)) > MOST_COMPARED_LINES:
        yield "replace", lead, lead + len(old), lead, lead + len(new)
        return
    for kind, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        yield kind, lead + a, lead + b, lead + c, lead + d


def _range(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
