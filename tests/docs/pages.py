"""The Markdown pages of the project and the code blocks in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PAGES = (
    ROOT / "README.md",
    ROOT / "contrib" / "README.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INCLUDED = re.compile(r"^```\{literalinclude\} (\S+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")
GENERATED = {"api.md", "schema.md", "commands.md"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block; `line` is where its fence stands."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    @property
    def file(self) -> str:
        """The path that the first line of a Python block names, else that of the hello tool."""
        first = self.text.partition("\n")[0]
        return first.removeprefix("# ") if first.startswith("# ") else "tool/hello.py"


def blocks(language: str) -> list[Block]:
    """All blocks of a language, without the pages that repeat the code."""
    return [
        Block(page=page, line=line, language=name, text=text)
        for page in PAGES
        if page.name not in GENERATED
        for name, text, line in _found(page.read_text())
        if name == language
    ]


def _found(text: str) -> Iterator[tuple[str, str, int]]:
    for match in _BLOCK.finditer(text):
        yield match[1], match[2], text.count("\n", 0, match.start()) + 1


def links(page: Path) -> list[str]:
    """The files that a page links to, without their anchors, and those that it shows."""
    text = _BLOCK.sub("", page.read_text())
    found = (*_LINK.findall(text), *_INCLUDED.findall(text))
    targets = (target.partition("#")[0] for target in found)
    return [target for target in targets if target and "://" not in target]
