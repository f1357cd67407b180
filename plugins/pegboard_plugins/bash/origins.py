"""The file names that a word may become at run time, by the commands that print these names.

A listing may be the value of a substitution or of a variable, or the input of a command. If a
command reads by listed names, only those files are read. If it destroys them, all are lost.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from pegboard_plugins.bash.findexpression import start_texts
from pegboard_plugins.bash.findings import FolderListing, Lost, WalkState
from pegboard_plugins.bash.programs import git_words, kinds, option_values, without_options
from pegboard_plugins.bash.syntax import (
    ANYTHING,
    LISTED,
    CommandFeed,
    Operand,
    ShellCommand,
    Simple,
    Statement,
    StatementBlock,
    Word,
)
from pegboard_plugins.bash.values import Value

_DEEPEST, _MOST_FOLLOWED = 8, 1000
"""So deep, and so many in a line, are what puts out names followed."""
_DYNAMIC = re.compile(f"(?:{LISTED}|{ANYTHING})+")
_FLAT = frozenset({"ls", "dir", "vdir"})
_DEEP = frozenset({"du", "tree"})
_SEARCHES = frozenset({"ag", "egrep", "fgrep", "grep", "rg"})
_GIT_ALL = frozenset({"ls-files", "ls-tree"})
_GIT_SOME = frozenset({"diff", "diff-files", "diff-index", "diff-tree", "grep", "log", "show"})
_GIT_PARTS = re.compile(r"-[a-z]*[odmuk][a-z]*|--(others|deleted|modified|unmerged|killed)")
"""With these `git ls-files` lists what git alone knows."""
_ANYWHERE = re.compile(r"[/~:]|(.*/)?\.\.(/|$)", re.DOTALL)
"""A path for git that is no plain one below the folder."""
_NAMED_FOLDER = re.compile(r"-[a-zA-Z]*d[a-zA-Z]*|--directory")
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--(dereference-)?recursive")
SAYS = frozenset({"basename", "dirname", "echo", "ls", "printf", "realpath", "readlink"})
"""Behind `xargs` these put out the names that they are given."""
_KINDS_OF_FILES = re.compile(r"-t.*|--type\b.*", re.DOTALL)


def lose(word: Operand, findings: WalkState) -> None:
    """Record that files whose names a command prints are lost or overwritten by a word."""
    findings.lost |= dict.fromkeys(losses(word, findings))
    findings.lose_renamed(("*",))


def losses(word: Operand, findings: WalkState) -> Iterator[Lost]:
    """Yield the files that are lost if all printed names in a word are destroyed."""
    text = word.text
    if findings.placeholder:
        text = text.replace(findings.placeholder, LISTED)
    behind = text[text.rfind(ANYTHING) :].strip(LISTED)
    for each in _put_out_by(_feeds(word, findings), findings):
        if each.listing is not None and behind:
            continue  # no file of it has such a name
        named = each.shown.join(_DYNAMIC.split(text))
        operand = Operand(named, bare=word.bare, wild=each.listing is None)
        places = {os.path.normpath(path) for path in findings.patterns(operand)}
        if os.path.normpath(each.place + behind) in places:
            yield each._replace(place=each.place + behind)


def _feeds(word: Operand, findings: WalkState) -> Iterator[CommandFeed]:
    """Yield the commands or inputs that the text of a word comes from."""
    if word.word is not None:
        yield from _of_word(word.word, findings, set())
    if (word.word is None or findings.placeholder) and findings.fed is not None:
        yield from _of_value(findings.fed, findings, set())


def _of_word(word: Word, findings: WalkState, seen: set[str]) -> Iterator[CommandFeed]:
    for piece in word.pieces:
        if piece.body:
            yield CommandFeed("file", None, (StatementBlock("list", [*piece.body]),))
        elif piece.kind == "variable" and piece.text not in seen:
            seen.add(piece.text)
            for value in findings.values.given(piece.text) or ():
                yield from _of_value(value, findings, seen)


def _of_value(value: Value, findings: WalkState, seen: set[str]) -> Iterator[CommandFeed]:
    if isinstance(value, Word):
        yield from _of_word(value, findings, seen)
    elif value is not None and value.kind == "pipe":
        yield value
    elif value is not None and value.word is not None:
        yield from _of_word(value.word, findings, seen)
        yield from _of_file(value.word, findings) if value.kind == "file" else ()


def _of_file(word: Word, findings: WalkState) -> Iterator[CommandFeed]:
    """Yield the commands whose output an earlier part of the shell line wrote to the file."""
    texts = (word.literal,) if word.literal is not None else ()
    paths = (path for text in texts for path in findings.places(Operand(text, wild=False)))
    for path in paths:
        yield from findings.saved.get(path, ())


def _put_out_by(feeds: Iterable[CommandFeed], findings: WalkState) -> Iterator[Lost]:
    """Yield the file names that the commands in `feeds` print."""
    cwd = findings.cwd
    for feed in feeds:
        if findings.depth >= _DEEPEST or findings.followed >= _MOST_FOLLOWED:
            findings.doubt("nested-too-deep")
            return
        findings.depth += 1
        findings.followed += 1
        found = list(_of_pipe(feed.parts, findings))
        findings.depth -= 1
        findings.cwd = cwd
        yield from found


def _of_pipe(parts: Sequence[Statement], findings: WalkState) -> Iterable[Lost]:
    """Return the file names that a pipeline prints: the last lister's names, then filtered."""
    found: list[Lost] = []
    for part in parts:
        if own := list(_of_statement(part, findings)):
            found = own
        elif isinstance(part, Simple) and part.words:
            sieve = tuple(word.shown for word in part.words)
            is_part = sieve[0] == "xargs" and SAYS.isdisjoint(sieve)  # it may look into them
            found = [
                each._replace(sieves=(*each.sieves, sieve), is_part=each.is_part or is_part)
                for each in found
            ]
    return found


