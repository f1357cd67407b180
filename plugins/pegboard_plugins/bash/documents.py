"""Here-documents: texts that stand below the line that they belong to."""

import re

from pegboard_plugins.bash.quoting import read_quoted
from pegboard_plugins.bash.source import Source, placed
from pegboard_plugins.bash.syntax import Feed, Piece, Redirection, Simple, Unclear, Word

_NAME = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)(?=[ \t\n;&|<>)]|$)"
    r"|(?:'([A-Za-z0-9_ .-]+)'|\"([A-Za-z0-9_ .-]+)\"|\\([A-Za-z_][A-Za-z0-9_]*))"
    r"(?=[ \t\n;&|<>)]|$)"
)
_JOINS_SIGNS = re.compile(r"[$`]\\\n|\\\n[ \t]*[({]|\$\w*\\\n")
"""A joined line in the middle of what may be an expansion."""


def note_document(source: Source, one: Simple, *, is_input: bool, strips: bool) -> None:
    """The name of a here-document, whose body is read when the next line begins."""
    start, found = source.at, source.take(_NAME)
    if found is None:
        source.no("here-document-name")
    name = found[1] or found[2] or found[3] or found[4]
    is_plain = found[1] is not None
    end = source.at
    if is_input:
        one.fed = Feed("text")

    def read_body() -> None:
        body, lines_end = _lines(source, name, strips=strips, joins=is_plain)
        if source.inner and lines_end >= source.end:
            source.no("here-document", start)
        with placed(start, end):
            word = _expanded(source, one, body, start) if is_plain else _plain(body, start)
        one.redirections.append(Redirection("<<", "", word))
        if one.fed == Feed("text"):
            one.fed = Feed("text", word)

    source.pending.append(read_body)


def _lines(source: Source, name: str, *, strips: bool, joins: bool) -> tuple[str, int]:
    """The body up to the line of the name, which must be there, and where that line ends."""
    lines: list[str] = []
    start = source.at
    while source.at < source.end:
        line, end = _line(source, source.at)
        while joins and (len(line) - len(line.rstrip("\\"))) % 2 and end < source.end:
            more, end = _line(source, end + 1)
            line = line[:-1] + more
        if joins and _JOINS_SIGNS.search(source.text, source.at, end):
            source.no("line-continuation")
        source.at = min(end + 1, source.end)
        line = line.lstrip("\t") if strips else line
        if line == name:
            return "".join(f"{each}\n" for each in lines), end
        lines.append(line)
    raise Unclear("here-document", start, source.end)


def _line(source: Source, start: int) -> tuple[str, int]:
    end = source.text.find("\n", start)
    end = source.end if end < 0 else end
    return source.text[start:end], end


def _plain(body: str, start: int) -> Word:
    return Word([Piece("text", body, quoted=True)], body, start)


def _expanded(source: Source, one: Simple, body: str, start: int) -> Word:
    """A body as the shell expands it; what runs in it may read what stands around the command."""
    inside = Source(body, source.read_list, depth=source.depth, inner=source.inner + 1)
    word = Word(read_quoted(inside, ""), body, start)
    for each in inside.simples:
        each.fed = each.fed or one.outer
    source.adopt(inside)
    return word
