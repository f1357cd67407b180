"""The paths at which a command creates files, folders and links."""

import os
import re
from collections.abc import Sequence

from pegboard_plugins.bash.changing import TARGETS
from pegboard_plugins.bash.findings import WalkState, hidden_matches
from pegboard_plugins.bash.programs import git_words, kinds, last, option_values, without_options
from pegboard_plugins.bash.syntax import Operand

_LINKS = re.compile(r"-[a-zA-Z]*[ls]|--(li|sy)")
_GIT_PLACES = frozenset({"mv", "clone", "worktree", "submodule"})
_GLUED_VALUE = re.compile(r"-[A-Za-z]([^-].*)", re.DOTALL)
Kinds = frozenset[str]
Words = Sequence[Operand]


def hand_over(base: str, does: Kinds, operands: Words, findings: WalkState) -> None:
    """Record the paths that a program may write, create or link, according to its kinds."""
    if base == "git" or "reads" not in does:
        named = (each for word in operands for each in _with_value(word))
        for path in (path for word in named for path in findings.places(word)):
            if base != "git" or "/.git/" in f"{path}/".lower():
                findings.handed[path] = None
    if base == "git":
        findings.makes_repository |= git_words([word.text for word in operands])[:1] == ["init"]
        _place_clone(operands, findings)
    if base == "mkdir":
        findings.made |= dict.fromkeys(path for word in operands for path in findings.places(word))
    if "places" in does:
        _place(base, operands, findings)
    if makes_links(base, operands):
        findings.linked |= dict.fromkeys(p for w in operands[:-1] for p in findings.places(w))


def makes_links(base: str, operands: Words) -> bool:
    """Return whether a command gives files a second name, so that a write affects both."""
    return "links" in kinds(base) or (
        base == "cp" and any(_LINKS.match(word.text) for word in operands)
    )


def note_links(base: str, operands: Words, findings: WalkState) -> None:
    """Record the links that a command creates, each with the link's target."""
    *targets, name = without_options(base, operands)[-2:] or [Operand("")]
    for target in targets:
        if target.dynamic:
            findings.distrust(target)  # what is written to the link is written there
            continue
        own = target.text.rstrip("/").rpartition("/")[2]
        path = findings.without_tilde(target).rstrip("/")
        for place in findings.places(name):
            link = os.path.normpath(place)
            real = os.path.normpath(
                f"{link.rpartition('/')[0]}/{path}" if path[:1] != "/" else path
            )
            if real != link:
                findings.links |= {link: real, f"{link}/{own}": real}


def _place_clone(operands: Words, findings: WalkState) -> None:
    """Record the paths at which git creates files; a clone's folder is named after its source."""
    named = [word for word in operands if not word.text.startswith("-")]
    if any(word.text in _GIT_PLACES for word in named[:2]):
        _place("git", named, findings)
        name = re.split(r"[/:]", named[-1].text.rstrip("/"))[-1].removesuffix(".git")
        findings.made |= dict.fromkeys(findings.places(Operand(name)))


def _with_value(word: Operand) -> tuple[Operand, ...]:
    """Return a word, and the value of an option in it, if these may name files."""
    option, equals, value = word.text.partition("=")
    if option == "--git-dir":
        return ()
    if equals:
        return (word, Operand(value))
    if not word.text.startswith("-"):
        return (word,)
    glued = _GLUED_VALUE.fullmatch(word.text)
    named = (word,) if "/" in word.text else ()
    return named if glued is None else (*named, Operand(glued[1], bare=False))


def _place(base: str, operands: Words, findings: WalkState) -> None:
    """Record where a command creates files: at the last operand, or at names in this folder."""
    named = without_options(base, operands)
    for target in [*option_values(operands, TARGETS)] or last(named):
        for folder in () if target.dynamic else findings.places(target):
            names = [word.text.rstrip("/") for word in named]
            if not any(word.text.startswith("--pa") for word in operands):
                names = [name.rpartition("/")[2] for name in names]
            landed = (f"{folder.rstrip('/')}/{name}" for name in names)
            findings.lands |= dict.fromkeys((folder, *landed, *hidden_matches(folder)))
