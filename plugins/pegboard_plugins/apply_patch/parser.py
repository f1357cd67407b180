"""The parser of patches: it returns a section for each file; an invalid line is an error."""

import re
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from pegboard import ToolError

BEGIN = "*** Begin Patch"
END = "*** End Patch"
END_OF_FILE = "*** End of File"
_ADD, _DELETE, _UPDATE, _MOVE = (
    "*** Add File:",
    "*** Delete File:",
    "*** Update File:",
    "*** Move to:",
)
_HEREDOC = re.compile(r"(?:(?:cat|apply_patch)\s+)?<<-?\s*(['\"]?)(\w+)\1")

Problem = Literal[
    "envelope",
    "parse",
    "empty",
    "missing",
    "exists",
    "directory",
    "parent",
    "context",
    "duplicate",
    "io",
    "same",
]
Sign = Literal[" ", "-", "+"]


class PatchError(ToolError):
    """An error for an unusable patch; no file was changed. `kind` is the reason."""

    def __init__(self, kind: Problem, text: str, *, line: int | None = None) -> None:
        place = f"line {line} of the patch: " if line else ""
        super().__init__(f"{place}{text}. Nothing was changed.")
        self.kind = kind


class Add(msgspec.Struct, frozen=True):
    """A file to create; `content` is empty or ends in a line break."""

    path: str
    line: int
    content: str


class Delete(msgspec.Struct, frozen=True):
    """A file to delete."""

    path: str
    line: int


class PatchChunk(msgspec.Struct, frozen=True):
    """One change in a file: unchanged, removed and added lines, below the `headers`.

    If `at_end`, the chunk ends at the end of the file. `line` is its line in the patch.
    """

    line: int
    headers: tuple[str, ...]
    body: tuple[tuple[Sign, str], ...]
    at_end: bool

    @property
    def old(self) -> list[str]:
        """The lines that the file must contain where the change applies."""
        return [text for sign, text in self.body if sign != "+"]


class Update(msgspec.Struct, frozen=True):
    """A file to change; with `move_to`, it is also moved."""

    path: str
    line: int
    move_to: str | None
    chunks: tuple[PatchChunk, ...]


Section = Add | Delete | Update


class _PatchLine(msgspec.Struct, frozen=True):
    number: int
    text: str


def parse(patch: str) -> tuple[Section, ...]:
    """Parse a patch of at least one section; CRLF in it counts as LF.

    :raises PatchError: `envelope`, `parse` or `empty`, with the line's number.
    """
    lines = _PatchLines(_unwrapped(patch))
    sections: list[Section] = []
    while (line := lines.peek()) is not None:
        read = _READERS.get(_marker(line.text))
        if read is None:
            raise PatchError(
                "parse",
                f"{line.text[:80]!r} is no section; one begins with '{_ADD}', '{_DELETE}' or"
                f" '{_UPDATE}'",
                line=line.number,
            )
        sections.append(read(lines))
    if not sections:
        raise PatchError("empty", "the patch has no sections")
    return tuple(sections)


def _unwrapped(patch: str) -> list[_PatchLine]:
    """Return the lines between `*** Begin Patch` and `*** End Patch`, without a here-document."""
    lines = [
        _PatchLine(number, text)
        for number, text in enumerate(patch.replace("\r\n", "\n").split("\n"), start=1)
    ]
    lines = _trimmed(lines)
    heredoc = _HEREDOC.fullmatch(lines[0].text.strip()) if lines else None
    if heredoc and lines[-1].text.strip() == heredoc[2]:
        lines = _trimmed(lines[1:-1])
    if not lines or lines[0].text.strip() != BEGIN:
        raise PatchError("envelope", f"the first line must be '{BEGIN}'")
    if len(lines) == 1 or lines[-1].text.strip() != END:
        raise PatchError("envelope", f"the last line must be '{END}'")
    return lines[1:-1]


