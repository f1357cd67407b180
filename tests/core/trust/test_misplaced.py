"""What stands in a folder that is not looked at is told, with the folder that is."""

from pathlib import Path

import pytest

from pegboard import App
from pegboard.trust.projectcode import misplaced
from played import Played, opened

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
    assert all(right in line and str(tmp_path) in line for line in told)


async def test_an_app_warns_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".pegboard" / "plugin"
    folder.mkdir(parents=True)
    (folder / "house.py").write_text("")
    async with opened(tmp_path, Played()) as app:
        assert isinstance(app, App)
        assert any(str(folder) in line for line in app.loaded.warnings)
