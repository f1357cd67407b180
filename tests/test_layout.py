"""The layout of the core: few modules at its root, one name for each, folders that cost nothing."""

import ast
from collections import Counter
from pathlib import Path

CORE = Path(__file__).parents[1] / "core" / "pegboard"
FLAT_FILES = 8
PUBLIC = {"cli", "embedding", "kit", "providers", "storage"}
"""Packages whose `__init__` gives names to other people's programs."""


def _modules() -> list[Path]:
    return [path.relative_to(CORE) for path in CORE.rglob("*.py")]


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
