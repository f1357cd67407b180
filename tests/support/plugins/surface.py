"""The public surface, read from the source: where each public name is defined, and the hooks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pegboard
import pegboard_plugins
from pegboard.loading.registration import HOOK_MODULES

CORE = Path(pegboard.__file__).parent
KITS = {"display", "files", "http", "processes", "testing"}
"""Folders of `pegboard` that the engine does not import: what authors of plugins share."""
PLUGINS = Path(pegboard_plugins.__path__[0])
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _file(module: str) -> Path:
    package, *parts = module.split(".")
    path = {"pegboard": CORE, "pegboard_plugins": PLUGINS}[package].joinpath(*parts)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def tree(module: str) -> ast.Module:
    """Return a module of Pegboard or of its plugins as type checkers see it."""
    stub = _file(module).with_suffix(".pyi")
    return _parsed(stub if stub.exists() else _file(module))


def source(module: str) -> ast.Module:
    """Return a module of Pegboard or of its plugins as Python sees it."""
    return _parsed(_file(module))


def _names(ring: str) -> dict[str, str]:
    """The public names of a ring with the modules that define them."""
    found = {}
    for node in tree(ring).body:
        match node:
            case ast.ImportFrom(module=str(source), names=[ast.alias(name, asname)]):
                if name == asname:
                    found[name] = source
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if ring != "pegboard" and not node.name.startswith("_"):
                    found[node.name] = ring
            case ast.Assign(targets=[ast.Name(id=name)]) if name[0].isupper():
                if name[1].islower():
                    found[name] = ring
    return found


PROMISED = (
    "pegboard",
    *("pegboard.permissions", "pegboard.files", "pegboard.processes", "pegboard.display"),
    *("pegboard.plugins", "pegboard.providers", "pegboard.http", "pegboard.storage"),
    *("pegboard.snapshots", "pegboard.budgets", "pegboard.compaction", "pegboard.app"),
    *("pegboard.cli", "pegboard.testing", "pegboard.errors"),
)
"""The rings whose names are promised, in the order of the reference."""
UNPROMISED = (
    "pegboard.unstable",
    "pegboard_plugins.shared.frontend",
    "pegboard_plugins.shared.terminal",
    "pegboard_plugins.shared.transcripts",
)
"""Rings of names that the built-in plugins share."""
RINGS = {ring: _names(ring) for ring in (*PROMISED, *UNPROMISED)}
"""Where public names are imported from, each with its names and the modules that define them.

An error that is among the names of `pegboard` is defined in `pegboard.errors`, and told of once.
"""
for _name in RINGS["pegboard"]:
    RINGS["pegboard.errors"].pop(_name, None)


def definitions(name: str, module: str) -> list[ast.stmt]:
    """What defines a public name, through re-exports; overloads come before what they overload."""
    found: list[ast.stmt] = []
    for node in tree(module).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                found.append(node)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                if isinstance(target, ast.Name) and target.id == name:
                    found.append(node)
            case ast.ImportFrom(module=str(source), names=names) if source.startswith("pegboard"):
                if any((each.asname or each.name) == name for each in names):
                    found += definitions(name, source)
    assert found, f"{module} does not define {name}"
    return found


def hooks() -> Iterator[tuple[str, ast.FunctionDef, ast.Call]]:
    """Yield each hook with its module and the call that marks it, the core's hooks first."""
    files = sorted([*PLUGINS.glob("*/__init__.py"), *PLUGINS.glob("*/hookspecs.py")])
    modules = [(each.__name__, tree(each.__name__)) for each in HOOK_MODULES]
    for module, body in (*modules, *((file.parent.name, _parsed(file)) for file in files)):
        for node in body.body:
            match node:
                case ast.FunctionDef(
                    decorator_list=[ast.Call(func=ast.Name(id="hookspec")) as mark]
                ):
                    yield module, node, mark


def marks(function: Function) -> set[str]:
    """The names of a function's decorators."""
    return {ast.unparse(mark) for mark in function.decorator_list}


def signature(function: Function, *, bound: bool = False) -> str:
    """Name, arguments and answer; `bound` leaves `self` out. Quoted annotations are unquoted."""
    arguments = ast.unparse(_Unquoted().visit(function.args))
    if bound:
        arguments = arguments.removeprefix("self").removeprefix("cls").removeprefix(", ")
    answer = f" -> {ast.unparse(_unquoted(function.returns))}" if function.returns else ""
    kind = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{kind} {function.name}({arguments}){answer}"


class _Unquoted(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        if node.annotation:
            node.annotation = _unquoted(node.annotation)
        return node


def _unquoted(annotation: ast.expr) -> ast.expr:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation
