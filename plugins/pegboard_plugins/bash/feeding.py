"""The file names that a command receives as arguments from another command or as input."""

import re
from collections.abc import Iterator, Sequence

from pegboard_plugins.bash.findings import ANY_NUMBER, WalkState
from pegboard_plugins.bash.listings import names_secret
from pegboard_plugins.bash.marks import as_name
from pegboard_plugins.bash.operands import apply, moves_content
from pegboard_plugins.bash.patching import PATCHERS, patched
from pegboard_plugins.bash.programs import option_values, runs_code, takes_names
from pegboard_plugins.bash.syntax import CommandFeed, Operand, ShellCommand, Word, lone

_READ_OTHERWISE, _SPLITS = re.compile(r"['\"\\]"), re.compile(r"-\w*[d0]|--(d|nu)")
"""Signs that xargs takes away from a text, and its options with which it splits it otherwise."""


def feed(command: ShellCommand, words: Sequence[Word], findings: WalkState) -> None:
    """Mark the shell line as unclear if `find` or `xargs` gives a risky command unknown names."""
    options = findings.values.words(words)
    sought = command.base == "find" and any(
        names_secret(text) or names_secret(text.lower()) for text in options
    )
    if sought and any(map(_takes_anything, command.inner)):
        findings.doubt("dynamic-args", command.words[0])
    if command.base == "xargs":
        _feed_words(command, words, options, findings)


def _feed_words(
    command: ShellCommand, words: Sequence[Word], options: Sequence[str], findings: WalkState
) -> None:
    """Record the effects of the arguments that `xargs` adds to a command."""
    is_of_file = any(re.match(r"-a|--arg-file", text) for text in options)
    is_fed = findings.fed is not None
    if is_of_file:
        named = option_values(findings.operands(words), ("-a", "--arg-file"))
        files = (each.word for each in named if each.word)
        findings.fed = next((CommandFeed("file", word) for word in files), None)
    may_be_any = is_of_file or findings.values.feeds_any(findings.fed)
    is_taken = any(map(_takes_anything, command.inner))
    findings.reads_listed |= is_taken
    if may_be_any and (is_taken or (not command.inner and is_fed)):
        findings.doubt("dynamic-args", command.words[0])
    if text := "\n".join(fed_texts(findings)):
        if _READ_OTHERWISE.search(text) or any(map(_SPLITS.match, options)):
            findings.doubt("dynamic-args", command.words[0])
        for inner in command.inner:
            apply(inner.base, list(map(Operand, _filled(inner, text))), findings)


def fed_texts(findings: WalkState) -> Sequence[str]:
    """Return the texts on a command's input if the shell line contains them, as after `echo`."""
    fed = findings.fed
    if fed is not None and fed.kind == "text" and fed.word:
        return findings.values.texts(fed.word, number=ANY_NUMBER)
    one = lone(fed.parts) if fed is not None and fed.kind == "pipe" else None
    if one is None or one.words[0].literal not in ("echo", "printf"):
        return ()
    return [
        " ".join(map(as_name, findings.values.names(one.words[1:], number=ANY_NUMBER))).replace(
            "\\n", "\n"
        )
    ]


def named_on_input(
    base: str, words: Sequence[Operand], findings: WalkState
) -> Iterator[tuple[Operand, bool]]:
    """Yield each file that a command's input names, and whether the command writes the file.

    The input may be a patch, or a list of names for a program such as `tar -T -`.
    """
    if base in PATCHERS:
        yield from ((name, True) for name in patched(base, words, fed_texts(findings), findings))
    texts = [word.text for word in words]
    if base == "git" and "cat-file" in texts:
        lines = (line for text in fed_texts(findings) for line in text.splitlines())
        yield from ((Operand(line.rpartition(":")[2], bare=False), False) for line in lines)
    if takes_names(base, texts):
        if findings.fed is not None and findings.values.feeds_any(findings.fed):
            findings.doubt("dynamic-args", words[0] if words else None)
        for text in fed_texts(findings):
            yield from ((Operand(name, bare=False), False) for name in text.splitlines())


def _filled(command: ShellCommand, text: str) -> Iterator[str]:
    """Yield a command's arguments with each line of `text` inserted, as `xargs` does."""
    own = [word.shown for word in command.words[1:]]
    if not command.placeholder:
        yield from (*own, *text.split())
    for line in text.splitlines() if command.placeholder else ():
        yield from (word.replace(command.placeholder, line.strip()) for word in own)


def _takes_anything(command: ShellCommand) -> bool:
    """Return whether a command, or a command that it starts, shows or moves file contents."""
    texts = [word.shown for word in command.words[1:]]
    is_code = runs_code(command.base) or bool(command.code)
    return is_code or moves_content(command.base, texts) or any(map(_takes_anything, command.inner))
