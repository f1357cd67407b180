"""Where plugins come from: distributions on the path, and files run from their bytes."""

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import importlib_metadata
import pytest

from pegboard.loading import discovery
from pegboard.loading.discovery import (
    EntryPoint,
    PluginProblem,
    entry_points,
    load_entry_point,
    load_file,
    load_module,
)
from pegboard.loading.imports import Imports
from pegboard.trust.projectcode import (
    CodeFile,
    imports_pegboard,
    plugin_files,
    project_code,
    user_code,
    way_down,
)


def distribution(folder: Path, name: str, text: str, files: Sequence[str] = ()) -> None:
    metadata = folder / name
    metadata.mkdir(parents=True)
    (metadata / "entry_points.txt").write_text(text)
    for file in files:
        (metadata / file).write_text("Metadata-Version: 2.1\nName: any\nVersion: 3.4\n\nVersion: x")


def code(path: Path, source: bytes | str) -> CodeFile:
    content = source.encode() if isinstance(source, str) else source
    return CodeFile(path=path, kind="plugin", name=path.stem, content=content)


@pytest.mark.parametrize("group", ["pegboard", "console_scripts", "pytest11", "pegboard.commands"])
def test_the_scan_agrees_with_importlib_metadata(group: str) -> None:
    expected = {
        (point.name, point.value.partition("[")[0].strip(), point.dist.version)
        for point in importlib_metadata.entry_points(group=group)
        if point.dist is not None
    }

    found = entry_points(group)

    assert {(point.name, point.value, point.version) for point in found} == expected
    assert [point.name for point in found] == sorted(point.name for point in found)


def test_a_section_is_read_with_comments_and_extras(tmp_path: Path) -> None:
    text = (
        "[other]\nx = y\n[pegboard]\n# said = before\n\nb=pack.b:thing [extra]\n"
        " a = pack.a \n[pegboard.commands]\nc = pack.c\n"
    )
    distribution(tmp_path, "My_Pack-1.2.dist-info", text)

    assert entry_points("pegboard", [str(tmp_path)]) == (
        EntryPoint("a", "pack.a", "my-pack", "1.2"),
        EntryPoint("b", "pack.b:thing", "my-pack", "1.2"),
    )


def test_the_first_of_two_distributions_of_a_name_counts(tmp_path: Path) -> None:
    distribution(tmp_path / "one", "my_pack-2.dist-info", "[pegboard]\na = new\n")
    distribution(tmp_path / "two", "My.Pack-1.dist-info", "[pegboard]\na = old\nb = old\n")

    found = entry_points("pegboard", [str(tmp_path / "one"), str(tmp_path / "two")])

    assert found == (EntryPoint("a", "new", "my-pack", "2"),)


def test_an_egg_info_says_its_version_inside(tmp_path: Path) -> None:
    distribution(tmp_path, "pack.egg-info", "[pegboard]\na = pack\n", ["PKG-INFO"])
    distribution(tmp_path, "other-5.6-py3.11.egg-info", "[pegboard]\nb = other\n")

    versions = {point.name: point.version for point in entry_points("pegboard", [str(tmp_path)])}

    assert versions == {"a": "3.4", "b": "5.6"}


def test_a_zip_file_on_the_path_is_read_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "pack.zip", "w") as archive:
        archive.writestr("pack-1.0.dist-info/METADATA", "Name: pack\nVersion: 1.0\n")
        archive.writestr("pack-1.0.dist-info/entry_points.txt", "[pegboard]\na = pack\n")

    path = [str(tmp_path / "pack.zip"), str(tmp_path / "missing")]

    assert entry_points("pegboard", path) == (EntryPoint("a", "pack", "pack", "1.0"),)


def test_an_entry_point_may_name_an_attribute() -> None:
    assert load_entry_point(EntryPoint("x", "os.path:join", "d", "1")) is __import__("os").path.join


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("no_such_module_here", "install what it needs"),
        ("os:nothing_like_it", "AttributeError"),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_told(value: str, says: str) -> None:
    failure = load_entry_point(EntryPoint("x", value, "d", "1"))

    assert isinstance(failure, PluginProblem)
    assert failure.kind == "import"
    assert says in failure.text


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError('no\\nluck')",
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "import no_such_module_here",
        "def broken(:",
        "from pegboard import nothing_of_this_name",
        b"\xff\xfe not text",
        "x = 1\0",
    ],
)
def test_a_file_that_cannot_be_imported_is_told_on_one_line(tmp_path: Path, source: str) -> None:
    before = set(sys.modules)

    failure = load_file(code(tmp_path / "bad.py", source), Imports())

    assert isinstance(failure, PluginProblem)
    assert str(tmp_path / "bad.py") in failure.text
    assert "\n" not in failure.text
    assert "Traceback" in failure.detail
    assert {name for name in sys.modules if "bad" in name} <= before


