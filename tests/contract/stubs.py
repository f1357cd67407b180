"""The names of each ring for type checkers, written from the table that loads them.

Run as a program it writes a `.pyi` beside each module that loads its names late.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = "# Written by `poe stubs` from the table in the module beside it.\n"


def rings() -> Iterator[Path]:
    """Yield each module that loads its names late."""
    for root in ("core", "plugins"):
        for path in sorted((ROOT / root).rglob("*.py")):
            if "= late_names(" in path.read_text():
                yield path


def homes(ring: Path) -> dict[str, tuple[str, ...]]:
    """Return the table of a ring: the names by the module that defines them."""
    for node in ast.parse(ring.read_text()).body:
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(id="late_names"), args=[_, table, *_])):
                return ast.literal_eval(table)  # type: ignore[no-any-return]
    raise AssertionError(f"{ring} has no table")


def moved(ring: Path) -> dict[str, tuple[str, str]]:
    """Return the old names of a ring: each with its place of today and the release that ends it."""
    for node in ast.parse(ring.read_text()).body:
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(id="late_names"), args=[_, _, table])):
                return ast.literal_eval(table)  # type: ignore[no-any-return]
    return {}


def moved_names() -> set[str]:
    """Return the old names of all rings with their rings."""
    return {f"{_module(ring)}.{name}" for ring in rings() for name in moved(ring)}


def _module(ring: Path) -> str:
    parts = ring.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def stub(ring: Path) -> str:
    """Return the text of a ring's stub."""
    lines = [
        f"from {home} import {name} as {name}\n"
        for home, names in homes(ring).items()
        for name in names
    ]
    for old, (place, _) in moved(ring).items():
        home, _, name = place.partition(":")
        lines += [f"from {home} import {name} as {old}\n"]
    if ring.parent.name == "pegboard" and ring.stem == "__init__":
        lines = ["from collections.abc import Callable, Mapping\n\n", *lines]
        lines += [
            "\n",
            "__version__: str\n\n",
            "def late_names(\n    ring: str,\n    homes: Mapping[str, tuple[str, ...]],\n",
            "    moved: Mapping[str, tuple[str, str]] = ...,\n",
            ") -> tuple[Callable[[str], object], Callable[[], list[str]]]: ...\n",
        ]
    return HEAD + "".join(lines)


if __name__ == "__main__":
    for each in rings():
        each.with_suffix(".pyi").write_text(stub(each))