def _of_statement(statement: Statement, findings: WalkState) -> Iterable[Lost]:
    if isinstance(statement, Simple):
        if statement.runs is not None:
            own = list(_of_command(statement.runs, findings))
            fed = statement.fed if statement.fed and statement.fed.kind != "pipe" else None
            return own or _put_out_by(_of_value(fed, findings, set()), findings)
        read = (each.word for each in statement.redirections if each.sign == "<")
        return _put_out_by((feed for word in read for feed in _of_file(word, findings)), findings)
    if statement.kind == "pipe":
        return _of_pipe(statement.parts, findings)
    return [each for part in statement.parts for each in _of_statement(part, findings)]


def _of_command(command: ShellCommand, findings: WalkState) -> Iterator[Lost]:
    """Yield the file names that a command, or a command that it starts, prints."""
    function = findings.functions.get(command.base)
    for statement in (*command.code, *([function] if function else [])):
        yield from _put_out_by([CommandFeed("pipe", None, (statement,))], findings)
    for inner in command.inner:
        yield from _of_command(inner, findings)
    if command.inner or command.is_fed:
        return
    findings.cwd = findings.places_of.get(command, ())
    operands = findings.operands(command.words[1:])
    if command.base in _FLAT:
        yield from _of_ls(command.base, operands, findings)
    elif found := list(_listings(command.base, operands, findings)):
        yield from found
    else:
        yield from _of_texts(command.base, operands, findings)


def _of_ls(base: str, operands: Sequence[Operand], findings: WalkState) -> Iterator[Lost]:
    """Yield the names that `ls` prints: a file argument itself, or the entries of a folder."""
    is_itself = any(_NAMED_FOLDER.fullmatch(word.text) for word in operands)
    for word in without_options(base, operands) or [Operand(".")]:
        if is_itself or (word.wild and any(sign in word.text for sign in "*?[")):
            yield from _flat(word.text, word, findings)
        else:
            inside = Operand(f"{word.text.rstrip('/')}/*", bare=word.bare)
            yield from _flat("*", inside, findings)


