"""Programs that we run by ourselves are never those of the project that we stand in."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from pegboard.files.walk import ripgrep
from pegboard.processes import find_program
from pegboard.unstable import search_path
from pegboard.workspace import open_workspace
from pegboard_plugins.snapshots.git import ShadowGit
from support.plugins.own_programs import program
from support.tools.looks import counted_looks


@pytest.mark.parametrize(
    "path", ["bin:{}", ":{}", ".:./bin:{}:", "bin", "{here}/bin:{}", "{here}:{}:{here}/../project"]
)
def test_entries_of_the_path_that_lead_into_the_project_do_not_count(
    project: Path, path: str
) -> None:
    env = {"PATH": path.format(os.defpath, here=project)}

    assert search_path(env, root=project) == os.defpath
    assert find_program("git", env, "/nowhere", root=project) in ("/bin/git", "/usr/bin/git")


@pytest.mark.parametrize("way", ["folder", "link"])
def test_a_link_into_the_project_is_in_the_project(project: Path, tmp_path: Path, way: str) -> None:
    there = tmp_path / "there"
    if way == "folder":
        there.symlink_to(project / "bin")
    else:
        there.mkdir()
        (there / "git").symlink_to(project / "bin" / "git")
    env = {"PATH": f"{there}:{os.defpath}"}

    assert find_program("git", env, root=project) in ("/bin/git", "/usr/bin/git")


def test_entries_without_the_program_are_not_followed(project: Path, tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"none{number}").mkdir()
    many = ":".join(f"{tmp_path}/none{number}" for number in range(40))

    few_looks = counted_looks(lambda: find_program("git", {"PATH": os.defpath}, root=project))
    env = {"PATH": f"{many}:{os.defpath}"}
    many_looks = counted_looks(lambda: find_program("git", env, root=project))

    assert many_looks["stat"] == few_looks["stat"] + 40
    assert many_looks["lstat"] == few_looks["lstat"] > 0


@pytest.mark.parametrize("here", ["first", "second"])
def test_programs_of_another_worktree_of_the_repository_are_the_projects(
    tmp_path: Path, here: str
) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path / "project"))
    subprocess.run(("git", "init", "-q", str(tmp_path / "project")), check=True)
    subprocess.run((*git, "commit", "-qm", "a", "--allow-empty"), check=True)
    for name in ("first", "second"):
        subprocess.run((*git, "worktree", "add", "-q", str(tmp_path / name)), check=True)
    others = [tmp_path / name for name in ("project", "first", "second", "other")]
    for folder in others:
        program(folder / "bin" / "git")
    env = {"PATH": os.pathsep.join(f"{folder}/bin" for folder in others)}

    assert find_program("git", env, root=tmp_path / here) == f"{tmp_path}/other/bin/git"
    assert search_path(env, root=tmp_path / here) == f"{tmp_path}/other/bin"
    assert search_path(env, root=tmp_path / "project") == f"{tmp_path}/other/bin"
    assert search_path(env, root=tmp_path / "other").startswith(f"{tmp_path}/project/bin:")


def test_a_search_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    before = set(Path("/proc/self/fd").iterdir())

    find_program("git", os.environ, root=tmp_path)

    assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_project_that_is_the_whole_machine_has_its_programs() -> None:
    assert find_program("git", os.environ, root=Path("/")) is not None


@pytest.mark.parametrize("path", ["bin:.", "{here}/bin:{here}"])
async def test_neither_the_search_nor_the_snapshots_run_a_program_of_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("PATH", f"{path.format(here=project)}:{os.environ['PATH']}")
    git = ShadowGit(open_workspace(project), tmp_path / "shadow", os.environ)

    git.loop = asyncio.get_running_loop()
    git.prepare()
    found = await asyncio.to_thread(git.listing, whole=False)
    search = ripgrep(project, root=project)

    assert b"rg" in found.others
    assert search is None or not Path(search[0]).is_relative_to(project)
    assert not (project / "ran").exists()
