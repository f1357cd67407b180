"""Files that plugins name: they are trusted with the project, and a change asks again."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pegboard import App, Workspace, hookimpl
from pegboard.unstable import TrustStore
from support.models.played import HI, Played, opened, text

PLUGIN = """
from pegboard import hookimpl

@hookimpl
async def trusted_files(workspace):
    return (workspace.worktree / "house.json",)
"""


class Named:
    """A plugin that names files inside and outside of the project."""

    @hookimpl
    async def trusted_files(self, workspace: Workspace) -> Sequence[Path]:
        outside = workspace.worktree.parent / "outside.json"
        return (workspace.worktree / "house.json", workspace.worktree / "none.json", outside)


def house(folder: Path) -> Path:
    return folder / "project" / "house.json"


def used(app: App, file: Path) -> bytes | None:
    """What a plugin may use of its file."""
    return None if file in app.untrusted else app.trust.files.get(file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    house(tmp_path).parent.mkdir()
    house(tmp_path).write_text("one")
    (tmp_path / "outside.json").write_text("outside")
    return tmp_path


@pytest.mark.fires("trusted_files")
async def test_a_named_file_counts_once_the_user_trusts_it(folder: Path) -> None:
    async with opened(folder, Played(text("done"), text("done")), Named()) as app:
        assert app.untrusted == (house(folder),)
        assert used(app, house(folder)) is None
        TrustStore(app.places.trust).allow(app.trust)
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert used(app, house(folder)) == b"one"

    async with opened(folder, Played(), Named()) as app:
        assert (app.trust.trusted_by_user, app.untrusted) == (True, ())
        assert used(app, house(folder)) == b"one"


async def test_a_changed_file_asks_again_and_the_code_that_was_trusted_goes_on(
    folder: Path,
) -> None:
    tool_file = folder / "project" / ".pegboard" / "tool" / "look.py"
    tool_file.parent.mkdir(parents=True)
    tool_file.write_text(
        "from pegboard import tool\n\n@tool\nasync def look() -> str:\n    '''Look.'''\n"
    )
    async with opened(folder, Played(), Named()) as app:
        TrustStore(app.places.trust).allow(app.trust)
    house(folder).write_text("two")

    async with opened(folder, Played(text("done")), Named()) as app:
        assert "look" in app.tools
        assert app.untrusted == (house(folder),)
        assert used(app, house(folder)) is None
        house(folder).write_text("one")
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert used(app, house(folder)) == b"one"


@pytest.mark.parametrize(("trust", "content"), [(True, b"one"), (False, None)])
async def test_the_answer_of_a_program_counts_for_named_files(
    folder: Path, trust: bool, content: bytes | None
) -> None:
    async with opened(folder, Played(), Named(), trust=trust) as app:
        assert used(app, house(folder)) == content


async def test_a_project_s_plugin_names_nothing(folder: Path) -> None:
    plugins = folder / "project" / ".pegboard" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "own.py").write_text(PLUGIN)

    async with opened(folder, Played(), trust=True) as app:
        assert house(folder) not in app.trust.files


def test_the_command_shows_and_trusts_them(folder: Path) -> None:
    places = {name: folder / name for name in ("config", "data", "state", "cache")}
    plugins = places["config"] / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "naming.py").write_text(PLUGIN)
    env = {**os.environ, **{f"PEGBOARD_{name.upper()}_DIR": str(places[name]) for name in places}}
    program = "from pegboard.cli.main import main; main()"
    command = [sys.executable, "-c", program, "trust", "allow", "--yes"]

    done = subprocess.run(
        command, cwd=folder / "project", env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "house.json" in done.stdout
    assert "1 + one" in done.stdout
    stored = json.loads((places["state"] / "trust.json").read_text())
    [project] = stored["projects"].values()
    assert list(project["files"]) == ["house.json"]
