"""The database without an App: its plugin alone is loaded, as the user has it configured."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, sys
from pegboard.app import IdSource
from pegboard.app import open_storage

async def main():
    storage = await open_storage(*sys.argv[1:], ids=IdSource())
    print(*await storage.sessions(), storage.files[0])
    await storage.aclose()

asyncio.run(main())
ours = (name.split(".")[:2] for name in sys.modules if name.startswith("pegboard_plugins"))
plugins = {".".join(words) for words in ours}
print(*sorted(plugins))
"""
PROJECT_PLUGIN = """
from pegboard import hookimpl

@hookimpl
async def register_storage():
    open("ran", "w").close()
    return {}
"""


def run(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    kinds = ("DATA", "CONFIG", "STATE", "CACHE")
    places = {f"PEGBOARD_{kind}_DIR": str(folder / kind.lower()) for kind in kinds}
    (folder / "project").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=folder / "project",
        env={**os.environ, "HOME": str(folder), **places, **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("place", ["default", "variable", "argument"])
def test_the_database_of_an_app_is_opened_and_no_other_plugin_imported(
    tmp_path: Path, place: str
) -> None:
    named = str(tmp_path / "named.db")
    words = (f"sqlite://{named}",) if place == "argument" else ()
    env = {"PEGBOARD_DATABASE": named} if place == "variable" else {}

    done = run(tmp_path, *words, **env)

    expected = str(tmp_path / "data" / "pegboard.db") if place == "default" else named
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [expected, "pegboard_plugins pegboard_plugins.sqlite"]


def test_a_plugin_that_the_user_has_switched_off_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "pegboard.toml").write_text("plugins.sqlite.enabled = false\n")

    done = run(tmp_path)

    assert "switched off by plugins.sqlite.enabled" in done.stderr
    assert not (tmp_path / "data").exists()


def test_code_of_the_project_does_not_run(tmp_path: Path) -> None:
    plugins = tmp_path / "project" / ".pegboard" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "house.py").write_text(PROJECT_PLUGIN)

    done = run(tmp_path)

    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "project" / "ran").exists()
