"""A strict parser of a subset of bash, which parses a line exactly as bash does or rejects it.

It is a recursive descent parser without error recovery. The tests compare it with bash itself:
with the programs that bash would start, and with the output of `bash --pretty-print`.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from pegboard_plugins.bash.clauses import REDIRECTS, read_redirection, read_test
from pegboard_plugins.bash.source import RESERVED, SKIPPED, ShellSource, read_sum
from pegboard_plugins.bash.syntax import (
    Assignment,
    CommandFeed,
    Piece,
    Reading,
    Simple,
    Statement,
    StatementBlock,
    Unclear,
    Word,
)
from pegboard_plugins.bash.words import read_word, unbraced

DECLARERS = frozenset({"declare", "typeset", "export", "local", "readonly"})
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\[[0-9]+\])?(\+?)=")
_FUNCTION = re.compile(
    r"(?:function[ \t]+)?([A-Za-z_][\w-]*)[ \t]*\([ \t]*\)\s*(?=[{(])"
    r"|function[ \t]+([A-Za-z_][\w-]*)[ \t]*\s(?=\{)"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_PLAIN_TIME = re.compile(r"-p[ \t]")
_MOST_PARTS = 32
"""So many parts of a pipe are looked at for what they put out."""
_ENDS_COMMAND = ";&|\n)"
_ENDS_SIMPLE = frozenset(("", ";", "|", "\n", ")"))


def read(text: str, depth: int = 0) -> Reading:
    """Parse a text as bash does; `depth` counts the texts in which this text is nested.

    :raises Unclear: when a part of the text is not in the grammar.
    """
    try:
        source = ShellSource(text, _list, depth=depth)
        source.skip(lines=True)
        body = _list(source, (), "") if source.at < source.end else StatementBlock("list", [])
    except RecursionError:
        raise Unclear("nested-too-deep") from None
    if source.pending:
        source.no("here-document")
    return Reading(body, source.simples, source.functions, source.sums)


def _list(source: ShellSource, ends: tuple[str, ...], closer: str) -> StatementBlock:
    """Read statements up to a word of `ends`, to `closer`, or to the end of the source."""
    parts: list[Statement] = []
    while True:
        source.skip(lines=True)
        if source.at >= source.end:
            if ends or closer or not parts:
                source.no("unfinished")
            return StatementBlock("list", parts)
        is_end = ends and (source.keyword() in ends or (";;" in ends and source.sees(";;")))
        if is_end or (closer and source.letter == closer):
            break
        parts.append(_separated(source, _and_or(source), ends, closer))
    if not parts:
        source.no("syntax")
    return StatementBlock("list", parts)


def _separated(
    source: ShellSource, part: Statement, ends: tuple[str, ...], closer: str
) -> Statement:
    """Read the separator after a statement; return the statement, a subshell if `&` follows."""
    letter = source.letter
    if letter == ";" and source.sees(";;"):
        if ";;" not in ends:
            source.no("syntax")
    elif letter == "&":
        source.at += 1
        return StatementBlock("shell", [part])
    elif letter == ";":
        source.at += 1
    elif letter not in ("", "\n", closer):
        source.no("syntax")
    return part


def _and_or(source: ShellSource) -> Statement:
    found = _pipeline(source)
    while source.text[source.at : source.at + 2] in ("&&", "||"):
        is_and = source.letter == "&"
        source.at += len("&&")
        source.skip(lines=True)
        found = StatementBlock("and" if is_and else "or", [found, _pipeline(source)])
    return found


def _pipeline(source: ShellSource) -> Statement:
    source.skip()
    for word in ("!", "time") if source.letter in ("!", "t") else ():
        if source.keyword() == word:
            source.at += len(word)
            source.skip()
            if word == "time" and source.take(_PLAIN_TIME):
                source.skip()
            if source.sees("--"):
                source.no("syntax")  # it ends the options of `time`, and is no command
    parts: list[Statement] = []
    while True:
        start = len(source.simples)
        part = _command(source)
        if parts:
            before = tuple(parts) if len(parts) <= _MOST_PARTS else ()
            _feed(source.simples[start:], CommandFeed("pipe", parts=before))
        parts.append(part)
        source.skip()
        if source.letter != "|" or source.sees("||"):
            break
        source.at += len("|&") if source.sees("|&") else 1
        source.skip(lines=True)
    return parts[0] if len(parts) == 1 else StatementBlock("pipe", parts)


def _feed(simples: Sequence[Simple], feed: CommandFeed) -> None:
    """Set `feed` as the input of each command without an input of its own."""
    for each in simples:
        each.fed = each.fed or feed
        each.outer = each.outer or feed


def _command(source: ShellSource) -> Statement:
    start, word = len(source.simples), source.keyword()
    if source.letter == "(":
        word = "((" if source.sees("((") else "("
    step = _COMPOUND.get(word)
    if step is not None:
        found = step(source)
    elif function := source.take(_FUNCTION):
        return _function(source, function[1] or function[2])
    elif word in RESERVED:
        source.no("reserved-word")
    else:
        return _simple(source)
    return _redirected(source, found, start)


def _redirected(source: ShellSource, found: Statement, start: int) -> Statement:
    """Read the redirections after a compound command; return both as a single statement."""
    whole = Simple(source.at, "redirection")
    source.skip()
    while read_redirection(source, whole):
        source.skip()
    if source.letter and source.letter not in _ENDS_COMMAND:
        source.no("syntax")
    if not (whole.redirections or whole.fed):
        return found
    inside = source.simples[start:]
    source.simples.append(whole)
    if whole.fed:
        _feed(inside, whole.fed)
    return StatementBlock("group", [whole, found])


def _function(source: ShellSource, name: str) -> StatementBlock:
    if source.pending or name in RESERVED or not name.isascii():
        source.no("here-document" if source.pending else "reserved-word")
    start = len(source.simples)
    body = _command(source)
    source.functions.setdefault(name, []).extend(source.simples[start:])
    return StatementBlock("function", [body], name)


def _subshell(source: ShellSource) -> StatementBlock:
    source.at += 1
    body = _list(source, (), ")")
    source.at += 1
    return StatementBlock("shell", [body])


def _group(source: ShellSource) -> StatementBlock:
    source.at += 1
    body = _list(source, ("}",), "")
    source.expect("}")
    return body


def _if(source: ShellSource) -> StatementBlock:
    source.at += len("if")
    parts: list[Statement] = [_list(source, ("then",), "")]
    source.expect("then")
    parts.append(StatementBlock("branch", [_list(source, ("elif", "else", "fi"), "")]))
    word = source.keyword()
    if word == "elif":
        source.at += len("el")
        parts.append(StatementBlock("branch", [_if(source)]))
    elif word == "else":
        source.at += len("else")
        parts.append(StatementBlock("branch", [_list(source, ("fi",), "")]))
    if word != "elif":
        source.expect("fi")
    return StatementBlock("list", parts)


def _while(source: ShellSource) -> StatementBlock:
    source.at += len("while")
    condition = _list(source, ("do",), "")
    return StatementBlock("loop", [condition, *_done(source).parts])


def _done(source: ShellSource) -> StatementBlock:
    source.expect("do")
    body = _list(source, ("done",), "")
    source.expect("done")
    return StatementBlock("loop", [body])


def _for(source: ShellSource) -> StatementBlock:
    source.at += len("for")
    source.skip()
    one = Simple(source.at, "for")
    if source.sees("(("):
        source.at += len("((")
        text = read_sum(source, "))", ";")
        one.kind, one.words = "sum", [Word([Piece("text", text, quoted=True)], text, one.at)]
        source.skip()
    else:
        _loop_variable(source, one)
    if source.letter == ";":
        source.at += 1
    source.simples.append(one)
    return StatementBlock("list", [one, _done(source)])


def _loop_variable(source: ShellSource, one: Simple) -> None:
    name = source.take(_NAME)
    if name is None or name[0] in RESERVED or not name[0].isascii():
        source.no("syntax")
    source.skip()
    if source.keyword() != "in":
        source.no("for-without-in")
    source.at += len("in")
    source.skip()
    words = []
    while source.letter not in ("", ";", "\n"):
        words += unbraced(source, read_word(source))
        source.skip()
    one.assignments = tuple(Assignment(name[0], "for", word) for word in words or [Word([])])


def _case(source: ShellSource) -> StatementBlock:
    source.at += len("case")
    source.skip()
    subject = Simple(source.at, "case")
    subject.words.append(read_word(source))
    source.simples.append(subject)
    source.expect("in")
    if source.inner:
        source.no("case-in-substitution")
    parts: list[Statement] = [subject]
    source.skip(lines=True)
    while source.keyword() != "esac":
        _patterns(source, subject)
        if not source.sees(";;") and source.keyword() != "esac":
            parts.append(StatementBlock("branch", [_list(source, (";;", "esac"), "")]))
        if source.sees(";;"):
            source.at += len(";;")
            if source.letter == "&":
                source.no("syntax")
        source.skip(lines=True)
    source.at += len("esac")
    return StatementBlock("list", parts)


def _patterns(source: ShellSource, subject: Simple) -> None:
    if source.letter == "(":
        source.at += 1
        source.skip()
    while True:
        subject.words.append(read_word(source))
        if subject.words[-1].raw == "esac":
            source.no("syntax")
        source.skip()
        if source.letter != "|" or source.sees("||"):
            break
        source.at += 1
        source.skip()
    if source.letter != ")":
        source.no("syntax")
    source.at += 1
    source.skip(lines=True)


def _sum_command(source: ShellSource) -> Simple:
    one = Simple(source.at, "sum")
    source.at += len("((")
    text = read_sum(source, "))")
    one.words.append(Word([Piece("text", text, quoted=True)], text, one.at))
    source.simples.append(one)
    return one


def _simple(source: ShellSource) -> Simple:
    """Read a simple command: assignments and redirections, then words and redirections."""
    one, text = Simple(source.at), source.text
    words, declares = one.words, False
    while (letter := text[source.at : source.at + 1]) not in _ENDS_SIMPLE and (
        letter != "&" or source.sees("&>")
    ):
        if letter in REDIRECTS and read_redirection(source, one):
            pass
        elif not words and (found := source.take(_ASSIGNS)):
            _assignment(source, one, found)
        else:
            word = read_word(source, assigning=declares)
            if not words:
                declares = word.raw in DECLARERS
                if word.raw in RESERVED:
                    source.no("reserved-word", word.at)
            words += unbraced(source, word) if "{" in word.raw else (word,)
        if text[source.at : source.at + 1] in SKIPPED:
            source.skip()
    if not (words or one.assignments or one.redirections or one.fed):
        source.no("syntax")
    source.simples.append(one)
    return one


def _assignment(source: ShellSource, one: Simple, found: re.Match[str]) -> None:
    name, index, plus = found.groups()
    if not name.isascii():
        source.no("name")  # a letter of a name in some locales, and none in others
    if source.letter == "(":
        if index:
            source.no("array")
        words = _elements(source)
        if source.letter and source.letter not in " \t\n;&|)":
            source.no("array")  # it is glued to the assignment, whatever it is
        given = words or [Word([])]
        one.assignments += tuple(Assignment(name, "array", word) for word in given)
        return
    value = Word([], "", source.at)
    if source.letter and source.letter not in " \t\n;&|)":
        value = read_word(source, assigning=True)
    how = f"{plus}=" if index is None else f"[{plus}="
    one.assignments += (Assignment(name, how, value),)


def _elements(source: ShellSource) -> list[Word]:
    source.at += 1
    words = []
    source.skip(lines=True)
    while source.letter != ")":
        if source.pending or source.letter in ("", "[", ";", "&", "|", "<", ">", "("):
            source.no("array")
        words += unbraced(source, read_word(source))
        source.skip(lines=True)
    source.at += 1
    return words


_COMPOUND: Mapping[str, Callable[[ShellSource], Statement]] = {
    "((": _sum_command,
    "(": _subshell,
    "{": _group,
    "[[": read_test,
    "if": _if,
    "while": _while,
    "until": _while,
    "for": _for,
    "case": _case,
}
