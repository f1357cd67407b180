"""The Python files in a project's `tool/` folders that are not loaded as tools."""

import ast
from collections.abc import Collection
from pathlib import Path

from pegboard.unstable import imported_modules, read_bounded

FOLDER = "tool"
MOST_NAMED = 5


def skipped_tool_files(folders: Collection[Path]) -> tuple[str, ...]:
    """Return a warning for each file in a `tool/` folder that does not import Pegboard."""
    files = dict.fromkeys(file for each in folders for file in sorted((each / FOLDER).glob("*.py")))
    skipped = [file for file in files if file.is_file() and not _imports_pegboard(file)]
    return tuple(
        f"{file} does not import pegboard, so it is not loaded as a file of tools"
        for file in skipped[:MOST_NAMED]
    )


def _imports_pegboard(file: Path) -> bool:
    source = read_bounded(file)[0]
    try:
        modules = [*imported_modules(ast.parse(source))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return b"pegboard" in source
    return any(module.partition(".")[0] == "pegboard" for module in modules)