def test_a_file_is_run_from_the_bytes_that_were_read(tmp_path: Path) -> None:
    path = tmp_path / "json.py"
    path.write_text("VALUE = 'on the disk'")

    imports = Imports()

    module = load_file(code(path, "import json\nVALUE = json.dumps('as read')"), imports)

    assert isinstance(module, ModuleType)
    assert module.VALUE == '"as read"'
    assert module.__file__ == str(path)
    assert not (tmp_path / "__pycache__").exists()
    imports.close()
    assert module.__name__ not in sys.modules


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    imports = Imports()
    files = [code(tmp_path / str(n) / "same.py", f"N = {n}") for n in range(2)]

    modules = [load_file(file, imports) for file in files]

    assert [module.N for module in modules if isinstance(module, ModuleType)] == [0, 1]
    imports.close()


def test_a_module_is_loaded_by_its_import_name() -> None:
    assert load_module("textwrap") is __import__("textwrap")
    assert isinstance(load_module("no_such_module_here"), PluginProblem)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"import pegboard", True),
        (b"def f():\n    from pegboard.schema import part", True),
        (b"import pegboard_other", False),
        (b"from . import pegboard", False),
        (b"'''import pegboard'''\n# from pegboard import tool", False),
        (b"from pegboard import tool\ndef broken(:", True),
        (b"print('pegboard'\n", False),
    ],
)
def test_only_an_import_statement_makes_a_tool_file(source: bytes, expected: bool) -> None:
    assert imports_pegboard(source) is expected


def test_the_way_down_is_from_the_worktree_to_the_directory() -> None:
    root, inner = Path("/a"), Path("/a/b/c")

    assert way_down(root, inner) == (root, Path("/a/b"), inner)
    assert way_down(root, root) == (root,)
    assert way_down(root, Path("/x")) == (Path("/x"),)


def test_code_is_found_where_it_belongs(tmp_path: Path) -> None:
    worktree, directory = tmp_path / "project", tmp_path / "project" / "app"
    files = {
        "project/.pegboard/tool/a.py": "",
        "project/.pegboard/plugins/b.py": "",
        "project/.pegboard/plugins/__init__.py": "",
        "project/.pegboard/plugins/.hidden.py": "",
        "project/.pegboard/plugins/deep/c.py": "",
        "project/.pegboard/tools/notes.txt": "",
        "project/tool/mine.py": "import pegboard",
        "project/tool/other.py": "import os",
        "project/app/tool/own.py": "import pegboard",
        "user/tools/memo.py": "",
        "user/plugins/shout.py": "",
    }
    for name, source in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)

    found = project_code(directory, worktree)

    assert [(file.kind, file.name) for file in found] == [
        ("tool", ".pegboard/tool/a.py"),
        ("plugin", "b"),
        ("tool", "tool/mine.py"),
        ("tool", "app/tool/own.py"),
    ]
    assert [file.name for file in user_code(tmp_path / "user")] == ["tools/memo.py", "shout"]
    assert [file.name for file in plugin_files(tmp_path / "user" / "plugins")] == ["shout"]
    assert user_code(tmp_path / "missing") == ()


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "gone.py").symlink_to(tmp_path / "nowhere.py")
    file = plugin_files(tmp_path / "missing.py")[0]

    failure = load_file(file, Imports())

    assert isinstance(failure, PluginProblem)
    assert "cannot be read: No such file" in failure.text
    assert user_code(tmp_path) == ()


HANGING = """
import signal, sys
from pegboard.loading import discovery
discovery.IMPORT_LIMIT_S = 0.2
sys.path.insert(0, sys.argv[1])
found = discovery.load_module("hanging_plugin")
print(found.text, signal.getsignal(signal.SIGALRM) is signal.SIG_DFL)
"""
CATCHING = """
while True:
    try:
        while True:
            pass
    except BaseException:
        if seen:
            raise
        seen = True
"""


@pytest.mark.parametrize(
    "code",
    ["import time\ntime.sleep(60)", "import threading\nthreading.Event().wait()", CATCHING],
    ids=["sleeps", "waits", "catches"],
)
def test_an_import_that_does_not_end_is_left_out(tmp_path: Path, code: str) -> None:
    (tmp_path / "hanging_plugin.py").write_text(f"seen = False\n{code}\n")

    done = subprocess.run(  # in a process of its own, since pytest has a timer, too
        [sys.executable, "-c", HANGING, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )

    assert "did not end within 0.2 s, at " in done.stdout
    assert "hanging_plugin.py" in done.stdout or "threading.py" in done.stdout
    assert "PEGBOARD_DISABLE_PLUGINS" in done.stdout
    assert done.stdout.endswith("True\n")


def test_an_import_may_raise_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rude_plugin.py").write_text("class Rude(BaseException): pass\nraise Rude('no')\n")
    monkeypatch.syspath_prepend(tmp_path)

    found = discovery.load_module("rude_plugin")

    assert isinstance(found, discovery.PluginProblem)
    assert found.text == "Rude: no"
