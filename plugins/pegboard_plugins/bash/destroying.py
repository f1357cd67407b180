"""What a command destroys: what would be gone with all that is in it."""

import re
from collections.abc import Sequence
from itertools import dropwhile, pairwise, takewhile

from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.programs import git_words, kinds
from pegboard_plugins.bash.syntax import Operand

_LOCKS = re.compile(r"[0-7]?0[0-7]{2}|0+|(a|u\w*)?-\w*r\w*|(a|u\w*)=(,.*)?")
"""Modes with which not even the owner can read."""
_COPIES_ALL = re.compile(r"-[a-zA-Z]*[rRa][a-zA-Z]*|--(recursive|archive)")
_EXTRACTS = re.compile(r"-?[a-zA-Z]*x[a-zA-Z]*|--extract|--get")
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--r(e[a-z]*)?|--no-preserve-root")
DELETING = re.compile(r"(?:^|[\s;&|(/])(?:rm|shred|srm|unlink|wipe)\s")
_EXPANSION = re.compile(r"\$\(.*\)|`.*`|\$\{.*\}|\$(?:\w+|[-$@*#?!])", re.DOTALL)
_ZIP_MOVES = re.compile(r"-[a-zA-Z]*m[a-zA-Z]*|--move")
_FIND_FILTER = re.compile(
    r"-(i?(l|whole)?name|i?path|i?regex|[acm]time|[acm]min|newer.*|size|empty|inum|samefile)"
)
_FITS_ALL = re.compile(r"[*?./^$+]+|[+-]?0\w?")


def destroy(
    base: str, words: Sequence[Operand], operands: Sequence[Operand], findings: Findings
) -> None:
    """Note what the command destroys; the `operands` have the values of variables."""
    texts = [word.text for word in words]
    for word in _overlaid(base, texts, operands):
        findings.overlays |= dict.fromkeys(findings.places(word))
    for word in _targets(base, texts, operands):
        emptied = _emptied(word, findings)
        if not emptied.text or word.open:
            findings.destroys[""] = None
        else:
            findings.destroy(word)
            findings.destroy(word if base == "mv" else emptied)  # nothing moves the folder it is in


def _targets(base: str, texts: Sequence[str], operands: Sequence[Operand]) -> Sequence[Operand]:
    named = [word for word in operands if not word.text.startswith("-")]
    is_recursive = any(map(_RECURSIVE.fullmatch, texts))
    found: Sequence[Operand]
    match base:
        case "mv":
            leaves = _leaves(texts, named)
            plain = re.compile(r"" if leaves else r"[/~]|[^*?\[]*$")
            found = [word for word in named[:-1] if plain.match(word.text)]
        case "find":
            found = _found(texts, operands)
        case "rsync" if any(text.startswith("--del") for text in texts):
            found = named[-1:]
        case "git" if git_words(texts)[:1] == ["rm"] and is_recursive:
            kept = not {"--cached", "-n", "--dry-run"}.isdisjoint(texts)
            found = [] if kept else [word for word in named if word.text != "rm"]
        case "chmod" if is_recursive and any(map(_LOCKS.fullmatch, texts)):
            found = named[1:] or named
        case "dd":
            found = [Operand(text[len("of=") :]) for text in texts if text.startswith("of=")]
        case _ if base.startswith("mkfs"):
            found = named[-1:]
        case _ if "deletes-all" in kinds(base) or ("deletes" in kinds(base) and is_recursive):
            found = named
        case _:
            found = _packed(base, texts, operands)
    return found


def _leaves(texts: Sequence[str], named: Sequence[Operand]) -> bool:
    """Whether a `mv` goes to another place than one below the folder it is called in."""
    target = named[-1].text if named else ""
    return (
        target.startswith(("/", "~"))
        or ".." in target.split("/")
        or any(text.startswith(("-t", "--t")) for text in texts)
    )


def _overlaid(base: str, texts: Sequence[str], operands: Sequence[Operand]) -> list[Operand]:
    """The folder whose content as a whole would be written over, or given to somebody else."""
    named = [word for word in operands if not word.text.startswith("-")]
    options = [text for text in texts if text.startswith("-")]
    sources = [word.text for word in named[:-1]]
    match base:
        case "cp" if any(map(_COPIES_ALL.fullmatch, options)):
            onto = any(re.fullmatch(r"-[a-zA-Z]*T.*|--no-t.*", text) for text in options)
            return named[-1:] if onto or any(text.endswith("/.") for text in sources) else []
        case "rsync" if any(text.endswith("/") for text in sources):
            return named[-1:]
        case "chmod" | "chown" | "chgrp" if any(map(_RECURSIVE.fullmatch, options)):
            return named[1:]
        case "tar" | "gtar" | "bsdtar" if any(map(_EXTRACTS.fullmatch, texts)):
            return _valued(operands, ("-C", "--directory"))
        case "unzip":
            return _valued(operands, ("-d",))
        case _:
            return []


def _valued(operands: Sequence[Operand], options: Sequence[str]) -> list[Operand]:
    """The values of these options."""
    behind = [after for before, after in pairwise(operands) if before.text in options]
    glued = [
        word._replace(text=word.text.partition("=")[2] or word.text[len("-C") :])
        for word in operands
        if any(word.text.startswith(option) and word.text != option for option in options)
    ]
    return behind + glued


def _emptied(word: Operand, findings: Findings) -> Operand:
    """What is left of a word when nothing is put for what only the shell, or a caller, knows."""
    text = _EXPANSION.sub("", word.text) if word.dynamic else word.text
    if findings.placeholder:
        text = text.replace(findings.placeholder, "")
    return Operand(text, bare=word.bare)


def _packed(base: str, texts: Sequence[str], operands: Sequence[Operand]) -> list[Operand]:
    """What is gone once it is in an archive, from each folder that the archiver goes to."""
    if base in ("tar", "gtar", "bsdtar"):
        is_gone = any(text.startswith("--remove-f") for text in texts)
    else:
        is_gone = base == "zip" and any(map(_ZIP_MOVES.fullmatch, texts))
    if not is_gone:
        return []
    inside, folder = [], ""
    for before, word in pairwise([Operand(""), *operands]):
        text = word.text if word.text.startswith(("/", "~")) else f"{folder}{word.text}"
        if before.text in ("-C", "--directory"):
            folder = f"{text}/"
        elif not word.text.startswith("-"):
            inside.append(word._replace(text=text))
    return inside


def _found(texts: Sequence[str], operands: Sequence[Operand]) -> list[Operand]:
    """Where a find starts that deletes whatever it comes by."""
    deletes = "-delete" in texts or (
        any(text.startswith(("-exec", "-ok")) for text in texts)
        and any(
            "deletes" in kinds(text.rpartition("/")[2]) or DELETING.search(text) for text in texts
        )
    )
    if not deletes or _is_narrow(texts):
        return []
    return list(takewhile(_is_start, dropwhile(_is_option, operands))) or [Operand(".")]


def _is_option(word: Operand) -> bool:
    """Whether it is one of those that stand before the folders where a find starts."""
    return re.fullmatch(r"-[DHLP]|-O\d*|--", word.text) is not None


def _is_start(word: Operand) -> bool:
    return not word.text.startswith(("-", "(", "!"))


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
