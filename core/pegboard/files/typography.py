"""Typography that models simplify: quotation marks, dashes, spaces and composed letters.

An edit with an old text that differs from the file only in these still matches. The file keeps its
own characters wherever the new text repeats the old one.
"""

import re
import unicodedata
from collections.abc import Iterator
from difflib import SequenceMatcher

PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
    }
)
LONGEST_COMPARED = 2000
"""Letters of a line that is compared letter by letter, in time that grows with their square."""
_CLUSTER = re.compile(r".[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff]*", re.DOTALL)
"""A letter with the marks that are put on it (Unicode's blocks of combining marks)."""


def plain(text: str) -> str:
    """Return the text with plain punctuation, composed letters and no outer white space."""
    return unicodedata.normalize("NFC", text.translate(PLAIN)).strip()


def in_letters_of(there: str, old: str, new: str) -> str:
    """Return `new` with the file's own typography wherever `new` repeats `old`.

    `there` is the file's text in the place of `old`. It has as many lines, which differ only in
    typography and outer white space. A line for which this does not hold is taken from `new`.
    """
    theirs, given, wanted = there.split("\n"), old.split("\n"), new.split("\n")
    if len(theirs) != len(given):
        return new
    lines: list[str] = []
    for tag, first, last, start, end in SequenceMatcher(
        a=given, b=wanted, autojunk=False
    ).get_opcodes():
        if tag == "equal" or last - first == end - start:
            lines += map(_line, theirs[first:last], given[first:last], wanted[start:end])
        else:
            lines += wanted[start:end]
    return "\n".join(lines)


def _line(there: str, old: str, new: str) -> str:
    if plain(there) != plain(old) or max(len(old), len(new)) > LONGEST_COMPARED:
        return new
    theirs, given, wanted = (list(_CLUSTER.findall(line)) for line in (there.strip(), old, new))
    lead = len(old) - len(old.lstrip())
    if len(theirs) != len(_CLUSTER.findall(old.strip())):
        return new
    theirs = [*given[:lead], *theirs, *given[lead + len(theirs) :]]
    return "".join(_pieces(theirs, given, wanted))


def _pieces(theirs: list[str], given: list[str], wanted: list[str]) -> Iterator[str]:
    for tag, first, last, start, end in SequenceMatcher(
        a=given, b=wanted, autojunk=False
    ).get_opcodes():
        yield from theirs[first:last] if tag == "equal" else wanted[start:end]
