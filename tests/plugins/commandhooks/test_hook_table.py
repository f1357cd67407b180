"""The table of honoured events: the docs repeat it, and a test holds each of its cells."""

from pathlib import Path

from pegboard_plugins.commandhooks.honoured import ROWS, page

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent


def test_the_docs_repeat_the_table() -> None:
    text = (ROOT / "docs" / "reference" / "command-hooks.md").read_text()

    assert page() in text


def test_each_honoured_cell_has_a_test() -> None:
    tests = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    fields = [field for row in ROWS for field in row.fields]

    assert [each.name for each in fields if each.is_honoured and not each.test] == []
    assert [each.test for each in fields if each.test and f"def {each.test}(" not in tests] == []
