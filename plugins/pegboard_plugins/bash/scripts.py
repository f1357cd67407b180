"""Texts that a shell line may run as code: files that the line writes, arguments and inputs."""

import re
from collections.abc import Iterable, Iterator, Sequence

from pegboard_plugins.bash.changing import PREFIXES
from pegboard_plugins.bash.line import JudgedLine
from pegboard_plugins.bash.programs import kinds
from pegboard_plugins.bash.syntax import ShellCommand, Simple, Unclear

_SAYING = frozenset({"echo", "printf"})
_RULED = {"make": ("makefile", "gnumakefile"), "npm": ("package.json",)}
"""Programs with the files that they obey unnamed."""
_ONLY_LOOKS = frozenset({"reads", "deletes", "no-files"})
_GIVES_TEXT = ("<<", "<<<")
_NAMES = re.compile(r"[\w.-]+")
_ESCAPED = re.compile(r"\\[nrt]")
_KNOWN = frozenset({"takes-texts", "shell", "awk", "coder"})
_COPIERS = frozenset({"cp", "install", "link", "ln", "mv"})
_OF_SYSTEM = re.compile(
    r"^(/usr(/local)?|/opt/\S+)?/s?bin/[^/]+$|^[$]\((which|command -v|type -[pP]) "
)
_SOURCES = frozenset({"source", "."})
_PLACES = frozenset({"git", "touch", "mkdir", "tee"})


def code_texts(line: JudgedLine, written: Iterable[str]) -> Iterator[str]:
    """Yield the texts in a shell line that may be run as code.

    If the line runs a file that it writes, all printed texts count. The words and the input of an
    unknown program count too, and the input of an interpreter. A path of the system counts as its
    last name, and other paths are left out. `written` are the paths that the line writes.
    """
    names = {_name(path) for path in written}
    if not names.isdisjoint(_ran(line)) if names else False:
        for one in line.simples:
            yield from _texts(one)
    for command in line.judged:
        does = kinds(command.base)
        if not does or "coder" in does:
            yield from _input(line, command)
        if "coder" in does:
            yield from _arguments(command)
        if not does & _KNOWN and not (command.code or command.inner):
            for word in command.words[1:]:
                folder, slash, name = word.shown.rpartition("/")
                if " " in word.shown or not slash:
                    yield word.shown
                elif folder.startswith("/"):
                    yield name


def refuse_computed(line: JudgedLine, written: Iterable[str]) -> None:
    """Reject a shell line that runs a file after filling the file with a program's output.

    Output of `echo`, `printf` and `cat` is read instead. `written` are the paths that the line
    writes.

    :raises Unclear: with the span of the program that computes the text.
    """
    names, maker = {_name(path) for path in written}, None
    for command in line.judged:
        if "computes" in kinds(command.base):
            maker = maker or command
            names |= {""} if command.base in PREFIXES else set()
        run = {*_run(line, command)} if maker else set()
        if maker and run and not names.isdisjoint((*run, "")):
            raise Unclear("computed-code", maker.words[0].at, maker.words[-1].end)


def refuse_renamed(line: JudgedLine) -> None:
    """Reject a shell line that runs a copy of a system program, or a link to a system program.

    :raises Unclear: with the span of the command that copies or links it.
    """
    copies: dict[str, ShellCommand] = {}
    for command in line.judged:
        if copy := copies.get(_name(command.words[0].shown)):
            raise Unclear("renamed-program", copy.words[0].at, copy.words[-1].end)
        if command.base in _COPIERS and any(_OF_SYSTEM.search(w.shown) for w in command.words[1:]):
            names = {_name(word.shown.rstrip(")")) for word in command.words[1:]}
            copies |= dict.fromkeys(filter(None, names), command)


def _run(line: JudgedLine, command: ShellCommand) -> Iterator[str]:
    """Yield the names of the files that a command runs, as program, script or standard input."""
    if "/" in command.words[0].shown:
        yield _name(command.words[0].shown)
    if command.base in _SOURCES or not kinds(command.base).isdisjoint(("shell", "coder")):
        yield from (_name(word.shown) for word in command.words[1:])
        for one in line.simples:
            if one.runs is command:
                yield from (_name(each.word.shown) for each in one.redirections if "<" in each.sign)


def _arguments(command: ShellCommand) -> Iterator[str]:
    """Yield the arguments of an interpreter as texts, which the code may run or delete."""
    texts = [word.shown for word in command.words[1:]]
    yield " ".join(texts[2:])
    yield " ".join([*texts[1:2], *(f"'{text}'" for text in texts[2:])])


def _ran(line: JudgedLine) -> Iterator[str]:
    """Yield the names of files that the commands of a shell line may run."""
    for command in line.judged:
        yield from _RULED.get(command.base, ())
        does = kinds(command.base)
        if (does & _ONLY_LOOKS or command.base in _PLACES) and not command.inner:
            continue
        for word in command.words[1:] if "coder" in does else ():
            yield from (
                name for each in _NAMES.findall(word.shown) for name in (each, f"{each}.py")
            )
        yield from (_name(word.shown.removeprefix("-f")) for word in command.words)
    for one in line.simples:
        yield from (_name(each.word.shown) for each in one.redirections if each.sign == "<")


def _name(path: str) -> str:
    return path.rpartition("/")[2].lower()


def _texts(one: Simple) -> Sequence[str]:
    """Return the texts that a command prints: its arguments and here-documents."""
    texts = [each.word.shown for each in one.redirections if each.sign in _GIVES_TEXT]
    words = [word.shown for word in one.words[1:]]
    if one.words and one.words[0].literal in _SAYING:
        return [*texts, _ESCAPED.sub("\n", " ".join(words))]
    return [*texts, *(text for text in words if " " in text)]


def _input(line: JudgedLine, command: ShellCommand) -> Iterator[str]:
    """Yield the texts on a command's input, as far as the shell line contains them."""
    one = next((each for each in line.simples if each.runs is command), None)
    if one is None:
        return
    yield from (each.word.shown for each in one.redirections if each.sign in _GIVES_TEXT)
    feed = one.fed or one.outer
    for part in feed.parts if feed is not None else ():
        if isinstance(part, Simple):
            yield from _texts(part)
