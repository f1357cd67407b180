import subprocess
from pathlib import Path

import pytest

from pegboard.errors import InvalidInputError
from pegboard.workspace import Workspace, branch, open_workspace


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "trunk")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def test_a_folder_without_git_is_its_own_worktree(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)

    root = tmp_path.resolve()
    assert workspace == Workspace(
        directory=root, worktree=root, project_id=workspace.project_id, git_dir=None
    )
    assert len(workspace.project_id) == 40
    assert branch(workspace) is None


def test_a_folder_inside_a_repository_has_its_worktree(repository: Path) -> None:
    inside = repository / "a" / "b"
    inside.mkdir(parents=True)

    workspace = open_workspace(inside)

    assert workspace.directory == inside
    assert workspace.worktree == repository
    assert workspace.git_dir == repository / ".git"
    assert workspace.project_id == open_workspace(repository).project_id


def test_worktrees_of_a_repository_are_one_project(repository: Path, tmp_path: Path) -> None:
    second = tmp_path.resolve() / "second"
    git(repository, "worktree", "add", "-q", "-b", "side", str(second))

    workspace = open_workspace(second)

    assert workspace.worktree == second
    assert workspace.git_dir == repository / ".git" / "worktrees" / "second"
    assert workspace.project_id == open_workspace(repository).project_id
    assert branch(workspace) == "side"


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path.resolve() / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", str(repository), "inner")

    workspace = open_workspace(outer / "inner")

    assert workspace.worktree == outer / "inner"
    assert workspace.project_id != open_workspace(outer).project_id


def test_the_branch_is_read_from_head(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "topic/one")

    assert branch(open_workspace(repository)) == "topic/one"


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")

    assert branch(open_workspace(repository)) is None


@pytest.mark.parametrize("content", [None, b"", b"gitdir: nowhere", b"\xff\x00rubbish"])
def test_a_broken_git_entry_does_not_count(tmp_path: Path, content: bytes | None) -> None:
    entry = tmp_path / ".git"
    entry.mkdir() if content is None else entry.write_bytes(content)

    assert open_workspace(tmp_path).git_dir is None


def test_two_paths_to_one_folder_are_one_project(repository: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(repository)

    assert open_workspace(link) == open_workspace(repository)


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    for path in (file, tmp_path / "missing", Path("nul\0byte")):
        with pytest.raises(InvalidInputError, match="not a directory"):
            open_workspace(path)
