"""What a command gets from another one, or from its input: names of files, and patches."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.listings import names_secret
from pegboard_plugins.bash.operands import apply, moves_content
from pegboard_plugins.bash.programs import option_values, runs_code
from pegboard_plugins.bash.syntax import Command, Operand, Word, lone
from pegboard_plugins.bash.values import escaped

_READ_OTHERWISE, _SPLITS = re.compile(r"['\"\\]"), re.compile(r"-\w*[d0]|--(d|nu)")
"""Signs that xargs takes away from a text, and its options with which it splits it otherwise."""
_PATCHED = re.compile(
    r"^(?:\+\+\+|---|\*\*\*|Index:|rename \w+|diff --git) +([^\s]+)(?: ([^\s]+))?", re.MULTILINE
)
_LONGEST_PATCH = 1 << 20
_FROM_INPUT = re.compile(r"^(-\w*T\n?-|-@|--files\S*[=\n]-)$", re.MULTILINE)
_TAKES_NAMES = {
    **dict.fromkeys(("cpio", "pax"), re.compile("")),
    **dict.fromkeys(("tar", "gtar", "bsdtar", "zip", "rsync", "du", "wc"), _FROM_INPUT),
}
"""Programs that read names of files, and with which words they do."""


def feed(command: Command, words: Sequence[Word], findings: Findings) -> None:
    """Doubt what a command is given by one that feeds it, where that may be any file."""
    options = findings.values.words(words)
    sought = command.base == "find" and any(
        names_secret(text) or names_secret(text.lower()) for text in options
    )
    if sought and any(map(_takes_anything, command.inner)):
        findings.doubt("dynamic-args", command.words[0])
    if command.base == "xargs":
        _feed_words(command, options, findings)


def _feed_words(command: Command, options: Sequence[str], findings: Findings) -> None:
    """What xargs gives to its command."""
    is_of_file = any(re.match(r"-a|--arg-file", text) for text in options)
    is_fed = findings.fed is not None
    if is_of_file:
        findings.fed = None
    may_be_any = is_of_file or findings.values.feeds_any(findings.fed)
    is_taken = any(map(_takes_anything, command.inner))
    if may_be_any and (is_taken or (not command.inner and is_fed)):
        findings.doubt("dynamic-args", command.words[0])
    if text := "\n".join(fed_texts(findings)):
        if _READ_OTHERWISE.search(text) or any(map(_SPLITS.match, options)):
            findings.doubt("dynamic-args", command.words[0])
        for inner in command.inner:
            apply(inner.base, list(map(Operand, _filled(inner, text))), findings)


def fed_texts(findings: Findings) -> Sequence[str]:
    """The texts that are fed, as far as they stand in the line: behind `echo`, or as a text."""
    fed = findings.fed
    if fed is not None and fed.kind == "text" and fed.word:
        return findings.values.texts(fed.word)
    one = lone(fed.parts) if fed is not None and fed.kind == "pipe" else None
    if one is None or one.words[0].literal not in ("echo", "printf"):
        return ()
    return [" ".join(findings.values.words(map(escaped, one.words[1:]))).replace("\\n", "\n")]


def named_on_input(
    base: str, words: Sequence[Operand], findings: Findings
) -> Iterator[tuple[str, bool]]:
    """Yield the files that a command is given on its input, and whether it writes them.

    They are those of a patch, or in the lines of a program that takes names there.
    """
    texts = [word.text for word in words]
    if base == "patch":
        yield from ((name, True) for name in _patched(words, findings))
    elif base in _TAKES_NAMES and _TAKES_NAMES[base].search("\n".join(texts)):
        if findings.fed is not None and findings.values.feeds_any(findings.fed):
            findings.doubt("dynamic-args", words[0] if words else None)
        yield from ((name, False) for text in fed_texts(findings) for name in text.splitlines())


def _patched(words: Sequence[Operand], findings: Findings) -> Iterator[str]:
    """The files that a patch names, which stands in the line or in a file that is there."""
    fed = findings.fed
    files = [*option_values(words, ("-i", "--input")), *words[1:2]]
    if fed is not None and fed.kind == "file" and fed.word:
        files += findings.operands([fed.word])
    paths = (Path(path) for word in files for path in findings.places(word))
    for path in (path for path in paths if path.is_file()):
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            yield from _named_in(file.read(_LONGEST_PATCH), words)
    yield from _named_in("\n".join(fed_texts(findings)), words)


def _named_in(patch: str, words: Sequence[Operand]) -> Iterator[str]:
    """The names in a patch, as they stand there and without the folders that `-p` takes off."""
    count = next((word.text[2:] for word in words if re.fullmatch(r"-p\d", word.text)), "0")
    for name in (name for names in _PATCHED.findall(patch) for name in names if name):
        yield name
        yield "/".join(name.split("/")[int(count) :])


def _filled(command: Command, text: str) -> Iterator[str]:
    """The words that a command gets from a text: its own, filled in where they have a place."""
    own = [word.shown for word in command.words[1:]]
    if not command.placeholder:
        yield from (*own, *text.split())
    for line in text.splitlines() if command.placeholder else ():
        yield from (word.replace(command.placeholder, line.strip()) for word in own)


def _takes_anything(command: Command) -> bool:
    """Whether the command, or one that it starts, moves what is in the files it is given."""
    texts = [word.shown for word in command.words[1:]]
    is_code = runs_code(command.base) or bool(command.code)
    return is_code or moves_content(command.base, texts) or any(map(_takes_anything, command.inner))
