"""With ripgrep and without it, the list tool answers the same."""

import pytest

from pegboard_plugins.list import list_files
from support.tools.tool_context import Context, call
from support.tools.with_ripgrep import both, lay

DEEP = [f"{'d/' * depth}{number:02}" for depth in range(6) for number in range(30)]
WIDE = [f"{folder:03}/{name}" for folder in range(80) for name in ("b", "a", "z/x")]
FEW_OUTSIDE = ["top", *(f"a/b/c/d/e/{number}" for number in range(150))]


@pytest.mark.parametrize(
    "names", [DEEP, WIDE, FEW_OUTSIDE, ["z", "y/z", "x/y/z", "x-y", "x.y", "x/\u00e9", "x/zz"]]
)
@pytest.mark.parametrize("ignore", [[], ["*1*", "/y/"], ["*", "!*/", "!*3"]])
async def test_with_and_without_ripgrep_the_same_is_listed(tmp_path, monkeypatch, names, ignore):
    folder = tmp_path / "project"
    lay(folder, dict.fromkeys(names, b""))
    lay(folder, {".gitignore": b"*5\n", "env/x": b"", "d/.ignore": b"!*5\n", "dist": b""})
    (folder / "link").symlink_to("d")

    answers = [
        await call(list_files, Context(folder), ignore=ignore)
        for _ in both(tmp_path / "bin", monkeypatch)
    ]

    assert answers[0] == answers[1]
    assert "link" not in answers[0].output
