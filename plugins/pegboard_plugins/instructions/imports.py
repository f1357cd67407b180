"""The imports of instruction files: `@path` in their text names another file to read."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pegboard.unstable
from pegboard import SessionView
from pegboard.files import secret_path
from pegboard.permissions import judge_rules

MOST_HOPS = 4
"""The maximum depth of imports of imports."""
LIMIT_BYTES = 128 * 1024
"""The maximum size of all imports of a session together."""
IMPORTING = frozenset({"AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md"})
"""The files whose imports count; those of imported files count, too."""
DOCUMENTS = frozenset({"", ".md", ".mdc", ".rst", ".txt"})
"""The suffixes of files that a project's file can import, so that it cannot import keys."""
_NAMED = re.compile(r"(?:^|(?<=\s))@((?:\\ |[^\s\\`@\0])(?:\\ |[^\s\\`\0])*)", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TICKS = re.compile("`+")
_ENDS = ".,;:!?)]}'\""
_LONGEST_NAME = 1000


def with_imports(
    session: SessionView,
    files: Sequence[Path],
    content: Callable[[Path], str],
    left_out: dict[Path, list[str]],
) -> Iterator[Path]:
    """Yield the resolved files, each followed by the files that it imports, every file once.

    `content` returns the text of a file that counts, or "". A project's file imports only documents
    of the project; the user's own file imports any text file. Files of secrets, and files that a
    rule forbids to read, are left out. `left_out` collects the names of imports that exceed the
    limit, by the file that imports them.
    """
    reader = _Imports(session, content, left_out)
    for file in files:
        yield from reader.below(file, MOST_HOPS if file.name in IMPORTING else 0)


class _Imports:
    def __init__(
        self,
        session: SessionView,
        content: Callable[[Path], str],
        left_out: dict[Path, list[str]],
    ) -> None:
        self._session = session
        self._root = session.worktree.resolve()
        self._content = content
        self._left_out = left_out
        self._seen: set[Path] = set()
        self._room = LIMIT_BYTES
        self._known = pegboard.unstable.imported_documents(session.id)

    def below(self, file: Path, hops: int) -> Iterator[Path]:
        if file in self._seen:
            return
        self._seen.add(file)
        yield file
        text = self._content(file) if hops else ""
        for name in imported_names(text) if "@" in text else ():
            found = self._file(file, name)
            if found is None or found in self._seen:
                continue
            content = self._content(found)
            size = len(content.encode())
            if "\0" in content:
                continue
            if size > self._room:
                self._left_out.setdefault(file, []).append(name)
                continue
            self._room -= size
            yield from self.below(found, hops - 1)

    def _file(self, importer: Path, name: str) -> Path | None:
        """Return the file that an import names, or None if it is missing or may not be imported."""
        for each in dict.fromkeys((name, name.rstrip(_ENDS))):
            path = self._path(importer.parent, each)
            if path is None:
                continue
            inside = importer.is_relative_to(self._root)
            if path.is_relative_to(self._root):
                self._known.add(path)
            elif inside:
                continue
            if os.path.isfile(path) and self._may_be_read(path, inside=inside):  # noqa: PTH113 - any name
                return path
        return None

    def _path(self, folder: Path, name: str) -> Path | None:
        home = self._session.home
        if name.startswith("~/"):
            if home is None:
                return None
            name = f"{home}{name[1:]}"
        try:
            return Path(os.path.realpath(folder / name)) if name else None
        except (OSError, ValueError):
            return None

    def _may_be_read(self, path: Path, *, inside: bool) -> bool:
        if secret_path(path) or (inside and path.suffix not in DOCUMENTS):
            return False
        if inside and not {".git"}.isdisjoint(path.relative_to(self._root).parts):
            return False
        verdict = judge_rules(self._session.rulesets, "read", [str(path)], home=self._session.home)
        return verdict.action == "allow" or verdict.rule is None


def no_room(names: Iterable[str]) -> str:
    """Return a sentence about imports that exceed the size limit."""
    imports = ", ".join(f"@{name}" for name in names)
    return f"{imports} not imported: all imports together have {LIMIT_BYTES >> 10} KiB"


def imported_names(text: str) -> Iterable[str]:
    """Return the names after `@` in a Markdown text, each once, without names in code."""
    prose = "\n\n".join(map(_without_spans, re.split(r"\n[ \t]*\n", _without_fences(text))))
    found = (match[1].replace("\\ ", " ").partition("#")[0] for match in _NAMED.finditer(prose))
    return dict.fromkeys(name for name in found if 0 < len(name) <= _LONGEST_NAME)


def _without_fences(text: str) -> str:
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            lines.append(line)
    return "\n".join(lines)


def _without_spans(text: str) -> str:
    """Return the paragraph without its Markdown code spans, in linear time."""
    runs = list(_TICKS.finditer(text))
    following: list[int | None] = [None] * len(runs)
    nearest: dict[int, int] = {}
    for at in range(len(runs) - 1, -1, -1):
        length = len(runs[at][0])
        following[at] = nearest.get(length)
        nearest[length] = at
    pieces: list[str] = []
    place = at = 0
    while at < len(runs):
        end = following[at]
        if end is not None:
            pieces.append(text[place : runs[at].start()])
            place, at = runs[end].end(), end
        at += 1
    return "`".join((*pieces, text[place:]))
