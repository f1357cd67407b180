"""Tables of programs: kinds of programs, programs that run others, and options of programs."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from pegboard_plugins.bash.syntax import Operand, Unclear, Word
from pegboard_plugins.bash.tables import patterns, rows


class _Kinds(dict[str, frozenset[str]]):
    """A map from each program to the program's kinds; an unknown program has no kinds."""

    def __missing__(self, _name: str) -> frozenset[str]:
        return _NO_KIND


_NO_KIND = frozenset[str]()
KINDS = _Kinds(
    (name, frozenset(" ".join(values).split()))
    for name, values in rows("programs", "kinds").items()
)
"""What each program is; the table says what the kinds mean."""
kinds = KINDS.__getitem__
"""What the program of this name is."""
CARRIER_NAMES = re.compile(r"ld-linux.*|ld-musl.*|ld\.so.*|linux(32|64)|u?i[3-6]86|git-.*")
"""No rule and no guard knows a command of git by the name of its own program."""
HARMLESS_CARRIERS = patterns("programs", "harmless")
RUNNERS = {name: values[0] for name, values in rows("programs", "runners").items()}
RUNNER_REFUSED = re.compile(r"-[A-Za-z]*c|--(call|script-shell|node-options|shell)(=.*)?")
RUNS = patterns("programs", "runs")
VALUED = {
    name: frozenset(" ".join(values).split()) for name, values in rows("programs", "valued").items()
}
CODE_ON_STDIN = re.compile(
    r"^\s*\.(sh|sy|lo|im|re|ou|on|ex|sa|ba|cl|ar)|(?i:vacuum.*into)"
    r"|^\s*(system|\\!)|\\!|#\s*include|program",
    re.MULTILINE,
)
_AHEAD = {
    name: frozenset(" ".join(values).split()) for name, values in rows("prefixes", "ahead").items()
}
"""Of programs whose acts are words the options that take a value and may stand ahead of the act."""

_FROM_INPUT = re.compile(r"^(-\w*T\n?-|-@|--files\S*[=\n]-)$", re.MULTILINE)
_TAKES_NAMES = {
    **dict.fromkeys(("cpio", "pax"), re.compile("")),
    **dict.fromkeys(("tar", "gtar", "bsdtar", "zip", "rsync", "du", "wc"), _FROM_INPUT),
}
"""Programs that read names of files, and with which words they do."""


def takes_names(base: str, texts: Sequence[str]) -> bool:
    """Return whether a program with these arguments reads file names from its input."""
    return base in _TAKES_NAMES and _TAKES_NAMES[base].search("\n".join(texts)) is not None


def runs_code(base: str) -> bool:
    """Return whether the program is a shell or an interpreter."""
    return not kinds(base).isdisjoint(("shell", "awk", "coder"))


def destroys(name: str) -> bool:
    """Return whether a program deletes, empties or moves its operands."""
    return name == "mv" or not kinds(name).isdisjoint(("deletes", "deletes-all", "empties"))


