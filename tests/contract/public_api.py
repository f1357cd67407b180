"""The public names as text, one promise per line; the page of hooks is the promise of hooks.

Run as a program it prints that text; `public_api.txt` is what was promised last.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pegboard
from support.plugins.surface import CORE, PROMISED, RINGS, definitions, marks, signature

STORED = Path(__file__).with_name("public_api.txt")
_RELEASE = ".".join(pegboard.__version__.split(".")[:2])


def describe() -> str:
    """Return the promised names and the schema's structs with their signatures.

    The line of a name ends in the release that it came with.
    """
    lines = []
    for ring in PROMISED:
        lines += [f"# {ring}"]
        for name, module in sorted(RINGS[ring].items()):
            lines += [f"## {name}, since {since(ring, name)}"]
            for node in definitions(name, module):
                lines += _lines(node)
        lines += [""]
    for path in sorted((CORE / "schema").glob("*.py")):
        lines += [f"# pegboard.schema.{path.stem}"]
        for node in ast.parse(path.read_text()).body:
            lines += _lines(node)
        lines += [""]
    return "\n".join(lines) + "\n"


def since(ring: str, name: str) -> str:
    """Return the release that a name came with; a new name comes with this one."""
    return _stored().get((ring, name), _RELEASE)


@cache
def _stored() -> dict[tuple[str, str], str]:
    return releases(STORED.read_text()) if STORED.exists() else {}


def releases(text: str) -> dict[tuple[str, str], str]:
    """Return the release of each name in such a text, by ring and name."""
    found, ring = {}, ""
    for line in text.splitlines():
        if head := re.fullmatch(r"# (\S+)", line):
            ring = head[1]
        elif name := re.fullmatch(r"## (\w+), since (\S+)", line):
            found[ring, name[1]] = name[2]
    return found


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
