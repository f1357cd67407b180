"""The layout of the core: few modules at its root, one name for each, folders that cost nothing.

The kits for authors stand beside the core: the engine imports none of them.
"""

import ast
import tokenize
from collections import Counter
from pathlib import Path
from statistics import median

from support.plugins.surface import CORE, KITS, PLUGINS

FLAT_FILES = 8
KERNEL = (
    *("loop", "run", "runs", "step", "stream", "processor", "writer"),
    *("toolcall", "toolcontext", "request", "history"),
)
"""The modules of the engine that a turn consists of; the subjects beside them have rooms."""
CORE_LINES = 16_420
KERNEL_LINES = 2_358
CONTRACT_LINES = 971
MEDIAN_LINES = 150
_BLANK = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}
PUBLIC = {"app", "cli", "providers", "storage"}
"""Packages whose `__init__` gives names to other people's programs."""
RINGS = {"budgets", "compaction", "permissions", "plugins", "unstable"}
"""Modules that consist of the names they load late."""


def _modules() -> list[Path]:
    """Return the modules of the core, without rings and kits."""
    found = [path.relative_to(CORE) for path in CORE.rglob("*.py")]
    return [path for path in found if path.parts[0] not in KITS and path.stem not in RINGS]


def _code_lines(path: Path) -> int:
    """The lines of a file without blank ones, comments and docstrings."""
    with path.open("rb") as file:
        tokens = [each for each in tokenize.tokenize(file.readline) if each.type not in _BLANK]
    lines = {line for each in tokens[1:] for line in range(each.start[0], each.end[0] + 1)}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if ast.get_docstring(node) is not None else None
            if first is not None:
                lines -= set(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def test_the_core_is_what_a_turn_needs_whose_every_part_is_a_plugin() -> None:
    lines = {str(path): _code_lines(CORE / path) for path in _modules()}

    assert sum(lines.values()) <= CORE_LINES, lines


def test_the_kernel_of_the_engine_can_be_read_in_an_evening() -> None:
    lines = {name: _code_lines(CORE / "engine" / f"{name}.py") for name in KERNEL}

    assert sum(lines.values()) <= KERNEL_LINES, lines


def test_the_contract_can_be_read_by_the_author_of_a_plugin() -> None:
    lines = {path.name: _code_lines(path) for path in (CORE / "contract").glob("*.py")}

    assert sum(lines.values()) <= CONTRACT_LINES, lines


def test_a_module_of_the_core_is_more_than_a_page() -> None:
    lengths = [len((CORE / path).read_text().splitlines()) for path in _modules()]

    assert median(lengths) >= MEDIAN_LINES


def test_few_modules_lie_flat_in_the_core() -> None:
    assert len([path for path in _modules() if len(path.parts) == 1]) <= FLAT_FILES


def test_a_module_s_name_occurs_once_in_the_core() -> None:
    names = Counter(path.stem for path in _modules() if path.name != "__init__.py")

    assert [name for name, times in names.items() if times > 1] == []


def test_a_folder_of_the_core_says_what_it_is_and_loads_nothing() -> None:
    folders = {path for path in _modules() if path.name == "__init__.py"} - {Path("__init__.py")}
    inner = {path for path in folders if path.parts[0] not in PUBLIC}

    trees = {path: ast.parse((CORE / path).read_text()) for path in inner}

    assert [path for path, tree in trees.items() if not ast.get_docstring(tree)] == []
    assert [path for path, tree in trees.items() if len(tree.body) > 1] == []


def test_a_class_s_name_occurs_once_in_the_core() -> None:
    trees = (ast.parse((CORE / path).read_text()) for path in _modules())
    classes = (node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    names = Counter(name for name in classes if name[0] != "_")

    assert [name for name, times in names.items() if times > 1] == []


def test_both_packages_say_that_they_are_typed() -> None:
    assert [path for path in (CORE, PLUGINS) if not (path / "py.typed").exists()] == []
