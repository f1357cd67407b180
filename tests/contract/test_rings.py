"""Public names stand in rings: few in the middle, each in one, written once, and used."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.public_api import STORED
from support.plugins.surface import RINGS, UNPROMISED, definitions, hooks, signature

ROOT = Path(__file__).parents[2]
MIDDLE = 30
WRITTEN_FROM_THE_CODE = {"api.md", "hooks.md"}
FOR_OTHERS = {"pegboard.errors", "pegboard.testing"}
"""Rings that others need more of than we: they may catch any error, and test with the kit."""
PARTICIPLE = re.compile(r"[a-z]+(ed|ing)|known|heard|kept|shown|told|said|given|taken|visible")
"""Names that are only a participle or an adjective."""
NOUNS = {"granted"}
"""A value that is known by this word: what `requires` was granted."""
SPELT = {*RINGS, *(ring.rpartition(".")[2] for ring in UNPROMISED)}


def _home(name: str) -> str:
    return next(names[name] for names in RINGS.values() if name in names)


def _used() -> Iterator[str]:
    """Words of imports of plugins and examples, of pages that people wrote, and of hooks."""
    for root in ("plugins", "contrib", "docs"):
        for path in (ROOT / root).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "") in RINGS:
                    yield from (each.name for each in node.names)
                elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in SPELT:
                    yield node.attr
    for path in (ROOT / "docs").rglob("*.md"):
        if path.name not in WRITTEN_FROM_THE_CODE:
            code = re.findall(r"```.*?```|`[^`]+`", path.read_text(), re.DOTALL)
            yield from re.findall(r"\w+", " ".join(code))
    for _, hook, _ in hooks():
        yield from re.findall(r"\w+", signature(hook))


def _says(name: str) -> set[str]:
    """The words of a public name's signatures, fields and bases."""
    found = set()
    for node in definitions(name, _home(name)):
        for part in ast.walk(node):
            match part:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found |= set(re.findall(r"\w+", signature(part)))
                case ast.AnnAssign(annotation=kind):
                    found |= set(re.findall(r"\w+", ast.unparse(kind)))
        if isinstance(node, ast.Assign):
            found |= set(re.findall(r"\w+", ast.unparse(node.value)))
    return found


def test_the_middle_ring_is_small() -> None:
    assert len(RINGS["pegboard"]) <= MIDDLE


def test_a_name_stands_in_one_ring() -> None:
    places: dict[str, list[str]] = {}
    for ring, names in RINGS.items():
        for name in names:
            places.setdefault(name, []).append(ring)

    assert {name: rings for name, rings in places.items() if len(rings) > 1} == {}


def test_each_public_name_is_used_or_part_of_one_that_is() -> None:
    public = {name for names in RINGS.values() for name in names}
    reached: set[str] = set()
    found = public & set(_used())
    while found:
        reached |= found
        found = (set().union(*(_says(name) for name in found)) & public) - reached

    exempt = {name for ring in FOR_OTHERS for name in RINGS[ring]}
    assert public - reached - exempt == set()


@pytest.mark.parametrize("ring", RINGS)
def test_a_ring_gives_each_of_its_names_as_its_home_does(ring: str) -> None:
    module = importlib.import_module(ring)

    for name, home in RINGS[ring].items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


@pytest.mark.parametrize("ring", RINGS)
def test_a_ring_lists_its_names_and_has_no_others(ring: str) -> None:
    module = importlib.import_module(ring)

    assert set(RINGS[ring]) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"'{ring}' has no attribute 'nothing_of_this_name'"):
        _ = module.nothing_of_this_name


@pytest.mark.parametrize("ring", RINGS)
def test_no_name_of_a_ring_is_hidden_by_a_module_beside_it(ring: str) -> None:
    file = Path(importlib.import_module(ring).__file__)
    modules = {path.stem for path in file.parent.glob("*.py") if file.stem == "__init__"}

    assert modules & set(RINGS[ring]) == set()


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("from pegboard import hookimpl", "pegboard.app.application"),
        ("from pegboard.plugins import nearest_names", "pegboard.kit.hosts"),
        ("from pegboard.files import diff_texts", "pegboard.files.walk"),
        ("from pegboard.app import UserFolders", "pegboard.engine"),
        ("from pegboard.cli import Exit", "pegboard.schema"),
        ("from pegboard.display import escape_controls", "pegboard.contract"),
    ],
)
def test_to_import_one_name_loads_no_other(statement: str, absent: str) -> None:
    code = f"import sys; {statement}; sys.exit({absent!r} in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_public_function_is_not_named_by_a_bare_participle() -> None:
    """A block of `with` may be: `with clock.running(3)`."""
    lines = STORED.read_text().splitlines()
    functions = [re.match(r" *(?:@classmethod )?(?:async )?def (\w+)", line) for line in lines]
    blocks = re.compile(r"-> (Abstract(Async)?ContextManager|AsyncIterator\[asyncio.Timeout)")

    named = {
        found[1]
        for line, found in zip(lines, functions, strict=True)
        if found and PARTICIPLE.fullmatch(found[1]) and not blocks.search(line)
    }

    assert named - NOUNS == set()
