"""The code files of a project and of its user, which are found and read without running them.

Each file is read once, and the same content is displayed, digested and run. Modules that a
project's code imports from its own folder also run, so they need trust too.
"""

import ast
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

FOLDER = ".pegboard"
_TOOL_FOLDERS = ("tool", "tools")
_PLUGIN_FOLDER = "plugins"
_OWN_TOOL_FOLDER = "tool"
_PACKAGE = "__init__.py"
LIMIT_BYTES = 16 << 20
"""More than a hand-written file has; a project must not fill the memory before it is trusted."""
_IMPORTS_US = rb"(?m)^[ \t]*(from|import)[ \t]+pegboard\b"


class CodeFile(msgspec.Struct, frozen=True, kw_only=True):
    """A Python file that would run: a tool file, a plugin, or a module that these import.

    `name` is the plugin's name: a plugin file's stem, a package's name, or a tool file's relative
    path. `root` is the folder from which the file imports other files. `error` is the reason why
    the file could not be read; `content` is then empty.
    """

    path: Path
    kind: Literal["tool", "plugin", "part"]
    name: str
    root: Path = Path()
    content: bytes = b""
    error: str = ""


def way_down(worktree: Path, directory: Path) -> tuple[Path, ...]:
    """Return the folders from the worktree's root to the directory, both included."""
    if not directory.is_relative_to(worktree):
        return (directory,)
    inner = [folder for folder in directory.parents if folder.is_relative_to(worktree)]
    return (*reversed(inner), directory)


def project_code(directory: Path, worktree: Path) -> tuple[CodeFile, ...]:
    """Return the project's code files, outermost folder first.

    These are `.pegboard/tool/`, `tools/` and `plugins/` of every folder from the worktree's root to
    the directory. In the root and in the directory, a file `tool/*.py` also counts if its source
    imports Pegboard.
    """
    found: list[CodeFile] = []
    folders = way_down(worktree, directory)
    for folder in folders:
        found.extend(_code_below(folder / FOLDER, worktree))
        if folder in (folders[0], directory):
            own = _tool_files(folder / _OWN_TOOL_FOLDER, worktree)
            found.extend(file for file in own if file.error or imports_pegboard(file.content))
    return tuple(found)


def user_code(config_dir: Path) -> tuple[CodeFile, ...]:
    """Return the user's own code files: `tool/`, `tools/` and `plugins/` of the config folder."""
    return tuple(_code_below(config_dir, config_dir))


def plugin_files(path: Path) -> tuple[CodeFile, ...]:
    """Return the plugin files at a configured path: the file itself, or the files in the folder."""
    if os.path.isdir(path):  # noqa: PTH112 - no error where the name is none
        package = path / _PACKAGE
        files = (package,) if package.is_file() else _plugins_of(path)
        return tuple(_plugin_file(file) for file in files)
    return (_plugin_file(path),)


def imports_pegboard(source: bytes) -> bool:
    """Return whether a statement of the source imports Pegboard; a mere mention does not count.

    If the source cannot be parsed, a line that looks like such an import counts. Its author then
    sees the syntax error, and nothing can run.
    """
    if b"pegboard" not in source:
        return False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.search(_IMPORTS_US, source) is not None
    return any(module.partition(".")[0] == "pegboard" for module in imported_modules(tree))


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names of the modules that absolute import statements name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def read_bounded(path: Path) -> tuple[bytes, str]:
    """Read up to 16 MiB of a regular file without blocking; return the content and error text."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - a descriptor
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                return b"", "cannot be read: not a regular file"
            # What the kernel makes up, as in /proc, has no size, and may have no end.
            content = file.read(min(facts.st_size or LIMIT_BYTES, LIMIT_BYTES) + 1)
    except (OSError, ValueError) as error:
        return b"", f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if len(content) > LIMIT_BYTES:
        return b"", f"cannot be read: longer than {LIMIT_BYTES >> 20} MiB"
    return content, ""


def _code_below(root: Path, named_from: Path) -> Iterator[CodeFile]:
    if not root.is_dir():
        return
    for folder in _TOOL_FOLDERS:
        yield from _tool_files(root / folder, named_from)
    yield from (_plugin_file(path) for path in _plugins_of(root / _PLUGIN_FOLDER))


def _tool_files(folder: Path, named_from: Path) -> Iterator[CodeFile]:
    for path in _python_files(folder):
        inside = path.is_relative_to(named_from)
        name = path.relative_to(named_from).as_posix() if inside else str(path)
        content, error = read_bounded(path)
        yield CodeFile(path=path, kind="tool", name=name, root=folder, content=content, error=error)


def _plugin_file(path: Path) -> CodeFile:
    content, error = read_bounded(path)
    home = path.parent if path.name == _PACKAGE else path.with_suffix("")
    return CodeFile(
        path=path, kind="plugin", name=home.name, root=home.parent, content=content, error=error
    )


def _plugins_of(folder: Path) -> Iterable[Path]:
    """Return the plugins in a folder: the modules, and the `__init__.py` of packages."""
    packages = sorted(path for path in folder.glob(f"*/{_PACKAGE}") if path.is_file())
    return (*_python_files(folder), *packages)


def _python_files(folder: Path) -> Iterable[Path]:
    """Return the regular files `*.py` directly in the folder, sorted."""
    if not folder.is_dir():
        return ()
    return sorted(
        path
        for path in folder.glob("*.py")
        if path.name != "__init__.py" and not path.name.startswith(".") and path.is_file()
    )


MOST_FILES = 1000
"""A project's code that is more than this belongs into a distribution."""


def with_neighbours(files: Iterable[CodeFile]) -> tuple[CodeFile, ...]:
    """Return the files and all files that are imported from the files' own folders, recursively.

    Each file is returned once. An imported package counts with all its modules.
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
    """Read a file below `root` that plugins or tools import, but that is neither of these."""
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
