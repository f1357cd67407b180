"""The paths that a command destroys, because the command removes or overwrites them."""

import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise, takewhile

from pegboard_plugins.bash.findings import WalkState
from pegboard_plugins.bash.origins import SAYS, lose, losses
from pegboard_plugins.bash.programs import (
    destroys,
    git_words,
    kinds,
    last,
    option_values,
    takes_names,
    without_options,
)
from pegboard_plugins.bash.syntax import ANYTHING, LISTED, Operand, Simple, Statement
from pegboard_plugins.bash.tables import rows

_DELETING = re.compile(r"(?:^|[\s;&|(/])(?:rm|shred|srm|unlink|wipe)\s")
_ENDS_IN = re.compile(f"{LISTED}[^{ANYTHING}/]+")
"""The name of a file that is there, with an end that makes it another one."""
_COPIES = frozenset({"cp", "install", "sponge"})
_COPIES_ONTO = re.compile(r"-[a-zA-Z]*T.*|--no-t.*")
_OUTPUTS = ("-o", "-O", "-out", "--output", "--output-document")
_FOLDER_OPTIONS = ("-C", "--directory", "-d")
_FIND_OPTION = re.compile(r"-[DHLP]|-O\d*|--")
_FIND_FILTER = re.compile(r"-(i?(l|whole)?name|i?path|i?regex|size|empty|inum|samefile)")
"""How old a file is does not count: nearly all are older, or newer, than any day."""
_RUNS = re.compile(r"-(exec|ok)")
_LISTED = re.compile(f"(?:{LISTED}|{ANYTHING})+")
_BY_KIND = frozenset({"deletes", "deletes-all", "empties"})
_FITS_ALL = re.compile(r"[*?./^$+]+|[+-]?0\w?|-\d+\w?")
_GONE, _OVERLAID, _RENAMED = (rows("programs", name) for name in ("gone", "overlaid", "renamed"))
_LOCKS = re.compile(_GONE["chmod"][0].split()[1])

Words = Sequence[Operand]
Selection = Callable[[Sequence[str], Words], Words]
"""Which of the operands; the texts are those of all words."""


def destroy(base: str, words: Words, operands: Words, findings: WalkState) -> None:
    """Record the paths that the command destroys; `operands` have the values of variables."""
    names = ["mkfs" if base.startswith("mkfs") else base]
    if not _BY_KIND.isdisjoint(kinds(base)):
        names += sorted(_BY_KIND & kinds(base))
    elif names[0] not in _GONE and names[0] not in _OVERLAID and names[0] not in _RENAMED:
        return
    texts = [word.text for word in words]
    for word in _selected(_OVERLAID, names, texts, operands):
        findings.overlays |= dict.fromkeys(findings.places(word))
    if base in _COPIES and _is_made(base, operands, findings):
        return  # what it has made of a file may replace that
    for word in _selected(_RENAMED, names, texts, operands):
        _rename(word, operands, findings)
    if base == "find" and deletes(texts):
        findings.lose_renamed(("*",))
    for word in _selected(_GONE, names, texts, operands):
        emptied = _emptied(word, findings)
        if not emptied.text or (word.open and not _ENDS_IN.fullmatch(word.text)):
            findings.destroys[""] = None
        elif not word.dynamic or base != "mv":  # nothing moves the folder it is in
            findings.destroy(emptied if word.dynamic else word)
            findings.destroy(word if base == "mv" else emptied)
    _lose(names, texts, operands, findings)


def _is_made(base: str, operands: Words, findings: WalkState) -> bool:
    """Return whether an earlier command of the shell line wrote the file that is copied."""
    named = [word for word in operands if not word.text.startswith("-")]
    own = {piece.text for word in named[-1:] if word.word for piece in word.word.pieces}
    paths = (path for word in named[:-1] for path in findings.places(word))
    feeds = [feed for path in paths for feed in findings.saved.get(path, ())]
    feeds += [findings.fed] if base == "sponge" and findings.fed is not None else []
    return any(
        isinstance(one, Simple) and one.expanded and not _is_name(one, own)
        for feed in feeds
        if not (feed.parts and _is_name(feed.parts[-1], own))
        for one in feed.parts
    )


def _is_name(one: Statement, names: Container[str]) -> bool:
    """Return whether a command prints nothing but the variables `names` and literal text."""
    if not isinstance(one, Simple):
        return False
    pieces = (piece for word in one.expanded for piece in word.pieces)
    prints = one.runs is not None and one.runs.base in SAYS
    return prints and all(
        each.kind != "output" and (each.kind != "variable" or each.text in names) for each in pieces
    )


