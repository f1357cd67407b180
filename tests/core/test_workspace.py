import os
import subprocess
from pathlib import Path

import pytest

from pegboard.errors import InvalidInputError
from pegboard.workspace import Workspace, open_workspace
from pegboard_plugins.shared.frontend import branch


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


def test_a_submodule_keeps_its_place_in_the_outer_repository(
    repository: Path, tmp_path: Path
) -> None:
    outer = tmp_path.resolve() / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", str(repository), "inner")

    before = open_workspace(outer / "inner").project_id
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / ".git").write_text(f"gitdir: {outer}/.git/modules/inner")

    assert open_workspace(outer / "inner").project_id == before
    assert open_workspace(tmp_path / "elsewhere").project_id != before


@pytest.mark.parametrize("claim", ["file", "file to a worktree", "link", "commondir"])
def test_a_folder_that_only_says_to_belong_to_a_repository_is_a_project_of_its_own(
    repository: Path, tmp_path: Path, claim: str
) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "second"))
    evil = tmp_path.resolve() / "evil"
    evil.mkdir()
    match claim:
        case "file":
            (evil / ".git").write_text("gitdir: ../repository/.git\n")
        case "file to a worktree":
            (evil / ".git").write_text("gitdir: ../repository/.git/worktrees/second\n")
        case "link":
            (evil / ".git").symlink_to("../repository/.git")
        case "commondir":
            (evil / ".git").mkdir()
            (evil / ".git" / "HEAD").write_text("ref: refs/heads/trunk\n")
            (evil / ".git" / "commondir").write_text("../../repository/.git\n")

    workspace = open_workspace(evil)

    assert workspace.git_dir is not None
    assert workspace.project_id != open_workspace(repository).project_id


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_that_somebody_else_put_around_a_directory_does_not_count(
    repository: Path,
) -> None:
    inside = repository / "mine"
    inside.mkdir()
    theirs = repository / "theirs"
    theirs.mkdir()
    for path in (repository / ".git", theirs):
        os.chown(path, 12345, -1)

    assert open_workspace(inside).worktree == inside
    assert open_workspace(theirs).worktree == repository
    assert open_workspace(repository).worktree == repository


def test_a_repository_that_is_kept_elsewhere_is_one_project(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "root"
    root.mkdir()
    git(root, "init", "-q", "--separate-git-dir", str(tmp_path / "kept"))
    (root / "sub").mkdir()

    assert open_workspace(root).git_dir == tmp_path.resolve() / "kept"
    assert open_workspace(root / "sub").project_id == open_workspace(root).project_id


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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config", b"worktree = a\0b"),
        ("config", b"worktree = loop"),
        ("config", b"worktree = a" + b" " * 1_000_000 + b"b"),
        ("config", None),
        ("commondir", b"a\0b"),
        ("commondir", b"loop"),
        ("commondir", None),
    ],
)
def test_whatever_a_repository_of_a_stranger_says_it_can_be_opened(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    folder, kept = tmp_path.resolve() / "folder", tmp_path.resolve() / "kept"
    folder.mkdir()
    kept.mkdir()
    (folder / ".git").write_text("gitdir: ../kept\n")
    (kept / "HEAD").write_text("ref: refs/heads/trunk\n")
    (kept / "loop").symlink_to("loop")
    if content is None:
        os.mkfifo(kept / name)
    else:
        (kept / name).write_bytes(content)

    workspace = open_workspace(folder)

    assert (workspace.worktree, workspace.git_dirs) == (folder, (kept,))


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
