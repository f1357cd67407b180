"""The code and the prose of the pages use promised names only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.public_api import STORED
from docs.pages import EXAMPLES, GENERATED, PAGES, ROOT, blocks
from support.plugins.surface import PROMISED, RINGS, hooks

OWNERS = {f"pegboard_plugins.{module}" for module, _, _ in hooks() if "." not in module}
"""Plugins that declare hooks: their package gives the values of these, as promised as the hooks."""
PROGRAMS = {
    **{f"{block}": block.text for block in blocks("python")},
    **{str(each.relative_to(ROOT)): each.read_text() for each in sorted(EXAMPLES.rglob("*.py"))},
}
SAYS_SO = "`pegboard.unstable`"
"""What a page writes that is about names without a promise."""
UNPROMISED = {
    name
    for name in RINGS["pegboard.unstable"]
    if "_" in name.strip("_") or re.fullmatch(r"([A-Z][a-z]+){2,}", name)
} - {hook.name for _, hook, _ in hooks()}
"""Names without a promise that no sentence has by chance."""


def _promised() -> set[str]:
    found = {f"{ring}.{name}" for ring in PROMISED for name in RINGS[ring]}
    found |= {f"pegboard.errors.{name}" for name in RINGS["pegboard"] if name.endswith("Error")}
    module = ""
    for line in STORED.read_text().splitlines():
        if line.startswith("# "):
            module = line[2:]
        elif match := re.match(r"(?:class |(?:async )?def )?(\w+)", line):
            found.add(f"{module}.{match[1]}")
    return found


NAMES = _promised()
MODULES = {*PROMISED, "pegboard.schema", *(name.rpartition(".")[0] for name in NAMES)}


def _taken(code: str) -> Iterator[str]:
    """Yield the names that a program imports, or takes from a module of Pegboard."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{each.name}" for each in names)
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.Attribute(value=ast.Name() | ast.Attribute() as owner):
                if ast.unparse(owner) in MODULES:
                    yield ast.unparse(node)


def _unpromised(code: str) -> list[str]:
    return [
        name
        for name in _taken(code)
        if name.partition(".")[0] in ("pegboard", "pegboard_plugins")
        if name.rpartition(".")[0] not in OWNERS and name not in NAMES | MODULES
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_code_of_a_page_takes_promised_names_only(program: str) -> None:
    page = ROOT / program.rpartition(":")[0]
    if page.is_file() and SAYS_SO in page.read_text():
        return

    assert _unpromised(PROGRAMS[program]) == []


@pytest.mark.parametrize(
    "code",
    [
        "from pegboard.unstable import Bus",
        "import pegboard_plugins.bash",
        "from pegboard_plugins.shared.frontend import run_command",
        "from pegboard.kit.threads import shield",
        "from pegboard.files import walk",
        "from pegboard.schema.part import Tokens",
        "import pegboard\n\npegboard.http.key_advice",
    ],
)
def test_a_name_without_a_promise_is_noticed(code: str) -> None:
    assert len(_unpromised(code)) == 1


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in GENERATED | {"changelog.md"}],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_a_page_names_nothing_that_has_no_promise(page: Path) -> None:
    text = page.read_text()

    named = {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}

    assert SAYS_SO in text or named & UNPROMISED == set()
