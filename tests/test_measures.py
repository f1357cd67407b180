"""The measures of the code count what they say."""

from pathlib import Path

from measures import (
    CORE,
    PARTICIPLES,
    PLUGINS,
    ROOT,
    Source,
    circles,
    classes,
    same_bodies,
    sources,
)

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


def test_a_module_that_gives_names_and_a_submodule_in_one_import_is_imported(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "__init__.py").write_text("import a.b\n")
    (folder / "b.py").write_text("from a import c, number\n")
    (folder / "c.py").write_text("")
    files = [Source(path) for path in folder.glob("*.py")]

    assert circles(files, tmp_path) == [{"a", "a.b"}]


def test_no_modules_import_each_other_in_a_circle() -> None:
    roots = (CORE.parent, PLUGINS.parent, *(each.parent for each in ROOT.glob("contrib/*/*.toml")))

    assert [each for root in roots for each in circles(sources(root), root)] == []


def test_a_class_name_occurs_once() -> None:
    named = classes(sources(CORE, PLUGINS, ROOT / "contrib"))

    assert {name for name, count in named.items() if count > 1} == set()


def test_no_function_has_the_body_of_another() -> None:
    assert same_bodies(sources(CORE, PLUGINS, ROOT / "contrib"), least=3) == []


def test_no_function_is_named_by_a_bare_participle() -> None:
    files = sources(CORE, PLUGINS, ROOT / "contrib")

    assert [n.name for each in files for n in each.functions if n.name in PARTICIPLES] == []