def _rename(word: Operand, operands: Words, findings: WalkState) -> None:
    """Record that a rename gives the files of `word` unknown names in the target folder."""
    target = operands[-1]
    places = tuple(map(os.path.normpath, findings.places(target)))
    if word.dynamic or (findings.placeholder and findings.placeholder in word.text):
        findings.renamed |= dict.fromkeys(losses(word, findings), places)
    elif _is_wild(word):
        findings.renamed |= dict.fromkeys(findings.patterns(word), places)
    is_one = not target.dynamic and not _is_wild(target) and target.text[-1:] != "/"
    is_folder = any(findings.makes(path) or os.path.isdir(path) for path in places)  # noqa: PTH112
    if is_one and not is_folder and _is_value(word):
        findings.lose_renamed(places)  # each under the same name


def _lose(names: Sequence[str], texts: Sequence[str], operands: Words, findings: WalkState) -> None:
    """Record the files that are lost if `operands` contain file names printed by commands."""
    listed, every = dict[Operand, Operand](), list[Operand]()
    for word in operands:
        filled = word.text
        if findings.placeholder and word.word is None:
            continue  # where the input stands is written out
        if findings.placeholder:
            filled = filled.replace(findings.placeholder, LISTED)
        is_listed = ANYTHING in filled
        every.append(Operand(_LISTED.sub("*", filled), bare=word.bare) if is_listed else word)
        listed |= {every[-1]: word} if is_listed else {}
    if takes_names(names[0], texts) and findings.fed is not None:
        every.append(Operand("*"))
        listed[every[-1]] = Operand(LISTED)
    for word in _selected(_GONE, names, texts, every) if listed else ():
        if word in listed:
            lose(listed[word], findings)


def _selected(
    table: Mapping[str, Sequence[str]], names: Sequence[str], texts: Sequence[str], operands: Words
) -> Iterator[Operand]:
    """Yield the operands that a program's rules in `table` select, if the arguments fit a rule."""
    for rule in (rule for name in names for rule in table.get(name, ())):
        which, *needed = rule.split()
        if all(_is_met(each, texts) for each in needed):
            yield from _SELECTIONS[which](texts, operands)


def _is_met(needed: str, texts: Sequence[str]) -> bool:
    """Return whether any text matches the pattern `needed`; after `!`, whether no text matches."""
    fits = any(re.fullmatch(needed.removeprefix("!"), text) for text in texts)
    return fits != needed.startswith("!")


def _emptied(word: Operand, findings: WalkState) -> Operand:
    """Return the word as it is when all unknown values in the word are empty."""
    text = word.plain
    if findings.placeholder:
        text = text.replace(findings.placeholder, "")
    return Operand(text, bare=word.bare, wild=word.wild)


def _all(_texts: Sequence[str], operands: Words) -> Words:
    return [word for word in operands if not word.text.startswith("-")]


def _is_wild(word: Operand) -> bool:
    return word.wild and not word.dynamic and any(sign in word.text for sign in "*?[")


def _moved(_texts: Sequence[str], operands: Words) -> Words:
    """Return the files that `mv` moves away.

    A wildcard is left out if the target is a folder in the current one.
    """
    moving, named = _moving(_texts, operands), without_options("mv", operands)
    target = named[-1].text if len(moving) < len(named) else "/"
    if target.startswith(("/", "~")) or ".." in target.split("/"):
        return moving
    return [word for word in moving if re.match(r"[/~]|[^*?\[]*$", word.text)]


def _moving(_texts: Sequence[str], operands: Words) -> Words:
    """Return the files that `mv` renames, whatever the target is."""
    named = without_options("mv", operands)
    is_last = any(True for _ in option_values(operands, ("-t", "--target-directory")))
    return named if is_last else named[:-1]


def _git_removed(texts: Sequence[str], operands: Words) -> Words:
    is_kept = not {"--cached", "-n", "--dry-run"}.isdisjoint(texts)
    if git_words(texts)[:1] != ["rm"] or is_kept:
        return ()
    named = [word for word in _all(texts, operands) if word.text != "rm"]
    return [Operand(".") if word.text.startswith(":") else word for word in named]


def _each_written(_texts: Sequence[str], operands: Words) -> Words:
    """Return the last operand if it is a loop's variable, so each round writes another file."""
    named = [word for word in operands if not word.text.startswith("-")]
    return [*filter(_is_each, named[-1:] if len(named) > 1 else ())]


def _is_each(word: Operand) -> bool:
    """Return whether a word is just a loop's variable that takes several file names."""
    return _is_value(word) and _is_wild(word) and not word.text.endswith("/")


def _is_value(word: Operand) -> bool:
    pieces = word.word.pieces if word.word else ()
    return word.word is None or [(each.kind, each.how) for each in pieces] == [("variable", "")]