def _of_texts(base: str, operands: Sequence[Operand], findings: WalkState) -> Iterator[Lost]:
    """Yield the file names in a command's arguments, and the matches of its wildcards."""
    if "moves" in kinds(base):
        saved = (each for word in operands if word.word for each in _of_file(word.word, findings))
        yield from _put_out_by(saved, findings)
        return
    for word in operands:
        if word.dynamic and word.word is not None:
            yield from _put_out_by(_of_word(word.word, findings, set()), findings)
        elif word.wild:
            yield from _flat(word.text, word, findings)


def _flat(shown: str, word: Operand, findings: WalkState) -> Iterator[Lost]:
    yield from (Lost(path, shown) for path in findings.patterns(word))


def _listings(base: str, operands: Sequence[Operand], findings: WalkState) -> Iterator[Lost]:
    """Yield the folder listings that a program which searches folders prints."""
    texts = tuple(word.text for word in operands)
    if base in ("find", "gfind"):
        for start in start_texts(texts):
            yield from _deep(start, findings, texts, is_find=True)
    elif base == "git":
        act, *named = git_words(texts) or [""]
        if act in _GIT_ALL:
            is_part = act == "ls-files" and any(map(_GIT_PARTS.fullmatch, texts))
            names = tuple(named[act == "ls-tree" :])
            elsewhere = [name for name in names if _ANYWHERE.match(name)]
            for name in elsewhere or [""]:
                start, texts = ("" if name[:1] == ":" else name), () if elsewhere else names
                yield from _deep(start, findings, texts, is_part=is_part)
        elif act in _GIT_SOME or act == "status":
            yield from _deep("", findings, (), is_part=True)
    elif base in _SEARCHES or "finds" in kinds(base):
        yield from _of_search(base, operands, findings)
    elif base in _DEEP:
        for word in without_options(base, operands) or [Operand("")]:
            yield from _deep(word.text, findings, ())


def _of_search(base: str, operands: Sequence[Operand], findings: WalkState) -> Iterator[Lost]:
    """Yield the names that a search may print; the contents of files decide which names."""
    texts = [word.text for word in operands]
    named = [word.text for word in without_options(base, operands)]
    is_names = "finds" in kinds(base) or "--files" in texts
    globs = [word.text for word in option_values(operands, ("-g", "--glob", "--iglob"))]
    globs += [word.text for word in option_values(operands, ("--include",))]
    endings = option_values(operands, ("-e", "--extension")) if "finds" in kinds(base) else ()
    globs += [f"*.{word.text.lstrip('.')}" for word in endings]
    chosen = tuple(glob for glob in globs if not glob.startswith("!"))
    pattern, starts = ("", named) if "--files" in texts else ("".join(named[:1]), named[1:])
    is_part = not is_names or (base == "rg" and any(map(_KINDS_OF_FILES.fullmatch, texts)))
    if base.endswith("grep") and not any(map(_RECURSIVE.fullmatch, texts)):
        for word in operands:
            if word.text in starts and word.wild:
                yield from _flat(word.text, word, findings)
        return
    sieves = ((("grep", pattern),) if pattern and pattern not in globs else ()) if is_names else ()
    for start in starts or [""]:
        for each in _deep(start, findings, chosen, is_part=is_part):
            yield each._replace(sieves=sieves)


def _deep(
    start: str,
    findings: WalkState,
    texts: tuple[str, ...],
    *,
    is_find: bool = False,
    is_part: bool = False,
) -> Iterator[Lost]:
    for path in findings.patterns(Operand(start, wild=False)):
        listing = FolderListing(start, path, texts, is_find=is_find)
        yield Lost(path, start, listing, is_part=is_part)
