"""The map of hooks: each row names hooks and helpers that there are, and no hook is missing."""

import re

import pytest

from docs.reference_pages import REFERENCE
from pegboard.testing import fixtures
from support.plugins.surface import RINGS, hooks

PAGE = REFERENCE / "map.md"
HEAD = "| I want to | hook or name | tested with |"
HOOKS = {hook.name for _, hook, _ in hooks()}
NAMES = {name for names in RINGS.values() for name in names}
HELPERS = RINGS["pegboard.testing"].keys() | vars(fixtures).keys()


def rows() -> list[list[str]]:
    lines = PAGE.read_text().splitlines()
    found = [line for line in lines if line.startswith("|") and line != HEAD]
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in found)
    return [each for each in cells if set(each[0]) != {"-"}]


@pytest.mark.parametrize(("_", "adds", "tests"), rows(), ids=lambda cell: cell[:40])
def test_a_row_names_what_there_is(_: str, adds: str, tests: str) -> None:
    linked = re.findall(r"\[`(\w+)`\]\(hooks\.md#(\w+)\)", adds)
    plain = re.findall(r"(?<!\[)`(\w+)`(?!\])", adds)
    helpers = re.findall(r"`(\w+)`", tests)

    assert linked or plain
    assert helpers
    assert {name for pair in linked for name in pair} <= HOOKS
    assert [name for name, anchor in linked if name != anchor] == []
    assert set(plain) <= NAMES
    assert set(helpers) <= HELPERS


def test_every_hook_has_a_row() -> None:
    linked = set(re.findall(r"hooks\.md#(\w+)\)", PAGE.read_text()))

    assert HOOKS - linked == set()
