"""What stands in a folder that is not looked at is told, with the folder that is."""

from pathlib import Path

import pytest

from pegboard import App
from pegboard_plugins.shared.frontend import settings_warnings
from pegboard_plugins.shared.frontend.projectfolder import misplaced, misplaced_below
from support.models.played import Played, opened

TOOL = "from pegboard import tool\n"


@pytest.mark.parametrize(
    ("file", "source", "right"),
    [
        ("tools/look.py", TOOL, "tool/ or .pegboard/tool/"),
        (".pegboard/plugin/house.py", "", ".pegboard/plugins/"),
        (".pegboard/plugin/house/__init__.py", "", ".pegboard/plugins/"),
        ("tools/build.py", "import os\n", ""),
        (".pegboard/plugins/house.py", TOOL, ""),
        (".pegboard/tools/look.py", TOOL, ""),
        ("tool/sub/look.py", TOOL, "files of {root}/tool itself"),
        (".pegboard/tool/sub/look.py", TOOL, "files of {root}/.pegboard/tool itself"),
        (".pegboard/tools/sub/look.py", TOOL, "files of {root}/.pegboard/tools itself"),
        (".pegboard/plugins/sub/house.py", TOOL, "which have an __init__.py"),
        ("tool/sub/build.py", "import os\n", ""),
        ("tool/sub/__init__.py", TOOL, ""),
        (".pegboard/plugins/sub/__init__.py", TOOL, ""),
        (".pegboard/tool/__pycache__/look.py", TOOL, ""),
    ],
)
def test_a_misspelt_folder_is_named_with_the_right_one(
    tmp_path: Path, file: str, source: str, right: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(source)

    told = list(misplaced(tmp_path, tmp_path))

    assert len(told) == bool(right)
    assert all(right.format(root=tmp_path) in line and str(tmp_path) in line for line in told)


def test_a_user_s_folders_are_looked_at_likewise(tmp_path: Path) -> None:
    for name in ("tool/sub/look.py", "plugins/sub/house.py", "plugin/house.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(TOOL)

    told = list(misplaced_below(tmp_path))

    assert [line.partition(" ")[0] for line in told] == [
        str(tmp_path / name) for name in ("plugin", "tool/sub", "plugins/sub")
    ]


async def test_an_app_warns_of_what_its_user_has_misplaced(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "tool" / "sub"
    folder.mkdir(parents=True)
    (folder / "look.py").write_text(TOOL)
    async with opened(tmp_path, Played()) as app:
        assert any(str(folder) in line for line in settings_warnings(app))


async def test_an_app_warns_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".pegboard" / "plugin"
    folder.mkdir(parents=True)
    (folder / "house.py").write_text("")
    async with opened(tmp_path, Played()) as app:
        assert isinstance(app, App)
        assert any(str(folder) in line for line in settings_warnings(app))