def _trimmed(lines: list[_PatchLine]) -> list[_PatchLine]:
    filled = [place for place, line in enumerate(lines) if line.text.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _marker(text: str) -> str:
    return next((marker for marker in (*_READERS, _MOVE) if text.startswith(marker)), "")


class _PatchLines:
    """The lines of the patch that are not parsed yet."""

    def __init__(self, lines: Iterable[_PatchLine]) -> None:
        self._lines = tuple(lines)
        self._next = 0

    def peek(self) -> _PatchLine | None:
        return self._lines[self._next] if self._next < len(self._lines) else None

    def take_if(self, fits: Callable[[str], bool]) -> _PatchLine | None:
        line = self.peek()
        if line is None or not fits(line.text):
            return None
        self._next += 1
        return line

    def path(self, marker: str) -> tuple[str, int]:
        """Return the path in the section header at the current line, and the line's number."""
        line = self.take_if(lambda text: text.startswith(marker))
        assert line is not None
        path = line.text.removeprefix(marker).strip()
        if not path or "\0" in path:
            raise PatchError("parse", f"'{marker}' needs a path", line=line.number)
        return path, line.number


def _add(lines: _PatchLines) -> Add:
    path, number = lines.path(_ADD)
    content: list[str] = []
    while (line := lines.take_if(lambda text: not text.startswith("***"))) is not None:
        if not line.text.startswith("+"):
            raise PatchError("parse", "a line of a new file begins with '+'", line=line.number)
        content.append(line.text[1:] + "\n")
    return Add(path, number, "".join(content))


def _delete(lines: _PatchLines) -> Delete:
    return Delete(*lines.path(_DELETE))


def _update(lines: _PatchLines) -> Update:
    path, number = lines.path(_UPDATE)
    line = lines.peek()
    moves = line is not None and line.text.startswith(_MOVE)
    move_to = lines.path(_MOVE)[0] if moves else None
    chunks: list[PatchChunk] = []
    while (line := lines.peek()) is not None and not line.text.startswith("***"):
        chunks.append(_chunk(lines, line.number))
    if not chunks and move_to is None:
        raise PatchError("empty", f"the update of {path} has no changes", line=number)
    return Update(path, number, move_to, tuple(chunks))


def _chunk(lines: _PatchLines, number: int) -> PatchChunk:
    headers: list[str] = []
    while (line := lines.take_if(lambda text: text.startswith("@@"))) is not None:
        text = line.text[2:].removeprefix(" ").rstrip()
        headers += [text] if text else []
    body: list[tuple[Sign, str]] = []
    while (line := lines.take_if(_in_body)) is not None:
        body.append(_signed(line))
    if not body:
        raise PatchError("parse", "'@@' is followed by no lines of a change", line=number)
    if all(sign == " " for sign, _ in body):
        raise PatchError("parse", "the chunk neither adds nor removes a line", line=number)
    end = lines.take_if(lambda text: text.rstrip() == END_OF_FILE)
    after = lines.peek()
    if end is not None and after is not None and not after.text.startswith(("***", "@@")):
        raise PatchError("parse", f"nothing can follow '{END_OF_FILE}'", line=after.number)
    return PatchChunk(number, tuple(headers), tuple(body), end is not None)


def _in_body(text: str) -> bool:
    return not text.startswith(("***", "@@"))


def _signed(line: _PatchLine) -> tuple[Sign, str]:
    match line.text[:1]:
        case "":
            return " ", ""  # a blank context line whose leading blank was lost
        case " " | "-" | "+" as sign:
            return sign, line.text[1:]
        case _:
            raise PatchError(
                "parse",
                f"{line.text[:80]!r} begins with none of ' ', '-', '+'",
                line=line.number,
            )


_READERS: dict[str, Callable[[_PatchLines], Section]] = {
    _ADD: _add,
    _DELETE: _delete,
    _UPDATE: _update,
}
