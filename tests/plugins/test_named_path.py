"""What a model writes for a path is understood alike by every tool."""

from pathlib import Path

import pytest

from pegboard.files import named_path
from pegboard_plugins.read import read
from support.tools.tool_context import Context, call


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("~", "home"),
        ("~/a.txt", "home/a.txt"),
        ("a.txt", "project/a.txt"),
        ("../a.txt", "project/../a.txt"),
        ("a~/b", "project/a~/b"),
        ("~other/a", "project/~other/a"),
    ],
)
def test_a_path_is_seen_from_the_home_folder_or_the_directory(
    tmp_path: Path, text: str, expected: str
) -> None:
    context = Context(tmp_path / "project")
    context.session.home = tmp_path / "home"

    assert named_path(context, text) == tmp_path / expected
    assert named_path(context, "/etc/hosts") == Path("/etc/hosts")


async def test_a_file_of_the_home_folder_can_be_read(tmp_path: Path) -> None:
    context = Context(tmp_path / "project")
    context.session.home = tmp_path
    (tmp_path / "h.txt").write_text("hello")

    result = await call(read, context, filePath="~/h.txt")

    assert "00001| hello" in result.output
