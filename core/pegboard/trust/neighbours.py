"""The imports of a project's code from beside it, which run as well and have to be trusted."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from pegboard.trust.projectcode import CodeFile, read_bounded

MOST_FILES = 1000
"""A project's code that is more than this belongs into a distribution."""


def with_neighbours(files: Iterable[CodeFile]) -> tuple[CodeFile, ...]:
    """The files and all that they import from their own folders, and so on, each once.

    Of a package of the folder all modules belong to it.
    """
    found = {file.path: file for file in files}
    waiting = list(found.values())
    while waiting and len(found) < MOST_FILES:
        file = waiting.pop()
        for path in _imported(file):
            if path not in found:
                found[path] = part(path, file.root)
                waiting.append(found[path])
    return tuple(found.values())


def part(path: Path, root: Path) -> CodeFile:
    """A file that is no plugin and no tool, but is imported by one below `root`."""
    content, error = read_bounded(path)
    name = path.relative_to(root).as_posix()
    return CodeFile(path=path, kind="part", name=name, root=root, content=content, error=error)


def _imported(file: CodeFile) -> Iterator[Path]:
    try:
        tree = ast.parse(file.content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if file.path.name == "__init__.py":
        yield from _package(file.path.parent)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    yield from _module(file.root, each.name)
            case ast.ImportFrom(module=module, names=names, level=0):
                yield from _module(file.root, module or "")
            case ast.ImportFrom(module=module, names=names, level=level):
                folder = file.path.parents[level - 1]
                if folder.is_relative_to(file.root):
                    for name in (module,) if module else (each.name for each in names):
                        yield from _module(folder, name)


def _module(folder: Path, dotted: str) -> Iterator[Path]:
    name = dotted.partition(".")[0]
    if not name.isidentifier():
        return
    if (file := folder / f"{name}.py").is_file():
        yield file
    elif (folder / name / "__init__.py").is_file():
        yield from _package(folder / name)


def _package(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if path.is_file())
