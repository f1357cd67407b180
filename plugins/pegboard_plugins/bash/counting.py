"""Commands that put out nothing but a number, which no shell can take for anything else."""

import re
from collections.abc import Sequence

from pegboard_plugins.bash.syntax import Block, Piece, Simple, Statement, Word
from pegboard_plugins.bash.values import NUMBERS, Values

_NUMBER = re.compile(r"[-+]?\d*")
_COUNTERS = re.compile(
    r"nproc|wc( -[lcwm])( [^-].*)?|date \+%[smdHMYj]N?|id -[ug]|pgrep (-\w*c\w* )?\S+"
    r"|expr [\d $+*-]*|(grep|rg) (.* )?-\w*c\w*( .*)?|stat -c ?%[sYXZ] .*|seq .*"
)


def counts(name: str, values: Values, sums: Sequence[str]) -> bool:
    """Whether the line gives a variable nothing but numbers."""
    return all(
        isinstance(value, Word) and _is_number(value, sums) for value in values.given(name) or ()
    )


def is_count(body: Sequence[Statement]) -> bool:
    """Whether the last command of a substitution puts out a number, as no other does before it."""
    last: Statement | None = body[0] if body else None
    while isinstance(last, Block) and (last.kind == "pipe" or len(last.parts) == 1):
        last = last.parts[-1]
    if not isinstance(last, Simple):
        return False
    return _COUNTERS.fullmatch(" ".join(word.shown for word in last.words)) is not None


def _is_number(word: Word, sums: Sequence[str]) -> bool:
    return all(_is_numeric(piece, sums) for piece in word.pieces)


def _is_numeric(piece: Piece, sums: Sequence[str]) -> bool:
    match piece.kind:
        case "text":
            return _NUMBER.fullmatch(piece.text) is not None
        case "variable":
            is_own = piece.text in NUMBERS or (not piece.how and piece.text in sums)
            return is_own or piece.how == "#n"
        case "output":
            return is_count(piece.body)
        case kind:
            return kind in ("sum", "braces")
