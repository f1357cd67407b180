"""Programs by what they do with other commands, and their options, gone through by a grammar."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pegboard_plugins.bash.syntax import Unclear, Word
from pegboard_plugins.bash.tables import patterns, rows

KINDS: Mapping[str, frozenset[str]] = {
    name: frozenset(" ".join(values).split()) for name, values in rows("programs", "kinds").items()
}
"""What each program is; the table says what the kinds mean."""
_NO_KIND = frozenset[str]()
CARRIER_NAMES = re.compile(r"ld-linux.*|ld-musl.*|ld\.so.*|linux(32|64)|u?i[3-6]86")
HARMLESS_CARRIERS = patterns("programs", "harmless")
RUNNERS = {name: values[0] for name, values in rows("programs", "runners").items()}
RUNNER_REFUSED = re.compile(r"-[A-Za-z]*c|--(call|script-shell|node-options|shell)(=.*)?")
RUNS = patterns("programs", "runs")
CODE_ON_STDIN = re.compile(
    r"^\s*\.(sh|sy|lo|im|re|ou|on|ex)|^\s*(system|\\!)|\\!|#\s*include|program", re.MULTILINE
)
_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"})


def kinds(base: str) -> frozenset[str]:
    """What the program of this name is."""
    return KINDS.get(base, _NO_KIND)


def runs_code(base: str) -> bool:
    """Whether the program is a shell or an interpreter."""
    return not kinds(base).isdisjoint(("shell", "awk", "coder"))


class Grammar(NamedTuple):
    """The options of a program: letters, with a colon where they take a value; long names with `=`.

    `operands` are the words of its own before a command. `assigns`: so may variables.
    """

    letters: str = ""
    names: Sequence[str] = ()
    operands: int = 0
    assigns: bool = False


def _grammar(values: Sequence[str]) -> Grammar:
    letters, *names = " ".join(values).split()
    own = next((int(name) for name in names if name.isdigit()), 0)
    long = [name for name in names if name[0].islower()]
    return Grammar(letters.strip("-"), long, own, "NAME=" in names)


WRAPPERS = {name: _grammar(values) for name, values in rows("programs", "wrappers").items()}
OPTIONS = {name: _grammar(values) for name, values in rows("programs", "options").items()}


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
        text = _option(words[at], code)
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
    takes = f"{name}=" in grammar.names
    if not (takes or name in grammar.names) or (equals and not takes):
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
        place = grammar.letters.find(letter)
        if place < 0 or letter == ":":
            raise Unclear(code, words[0].at, words[0].end)
        if grammar.letters[place + 1 : place + 2] != ":":
            given.append((letter, words[0]))
        elif text[number:]:
            given.append((letter, words[0].behind(number)))
            return 1
        else:
            given.append((letter, _value(words, code)))
            return 2
    return 1


def _value(words: Sequence[Word], code: str) -> Word:
    if len(words) < len(("-o", "value")) or not is_single(words[1]):
        raise Unclear(code, words[0].at, words[-1].end)
    return words[1]


def git_words(texts: Sequence[str]) -> list[str]:
    """The subcommand of git and what follows, without options, nor before it their values."""
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        at += 2 if texts[at] in _WITH_VALUE else 1
    return [text for text in texts[at:] if not text.startswith("-")]
