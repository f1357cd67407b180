"""The options of a program, gone through by their grammar: what does not fit is not known."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pegboard_plugins.bash.programs import Grammar
from pegboard_plugins.bash.syntax import Unclear, Word

_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"})


class Options(NamedTuple):
    """The options that were given, each with its value, and the index of the first operand."""

    at: int
    given: list[tuple[str, Word]]

    def values(self, *names: str) -> list[Word]:
        """The values of these options."""
        return [word for name, word in self.given if name in names]


def is_single(word: Word) -> bool:
    """Whether it is one word whatever it comes to."""
    return all(
        piece.kind in ("text", "tilde", "sum")
        or (piece.quoted and piece.text != "@" and "[@" not in piece.raw)
        for piece in word.pieces
    )


def literals(words: Sequence[Word], code: str) -> list[str]:
    """The texts of words that must be written out."""
    for word in words:
        if word.literal is None:
            raise Unclear(code, word.at, word.end)
    return [word.literal or "" for word in words]


def read_options(words: Sequence[Word], grammar: Grammar, code: str) -> Options:
    """The options before the first operand.

    :raises Unclear: with the code, for an option that is not of the grammar.
    """
    given: list[tuple[str, Word]] = []
    at = 0
    while at < len(words):
        word = words[at]
        text = _option(word, code)
        if text == "--":
            return Options(at + 1, given)
        if not text.startswith("-") or text == "-":
            break
        read = _long if text.startswith("--") else _short
        at += read(words[at:], grammar, given, code)
    return Options(at, given)


def _option(word: Word, code: str) -> str:
    """The word's text if it may be an option; empty for one that cannot be."""
    if word.literal is not None:
        return word.literal
    first = word.pieces[0]
    if first.kind == "text" and first.text and not first.text.startswith("-"):
        return ""
    raise Unclear(code, word.at, word.end)


def _long(words: Sequence[Word], grammar: Grammar, given: list[tuple[str, Word]], code: str) -> int:
    name, equals, _ = (words[0].literal or "")[2:].partition("=")
    names = grammar.names.split()
    takes = f"{name}=" in names
    if not (takes or name in names) or (equals and not takes):
        raise Unclear(code, words[0].at, words[0].end)
    if equals or not takes:
        given.append((name, words[0].behind(len(f"--{name}{equals}"))))
        return 1
    given.append((name, _value(words, code)))
    return 2


def _short(
    words: Sequence[Word], grammar: Grammar, given: list[tuple[str, Word]], code: str
) -> int:
    text = words[0].literal or ""
    for number, letter in enumerate(text[1:], 2):
        found = re.search(rf"{re.escape(letter)}(:?)", grammar.letters)
        if found is None or letter == ":":
            raise Unclear(code, words[0].at, words[0].end)
        if found[1] and text[number:]:
            given.append((letter, words[0].behind(number)))
            return 1
        if found[1]:
            given.append((letter, _value(words, code)))
            return 2
        given.append((letter, words[0]))
    return 1


def _value(words: Sequence[Word], code: str) -> Word:
    if len(words) < len(("-o", "value")) or not is_single(words[1]):
        raise Unclear(code, words[0].at, words[-1].end)
    return words[1]


def git_words(texts: Sequence[str]) -> list[str]:
    """The subcommand and what follows, without options, and before it without their values."""
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        at += 2 if texts[at] in _VALUED else 1
    return [text for text in texts[at:] if not text.startswith("-")]
