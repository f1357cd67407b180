"""Keys, tokens and passwords in a text that is kept: how they look, and what stands instead."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

HIDDEN = "[secret]"
SHORTEST_VALUE = 8
"""A shorter value of a variable is too likely to stand in a text for something else."""
_WORD = r"(?:api[-_]?key|access[-_]?key|secret|token|passw(?:or)?d|passphrase|pwd|credentials?)"
_AROUND = r"[\w-]{0,40}"
_QUOTED = r"\"[^\"]{0,2000}(?:\"|\Z)|'[^']{0,2000}(?:'|\Z)"
_PLAIN = r"[^\s\"'&;|-][^\s\"'&;|]*"
_NAME = re.compile(_WORD, re.IGNORECASE)
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})
"""Named like a password, and known to all."""
_SHAPES = (
    (r"(?s)-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.{0,8000}?(?:-----END|\Z)", HIDDEN),
    (r"\b(?:sk|pk|rk)[-_][\w-]{16,}", HIDDEN),
    (r"\b(?:gh[opsur]_|github_pat_|glpat-|npm_|hf_|dop_v1_|shp[a-z]{2}_)\w{16,}", HIDDEN),
    (r"\bxox[abeoprs]-[\w-]{10,}", HIDDEN),
    (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", HIDDEN),
    (r"\bAIza[\w-]{30,}", HIDDEN),
    (r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", HIDDEN),
    (r"(?i)\b(authorization\s{0,4}[:=]\s{0,4}(?:\w{1,20}\s{1,4})?)[^\s\"']+", rf"\1{HIDDEN}"),
    (r"(?i)\b((?:bearer|basic)\s{1,4})[\w.~+/=-]{8,}", rf"\1{HIDDEN}"),
    (r"(://[^\s/:@\"']{0,200}:)[^\s/@\"']{1,500}@", rf"\1{HIDDEN}@"),
    (
        rf"(?i)({_WORD}\w{{0,40}}[\"']?\s{{0,4}}[=:]\s{{0,4}})(?:{_QUOTED}|[^\s\"'&;|]+)",
        rf"\1{HIDDEN}",
    ),
    (
        rf"(?i)(--?{_AROUND}{_WORD}{_AROUND}\s{{1,4}})(?:{_QUOTED}|{_PLAIN})",
        rf"\1{HIDDEN}",
    ),
)


def secret_values(env: Mapping[str, str], names: Iterable[str] = ()) -> tuple[str, ...]:
    """The values of these variables, and of all whose name speaks of a secret; longest first."""
    named = frozenset(names)
    found = {
        value
        for name, value in env.items()
        if len(value) >= SHORTEST_VALUE
        and (name in named or (name not in _DIRECTORIES and _NAME.search(name)))
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def redacted(text: str, values: Iterable[str] = ()) -> str:
    """The text without these values, and without what looks like a secret.

    It errs on the side of hiding: `token=` and `--password` hide whatever follows them.
    """
    for value in values:
        text = text.replace(value, HIDDEN)
    for shape, kept in _shapes():
        text = shape.sub(kept, text)
    return text


@cache
def _shapes() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The shapes as expressions, compiled when there is the first text."""
    return tuple((re.compile(shape), kept) for shape, kept in _SHAPES)