def _each_output(_texts: Sequence[str], operands: Words) -> Words:
    """Return the output file if its name is a loop's variable and the program does not read it."""
    behind = pairwise([Operand(""), *operands])
    read = {word.text for before, word in behind if before.text not in _OUTPUTS}
    written = filter(_is_each, option_values(operands, _OUTPUTS))
    return [word for word in written if word.text not in read]


def _git_moved(texts: Sequence[str], operands: Words) -> Words:
    named = [word for word in _all(texts, operands) if word.text != "mv"]
    return named[:-1] if git_words(texts)[:1] == ["mv"] else ()


def _archived(_texts: Sequence[str], operands: Words) -> Words:
    """Return the files to archive, relative to the folder that an earlier option names."""
    inside, folder = [], ""
    for before, word in pairwise([Operand(""), *operands]):
        text = word.text if word.text.startswith(("/", "~")) else f"{folder}{word.text}"
        if before.text in _FOLDER_OPTIONS:
            folder = f"{text}/"
        elif not word.text.startswith("-"):
            inside.append(word._replace(text=text))
    return inside


def _starts(texts: Sequence[str], operands: Words) -> Words:
    """Return the start folders of a `find` that deletes every file below them."""
    return found_from(operands) if deletes(texts) and not is_narrow(texts) else ()


def deletes(texts: Sequence[str]) -> bool:
    """Return whether a `find` deletes the files that it finds, or makes them inaccessible."""
    locks = "chmod" in texts and any(map(_LOCKS.fullmatch, texts))
    runs = any(map(_RUNS.match, texts))
    empties = {"cp", "/dev/null"}.issubset(texts)
    return "-delete" in texts or (runs and (locks or empties or any(map(_is_deleter, texts))))


def found_from(operands: Words) -> Words:
    """Return the folders in which a `find` searches."""
    behind = dropwhile(lambda word: _FIND_OPTION.fullmatch(word.text), operands)
    starts = takewhile(lambda word: not word.text.startswith(("-", "(", "!")), behind)
    return list(starts) or [Operand(".")]


def _is_deleter(text: str) -> bool:
    """Return whether a word names a program that deletes, or is code that deletes."""
    name = text.rpartition("/")[2]
    return destroys(name) or _DELETING.search(text) is not None


def is_narrow(texts: Sequence[str]) -> bool:
    """Return whether a `find` selects only some files, for example by name."""
    if any(
        sign in ("!", "-not") and after in ("(", "!", "-not") for sign, after in pairwise(texts)
    ):
        return False
    alternatives = [False]
    for before, text, value in zip(["", *texts], texts, [*texts[1:], "*"], strict=False):
        if text in ("-o", "-or", ","):
            alternatives.append(False)
        elif _FIND_FILTER.fullmatch(text) and before not in ("!", "-not"):
            alternatives[-1] |= _FITS_ALL.fullmatch(value) is None
        elif (text == "-delete" or _RUNS.match(text)) and not alternatives[-1]:
            return False  # what stands behind it narrows nothing
    return all(alternatives)


def _copied(_texts: Sequence[str], operands: Words) -> Words:
    named = without_options("cp", operands)
    is_onto = any(_COPIES_ONTO.fullmatch(word.text) for word in operands)
    is_onto |= any(word.text.endswith("/.") for word in named[:-1])
    return last(named) if is_onto else ()


def _synced(_texts: Sequence[str], operands: Words) -> Words:
    named = without_options("rsync", operands)
    return last(named) if any(word.text.endswith("/") for word in named[:-1]) else ()


_SELECTIONS: Mapping[str, Selection] = {
    "sources": lambda _, operands: without_options("rsync", operands)[:-1],
    "all": _all,
    "wild": lambda texts, operands: [w for w in _all(texts, operands) if _is_wild(w)],
    "last": lambda texts, operands: last(_all(texts, operands)),
    "behind-first": lambda texts, operands: _all(texts, operands)[1:],
    "behind-mode": lambda texts, operands: _all(texts, operands)[1:] or _all(texts, operands),
    "written-out": lambda texts, operands: [w for w in _all(texts, operands) if not w.dynamic],
    "behind-of": lambda texts, _: [Operand(text[3:]) for text in texts if text.startswith("of=")],
    "moved": _moved,
    "moving": _moving,
    "found": _starts,
    "git-removed": _git_removed,
    "git-removed-each": lambda texts, operands: [
        w for w in _git_removed(texts, operands) if _is_wild(w)
    ],
    "each-written": _each_written,
    "each-output": _each_output,
    "each": lambda _, operands: [*filter(_is_each, operands)],
    "git-moved": _git_moved,
    "archived": _archived,
    "copied": _copied,
    "synced": _synced,
    "in-folders": lambda _, operands: list(option_values(operands, _FOLDER_OPTIONS)),
}
"""What a rule of the tables can select."""
