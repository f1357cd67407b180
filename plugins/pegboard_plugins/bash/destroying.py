"""What a command destroys: what would be gone with all that is in it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.words import Word

DELETERS = frozenset({"rm", "shred", "wipe", "srm", "unlink"})
_BINS = frozenset({"rimraf", "trash", "trash-put", "del-cli"})
"""They delete whole folders without being told to."""
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--r(e[a-z]*)?|--no-preserve-root")
_DELETING = re.compile(rf"(?:^|[\s;&|(/])(?:{'|'.join(sorted(DELETERS))})\s")
_EXPANSION = re.compile(r"\$\(.*\)|`.*`|\$\{.*\}|\$(?:\w+|[-$@*#?!])", re.DOTALL)
_ZIP_MOVES = re.compile(r"-[a-zA-Z]*m[a-zA-Z]*|--move")
_FIND_FILTER = re.compile(
    r"-(i?(l|whole)?name|i?path|i?regex|[acm]time|[acm]min|newer.*|size|empty|inum|samefile)"
)
_FITS_ALL = re.compile(r"[*?./^$+]+|[+-]?0\w?")


def destroy(base: str, words: Sequence[Word], operands: Sequence[Word], findings: Findings) -> None:
    """Note what the command destroys; the `operands` have the values of variables."""
    texts = [word.text for word in words]
    named = [word for word in operands if not word.text.startswith("-")]
    if base in _BINS or (base in DELETERS and any(map(_RECURSIVE.fullmatch, texts))):
        targets = named
    elif base == "mv":
        targets = [word for word in named[:-1] if re.match(r"[/~]|[^*?\[]*$", word.text)]
    elif base == "find":
        targets = _found(texts, named)
    elif base == "rsync" and any(text.startswith("--del") for text in texts):
        targets = named[-1:]
    elif base == "dd":
        targets = [Word(text[len("of=") :]) for text in texts if text.startswith("of=")]
    elif base.startswith("mkfs"):
        targets = named[-1:]
    else:
        targets = _packed(base, texts, operands)
    for word in targets:
        emptied = _emptied(word, findings)
        if not emptied.text or word.open:
            findings.destroys[""] = None
        else:
            findings.destroy(word)
            findings.destroy(word if base == "mv" else emptied)  # nothing moves the folder it is in


def _emptied(word: Word, findings: Findings) -> Word:
    """What is left of a word when nothing is put for what only the shell, or a caller, knows."""
    text = _EXPANSION.sub("", word.text) if word.dynamic else word.text
    if findings.placeholder:
        text = text.replace(findings.placeholder, "")
    return Word(text, bare=word.bare)


def _packed(base: str, texts: Sequence[str], operands: Sequence[Word]) -> list[Word]:
    """What is gone once it is in an archive, from each folder that the archiver goes to."""
    if base in ("tar", "gtar", "bsdtar"):
        is_gone = any(text.startswith("--remove-f") for text in texts)
    else:
        is_gone = base == "zip" and any(map(_ZIP_MOVES.fullmatch, texts))
    if not is_gone:
        return []
    inside, folder = [], ""
    for before, word in pairwise([Word(""), *operands]):
        text = word.text if word.text.startswith(("/", "~")) else f"{folder}{word.text}"
        if before.text in ("-C", "--directory"):
            folder = f"{text}/"
        elif not word.text.startswith("-"):
            inside.append(replace(word, text=text))
    return inside


def _found(texts: Sequence[str], named: Sequence[Word]) -> list[Word]:
    """Where a find starts that deletes whatever it comes by."""
    start = next((at for at, text in enumerate(texts) if text.startswith(("-", "(", "!"))), 0)
    deletes = "-delete" in texts or (
        any(text.startswith(("-exec", "-ok")) for text in texts)
        and any(text.rpartition("/")[2] in DELETERS or _DELETING.search(text) for text in texts)
    )
    if not deletes or _is_narrow(texts):
        return []
    return list(named[: max(start, 0)]) or [Word(".")]


def _is_narrow(texts: Sequence[str]) -> bool:
    """Whether each alternative of a find wants a trait that not about everything has."""
    if any(
        sign in ("!", "-not") and after in ("(", "!", "-not") for sign, after in pairwise(texts)
    ):
        return False
    alternatives: list[bool] = [False]
    for before, text, value in zip(["", *texts], texts, [*texts[1:], "*"], strict=False):
        if text in ("-o", "-or", ","):
            alternatives.append(False)
        elif _FIND_FILTER.fullmatch(text) and before not in ("!", "-not"):
            alternatives[-1] |= _FITS_ALL.fullmatch(value) is None
    return all(alternatives)
