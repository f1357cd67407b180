"""The layout of the core: few modules at its root, one name for each, folders that cost nothing."""

import ast
import tokenize
from collections import Counter
from pathlib import Path
from statistics import median

CORE = Path(__file__).parents[1] / "core" / "pegboard"
FLAT_FILES = 8
KERNEL = (
    *("loop", "run", "runs", "step", "stream", "processor", "writer"),
    *("toolcall", "toolcontext", "request", "history"),
)
"""The modules of the engine that a turn consists of; the subjects beside them have rooms."""
CORE_LINES = 15_600
KERNEL_LINES = 2_300
CONTRACT_LINES = 900
MEDIAN_LINES = 150
_BLANK = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}
PUBLIC = {"cli", "embedding", "kit", "providers", "storage"}
"""Packages whose `__init__` gives names to other people's programs."""


def _modules() -> list[Path]:
    return [path.relative_to(CORE) for path in CORE.rglob("*.py")]


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
    lengths = [len(path.read_text().splitlines()) for path in CORE.rglob("*.py")]

    assert median(lengths) >= MEDIAN_LINES


def test_few_modules_lie_flat_in_the_core() -> None:
    assert len(list(CORE.glob("*.py"))) <= FLAT_FILES


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
    trees = (ast.parse(path.read_text()) for path in CORE.rglob("*.py"))
    classes = (node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    names = Counter(name for name in classes if name[0] != "_")

    assert [name for name, times in names.items() if times > 1] == []


def test_every_package_that_plugins_import_says_that_it_is_typed() -> None:
    beside = [path.parent for path in CORE.parents[1].glob("plugins/*/__init__.py")]

    assert len(beside) > 1
    assert [path.name for path in (CORE, *beside) if not (path / "py.typed").exists()] == []
