"""The measures of the code count what they say."""

from pathlib import Path

from measures import CORE, PARTICIPLES, PLUGINS, ROOT, Source, circles, classes, sources

TEXT = '''"""A module."""

# A comment.
import b


def used_once() -> int:
    """Do it."""
    import late

    return _helper() + late.number


def _helper() -> int:
    """What
    is counted as no code.
    """
    return 1
'''


def test_lines_helpers_and_late_imports_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    source = Source(file)

    assert (source.code_lines, source.single_helpers, source.lazy_imports) == (6, 1, 1)


def test_modules_that_import_each_other_are_a_circle(tmp_path: Path) -> None:
    for name, imports in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")):
        (tmp_path / f"{name}.py").write_text(f"import {imports}\n")
    files = [Source(path) for path in tmp_path.glob("*.py")]

    assert circles(files, tmp_path) == [{"a", "b", "c"}]


def test_no_modules_of_the_core_import_each_other_in_a_circle() -> None:
    assert circles(sources(CORE), CORE.parent) == []


def test_a_class_name_occurs_once() -> None:
    named = classes(sources(CORE, PLUGINS, ROOT / "contrib"))

    assert {name for name, count in named.items() if count > 1} == set()


def test_no_function_is_named_by_a_bare_participle() -> None:
    files = sources(CORE, PLUGINS, ROOT / "contrib")

    assert [n.name for each in files for n in each.functions if n.name in PARTICIPLES] == []
