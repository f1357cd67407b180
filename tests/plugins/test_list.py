import os

import pytest

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.schema.config import Config, PluginConfig
from pegboard_plugins.list import list_files, register_tools
from support.tools.tool_context import Context, call
from support.tools.with_ripgrep import KINDS, offer

pytestmark = pytest.mark.usefixtures("_with_and_without_ripgrep")


@pytest.fixture(params=KINDS)
def _with_and_without_ripgrep(request, tmp_path_factory, monkeypatch):
    offer(request.param, tmp_path_factory.mktemp("bin"), monkeypatch)


def make(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


async def test_a_folder_is_shown_as_a_tree_with_folders_first(tmp_path):
    make(tmp_path, "z/deep/b.py", "z/a.py", "a.txt", "m/x")

    result = await call(list_files, Context(tmp_path))

    assert result.output.splitlines() == [
        f"{tmp_path}/",
        "  m/",
        "    x",
        "  z/",
        "    deep/",
        "      b.py",
        "    a.py",
        "  a.txt",
    ]
    assert result.metadata == {"count": 4, "truncated": False}


async def test_what_programs_make_and_git_ignores_is_left_out(tmp_path):
    make(tmp_path, "node_modules/x/y.js", "src/dist/a", "build.py", "out/b", "keep.md", "k.log")
    (tmp_path / ".gitignore").write_text("out/\n")

    result = await call(list_files, Context(tmp_path), ignore=["*.log"])

    assert [line.strip() for line in result.output.splitlines()[1:]] == [
        ".gitignore",
        "build.py",
        "keep.md",
    ]


async def test_a_large_folder_is_cut_and_says_so(tmp_path):
    make(tmp_path, *(f"{number:03}" for number in range(150)))

    result = await call(list_files, Context(tmp_path))

    assert result.metadata == {"count": 100, "truncated": True}
    assert result.output.endswith("there are more: list a folder below)")


async def test_of_a_deep_folder_the_outer_files_are_shown(tmp_path):
    for folder in ("", "a", "a/b", "a/b/c"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for number in range(60):
            (tmp_path / folder / f"{number}").touch()

    result = await call(list_files, Context(tmp_path), path=".")

    lines = result.output.splitlines()
    assert all(f"  {number}" in lines for number in range(60))
    assert "    b/" not in lines


async def test_of_what_programs_make_nothing_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("pegboard_plugins.list.WALK_FILES", 3)
    (tmp_path / "node_modules").mkdir()
    for number in range(9):
        (tmp_path / "node_modules" / f"{number}").touch()
    (tmp_path / "z").touch()

    result = await call(list_files, Context(tmp_path), path=".")

    assert result.output == f"{tmp_path}/\n  z"


async def test_names_that_break_lines_stay_on_theirs(tmp_path):
    make(tmp_path, "a\nb")
    (tmp_path / os.fsdecode(b"\xff")).write_text("")

    result = await call(list_files, Context(tmp_path))

    assert sorted(result.output.splitlines()[1:]) == ["  \\xff", "  a\\nb"]


async def test_a_file_that_is_named_as_such_a_folder_is_shown(tmp_path):
    make(tmp_path, "a/build", "b/build/x")

    result = await call(list_files, Context(tmp_path))

    assert result.output.splitlines()[1:] == ["  a/", "    build"]


async def test_a_pattern_may_take_files_back(tmp_path):
    make(tmp_path, "a.log", "keep.log", "sub/b.log", "sub/c")

    result = await call(list_files, Context(tmp_path), ignore=["*.log", "!keep.log"])

    assert result.output.splitlines()[1:] == ["  sub/", "    c", "  keep.log"]


async def test_what_is_no_pattern_leaves_nothing_out(tmp_path):
    make(tmp_path, "a", "b/\u00e9")

    result = await call(list_files, Context(tmp_path), ignore=["[z-a]", "", "\\", "{a", "\u00e9"])

    assert result.output.splitlines()[1:] == ["  a"]


async def test_the_folder_is_asked_for(tmp_path):
    make(tmp_path, "a")
    context = Context(tmp_path, denied=["list"])

    with pytest.raises(PermissionDeniedError):
        await call(list_files, context)

    assert context.asked("list") == [str(tmp_path)]


async def test_a_file_is_no_folder(tmp_path):
    make(tmp_path, "a")

    with pytest.raises(ToolError, match="not a folder"):
        await call(list_files, Context(tmp_path), path="a")


async def test_the_tool_is_offered_where_the_configuration_names_it():
    assert await register_tools(Config()) == []
    assert await register_tools(Config(plugins={"list": PluginConfig()})) == [list_files]


async def test_of_very_many_files_no_more_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("pegboard_plugins.list.WALK_FILES", 50)
    make(tmp_path, *(f"{number}.log" for number in range(200)))

    result = await call(list_files, Context(tmp_path), ignore=["*.log"])

    assert result.metadata == {"count": 0, "truncated": True}
