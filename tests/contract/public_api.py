"""The public names as text, one promise per line; the page of hooks is the promise of hooks.

Run as a program it prints that text; `public_api.txt` is what was promised last.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from surface import CORE, RINGS, definitions, marks, signature

STORED = Path(__file__).with_name("public_api.txt")


def describe() -> str:
    """Return the exported names and the schema's structs with their signatures."""
    lines = []
    for ring, names in RINGS.items():
        lines += [f"# {ring}"]
        for name, module in sorted(names.items()):
            for node in definitions(name, module):
                lines += _lines(node)
        lines += [""]
    for path in sorted((CORE / "schema").glob("*.py")):
        lines += [f"# pegboard.schema.{path.stem}"]
        for node in ast.parse(path.read_text()).body:
            lines += _lines(node)
        lines += [""]
    return "\n".join(lines) + "\n"


def _lines(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef():
            yield from _class(node)
        case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_public(node.name):
            yield signature(node)
        case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if name[0].isupper():
            yield f"{name}: {ast.unparse(kind)}"
        case ast.Assign(targets=[ast.Name(id=name)]) if name[0].isupper():
            yield f"{name} = {ast.unparse(node.value)}"


def _class(node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield f"class {node.name}({bases})" if bases else f"class {node.name}"
    for member in node.body:
        match member:
            case ast.AnnAssign(target=ast.Name(id=name)) if _is_public(name):
                yield f"  {ast.unparse(member)}"
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_public(member.name):
                shown = sorted(marks(member) & {"property", "classmethod", "overload"})
                yield "  " + " ".join([*(f"@{mark}" for mark in shown), signature(member)])


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name == "__init__"


if __name__ == "__main__":
    sys.stdout.write(describe())
