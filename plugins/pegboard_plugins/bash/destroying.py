"""What a command destroys: what would be gone with all that is in it, or written over."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile, pairwise, takewhile

from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.programs import git_words, kinds
from pegboard_plugins.bash.syntax import Operand

_LOCKS = re.compile(r"[0-7]?0[0-7]{2}|0+|(a|u\w*)?-\w*r\w*|(a|u\w*)=(,.*)?")
"""Modes with which not even the owner can read."""
_COPIES_ALL = re.compile(r"-[a-zA-Z]*[rRa][a-zA-Z]*|--(recursive|archive)")
_COPIES_ONTO = re.compile(r"-[a-zA-Z]*T.*|--no-t.*")
_EXTRACTS = re.compile(r"-?[a-zA-Z]*x[a-zA-Z]*|--extract|--get")
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--r(e[a-z]*)?|--no-preserve-root")
_DELETING = re.compile(r"(?:^|[\s;&|(/])(?:rm|shred|srm|unlink|wipe)\s")
_EXPANSION = re.compile(r"\$\(.*\)|`.*`|\$\{.*\}|\$(?:\w+|[-$@*#?!])", re.DOTALL)
_ZIP_MOVES = re.compile(r"-[a-zA-Z]*m[a-zA-Z]*|--move")
_FIND_OPTION = re.compile(r"-[DHLP]|-O\d*|--")
_FIND_FILTER = re.compile(
    r"-(i?(l|whole)?name|i?path|i?regex|[acm]time|[acm]min|newer.*|size|empty|inum|samefile)"
)
_FITS_ALL = re.compile(r"[*?./^$+]+|[+-]?0\w?")

Words = Sequence[Operand]
Rule = Callable[[Sequence[str], Words], Words]
"""What of the operands is gone, or written over; the texts are those of all words."""


def destroy(base: str, words: Words, operands: Words, findings: Findings) -> None:
    """Note what the command destroys; the `operands` have the values of variables."""
    rule = _RULES.get("mkfs" if base.startswith("mkfs") else base)
    if rule is None and not kinds(base).isdisjoint(("deletes", "deletes-all")):
        rule = _all if "deletes-all" in kinds(base) else _recursive
    overlays = _OVERLAYS.get(base)
    if rule is None and overlays is None:
        return
    texts = [word.text for word in words]
    for word in overlays(texts, operands) if overlays else ():
        findings.overlays |= dict.fromkeys(findings.places(word))
    for word in rule(texts, operands) if rule else ():
        emptied = _emptied(word, findings)
        if not emptied.text or word.open:
            findings.destroys[""] = None
        else:
            findings.destroy(word)
            findings.destroy(word if base == "mv" else emptied)  # nothing moves the folder it is in


def _emptied(word: Operand, findings: Findings) -> Operand:
    """What is left of a word when nothing is put for what only the shell, or a caller, knows."""
    text = _EXPANSION.sub("", word.text) if word.dynamic else word.text
    if findings.placeholder:
        text = text.replace(findings.placeholder, "")
    return Operand(text, bare=word.bare)


def _all(_texts: Sequence[str], operands: Words) -> Words:
    return [word for word in operands if not word.text.startswith("-")]


def _last(texts: Sequence[str], operands: Words) -> Words:
    return _all(texts, operands)[-1:]


def _recursive(texts: Sequence[str], operands: Words) -> Words:
    return _all(texts, operands) if any(map(_RECURSIVE.fullmatch, texts)) else ()


def _moved(texts: Sequence[str], operands: Words) -> Words:
    """What a `mv` moves away; below the folder it is called in a wildcard only tidies up."""
    named = _all(texts, operands)
    target = named[-1].text if named else ""
    leaves = target.startswith(("/", "~")) or ".." in target.split("/")
    if leaves or any(text.startswith(("-t", "--t")) for text in texts):
        return named[:-1]
    return [word for word in named[:-1] if re.match(r"[/~]|[^*?\[]*$", word.text)]


def _synced(texts: Sequence[str], operands: Words) -> Words:
    return _last(texts, operands) if any(text.startswith("--del") for text in texts) else ()


def _git_removed(texts: Sequence[str], operands: Words) -> Words:
    is_kept = not {"--cached", "-n", "--dry-run"}.isdisjoint(texts)
    if git_words(texts)[:1] != ["rm"] or is_kept:
        return ()
    named = [word for word in _recursive(texts, operands) if word.text != "rm"]
    return [Operand(".") if word.text.startswith(":") else word for word in named]


def _locked(texts: Sequence[str], operands: Words) -> Words:
    named = _all(texts, operands) if any(map(_LOCKS.fullmatch, texts)) else ()
    return named[1:] or named


def _device(texts: Sequence[str], _operands: Words) -> Words:
    return [Operand(text[len("of=") :]) for text in texts if text.startswith("of=")]


def _tarred(texts: Sequence[str], operands: Words) -> Words:
    is_gone = any(text.startswith("--remove-f") for text in texts)
    return _packed(operands) if is_gone else ()


def _zipped(texts: Sequence[str], operands: Words) -> Words:
    return _packed(operands) if any(map(_ZIP_MOVES.fullmatch, texts)) else ()


def _packed(operands: Words) -> Words:
    """What is in an archive, from each folder that the archiver goes to."""
    inside, folder = [], ""
    for before, word in pairwise([Operand(""), *operands]):
        text = word.text if word.text.startswith(("/", "~")) else f"{folder}{word.text}"
        if before.text in ("-C", "--directory"):
            folder = f"{text}/"
        elif not word.text.startswith("-"):
            inside.append(word._replace(text=text))
    return inside


def _trashed(texts: Sequence[str], operands: Words) -> Words:
    return _all(texts, operands)[1:] if "trash" in texts[:1] else ()


def _written_empty(texts: Sequence[str], operands: Words) -> Words:
    """Of files that are emptied those that are written out, or fit a wildcard."""
    return [word for word in _all(texts, operands) if not word.dynamic]


def _edited_empty(texts: Sequence[str], operands: Words) -> Words:
    is_emptied = any(text.startswith(("-i", "--in")) for text in texts) and "d" in texts
    return _written_empty(texts, operands) if is_emptied else ()


def _found(texts: Sequence[str], operands: Words) -> Words:
    """Where a find starts that deletes whatever it comes by."""
    deletes = "-delete" in texts or (
        any(text.startswith(("-exec", "-ok")) for text in texts)
        and (any(map(_is_deleter, texts)) or ("chmod" in texts and any(map(_locks, texts))))
    )
    if not deletes or _is_narrow(texts):
        return ()
    behind = dropwhile(lambda word: _FIND_OPTION.fullmatch(word.text), operands)
    starts = takewhile(lambda word: not word.text.startswith(("-", "(", "!")), behind)
    return list(starts) or [Operand(".")]


def _locks(text: str) -> bool:
    return _LOCKS.fullmatch(text) is not None


def _is_deleter(text: str) -> bool:
    """Whether a word is a program that deletes, or code that calls one."""
    name = text.rpartition("/")[2]
    return (
        "deletes" in kinds(name) or name in ("mv", "truncate") or _DELETING.search(text) is not None
    )


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


def _copied_over(texts: Sequence[str], operands: Words) -> Words:
    options = [word.text for word in operands if word.text.startswith("-")]
    named = _all(texts, operands)
    is_onto = any(map(_COPIES_ONTO.fullmatch, options)) or _ends_in("/.", named[:-1])
    return named[-1:] if is_onto and any(map(_COPIES_ALL.fullmatch, options)) else ()


def _synced_over(texts: Sequence[str], operands: Words) -> Words:
    named = _all(texts, operands)
    return named[-1:] if _ends_in("/", named[:-1]) else ()


def _ends_in(sign: str, words: Words) -> bool:
    return any(word.text.endswith(sign) for word in words)


def _changed(texts: Sequence[str], operands: Words) -> Words:
    options = [word.text for word in operands if word.text.startswith("-")]
    return _all(texts, operands)[1:] if any(map(_RECURSIVE.fullmatch, options)) else ()


def _untarred(texts: Sequence[str], operands: Words) -> Words:
    is_opened = any(map(_EXTRACTS.fullmatch, texts))
    return _valued(operands, ("-C", "--directory")) if is_opened else ()


def _unzipped(_texts: Sequence[str], operands: Words) -> Words:
    return _valued(operands, ("-d",))


def _valued(operands: Words, options: Sequence[str]) -> Words:
    """The values of these options."""
    behind = [after for before, after in pairwise(operands) if before.text in options]
    glued = [
        word._replace(text=word.text.partition("=")[2] or word.text[len("-C") :])
        for word in operands
        if any(word.text.startswith(option) and word.text != option for option in options)
    ]
    return behind + glued


_TARS = ("tar", "gtar", "bsdtar")
_RULES: Mapping[str, Rule] = {
    "mv": _moved,
    "find": _found,
    "rsync": _synced,
    "git": _git_removed,
    "chmod": _locked,
    "dd": _device,
    "mkfs": _last,
    **dict.fromkeys(_TARS, _tarred),
    "zip": _zipped,
    "gio": _trashed,
    "truncate": _written_empty,
    "sed": _edited_empty,
    **dict.fromkeys(("wipefs", "blkdiscard"), _all),
}
"""What is gone behind each program that does not just delete what it is told."""
_OVERLAYS: Mapping[str, Rule] = {
    "cp": _copied_over,
    "rsync": _synced_over,
    **dict.fromkeys(("chmod", "chown", "chgrp"), _changed),
    **dict.fromkeys(_TARS, _untarred),
    "unzip": _unzipped,
    "setfacl": _recursive,
}
"""The folder whose content as a whole would be written over, or given to somebody else."""