class Grammar(NamedTuple):
    """The options of a program: letters with a colon, and long names with `=`, take a value.

    `operands` is the number of words before a command. If it `assigns`, assignments may come first.
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


class ProgramOptions(NamedTuple):
    """The options in a command's words with their values; `at` is the first operand's index."""

    at: int
    given: list[tuple[str, Word]]

    def values(self, *names: str) -> list[Word]:
        """Return the values of the options with these names."""
        return [word for name, word in self.given if name in names]


def is_single(word: Word) -> bool:
    """Return whether the shell keeps a word as one word, whatever values its variables have."""
    return all(
        piece.kind in ("text", "tilde", "sum")
        or (piece.quoted and piece.text != "@" and "[@" not in piece.raw)
        for piece in word.pieces
    )


def literals(words: Sequence[Word], code: str) -> list[str]:
    """Return the literal texts of words; reject a word with an expansion.

    :raises Unclear: with the code, for a word with an expansion.
    """
    for word in words:
        if word.literal is None:
            raise Unclear(code, word.at, word.end)
    return [word.literal or "" for word in words]


def read_options(words: Sequence[Word], grammar: Grammar, code: str) -> ProgramOptions:
    """Read the options before the first operand.

    :raises Unclear: with the code, for an option that is not in the grammar.
    """
    given: list[tuple[str, Word]] = []
    at = 0
    while at < len(words):
        word, text = words[at], _option(words[at], code)
        if text == "--":
            return ProgramOptions(at + 1, given)
        if not text.startswith("-") or text == "-":
            break
        for name, takes, start in _named(text, grammar):
            if takes is None:
                raise Unclear(code, word.at, word.end)
            if takes and not start:
                at += 1
                if at == len(words) or not is_single(words[at]):
                    raise Unclear(code, word.at, words[-1].end)
            given.append((name, word.behind(start) if start else words[at]))
        at += 1
    return ProgramOptions(at, given)


def _option(word: Word, code: str) -> str:
    """Return the word's text; "" for an expansion that cannot be an option.

    :raises Unclear: with the code, for an expansion that may be an option.
    """
    if word.literal is not None:
        return word.literal
    first = word.pieces[0]
    if first.kind == "text" and first.text and not first.text.startswith("-"):
        return ""
    raise Unclear(code, word.at, word.end)


def _named(text: str, grammar: Grammar) -> Iterator[tuple[str, bool | None, int]]:
    """Yield each option in a word, whether the option takes a value, and where its value begins.

    None means that the option is not in the grammar. Index 0 means that the value is in the next
    word.
    """
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        takes = f"{name}=" in grammar.names
        is_known = takes or (name in grammar.names and not equals)
        yield name, takes if is_known else None, len(f"--{name}=") if equals else 0
        return
    for number, letter in enumerate(text[1:], 2):
        takes = f"{letter}:" in grammar.letters
        is_known = letter in grammar.letters.replace(":", "")
        yield letter, takes if is_known else None, number if takes and text[number:] else 0
        if takes:
            return


def git_words(texts: Sequence[str]) -> list[str]:
    """Return git's subcommand and operands, without options and values of global options."""
    return [text for text in _from_act("git", texts) if not text.startswith("-")]


def plain_form(program: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return a command without the options before the action: `git push` for `git -C . push`.

    The result is empty if no option comes before the action.
    """
    words = _from_act(program, texts) if program in _AHEAD else texts
    return (program, *words) if words and len(words) < len(texts) else ()


def _from_act(program: str, texts: Sequence[str]) -> Sequence[str]:
    at = 0
    while at < len(texts) and texts[at].startswith(("-", "+")):
        at += 2 if texts[at] in _AHEAD[program] else 1
    return texts[at:]


def without_options(base: str, words: Sequence[Operand]) -> list[Operand]:
    """Return the operands of a program, without options and values of options."""
    found, valued, is_value = list[Operand](), VALUED.get(base, frozenset()), False
    for word in words:
        is_option = re.match(r"-.", word.text) is not None
        if not is_option and not is_value:
            found.append(word)
        is_value = word.text in valued
    return found


def last(words: Sequence[Operand]) -> list[Operand]:
    """Return the last operand, or all operands that come from the same word as the last."""
    word = words[-1].word if words else None
    return [each for each in words[:-1] if word and each.word is word] + [*words[-1:]]


def option_values(words: Sequence[Operand], names: Sequence[str]) -> Iterator[Operand]:
    """Yield the values of the options `names`: in the next word, after `=`, or attached.

    A short option may follow other letters, and a long option may be abbreviated.
    """
    letters = "".join(name[1:] for name in names if len(name) == len("-o"))
    before, valued = "", None
    for word in words if any(word.text[:1] == "-" for word in words) or "of" in names else ():
        option, equals, value = word.text.partition("=")
        if equals and _is_called(option, names):
            yield Operand(value, bare=word.bare, wild=word.wild)
        elif letters and (glued := _glued(letters, word.text)):
            yield Operand(glued[1], bare=word.bare, wild=word.wild)
        is_bundle = letters and re.fullmatch(rf"-[A-Za-z]*[{letters}]", before)
        is_again = valued is not None and word.word is valued
        if is_bundle or _is_called(before, names) or is_again:
            valued = word.word
            yield word
        before = word.text


@lru_cache(maxsize=1024)
def _glued(letters: str, text: str) -> re.Match[str] | None:
    """Match a word with a value attached to one of the option `letters`, as in `-ovalue`."""
    return re.match(rf"-[a-zA-RT-Z]*?[{letters}](.+)", text, re.DOTALL)


def _is_called(option: str, names: Sequence[str]) -> bool:
    """Return whether the option is one of the names, or an abbreviation of a long name."""
    is_short_for = option.startswith("--") and len(option) > len("--")
    return any(name == option or (is_short_for and name.startswith(option)) for name in names)
