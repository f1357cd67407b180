import os
import subprocess

import pytest

from pegboard.walk import walk_files


@pytest.fixture
def tree(tmp_path):
    for name in ("a", "b.log", "keep.log", "sub/c.log", "sub/d", "sub/e/f", "built/x", ".env"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / ".gitignore").write_text("*.log\n/built\n!keep.log\n")
    (tmp_path / "sub" / ".gitignore").write_text("!c.log\ne/\n")
    return tmp_path


def names(folder):
    return sorted(os.path.relpath(path, folder) for path in walk_files(folder))


def test_the_files_are_those_that_git_would_add(tree):
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=tree,
        check=True,
        capture_output=True,
        text=True,
    )

    assert names(tree) == sorted(listed.stdout.splitlines())


def test_a_subfolder_obeys_the_files_above_it_in_the_repository(tree):
    (tree / ".git").mkdir()
    (tree / "sub" / "g.log").touch()

    assert names(tree / "sub") == [".gitignore", "c.log", "d"]


def test_links_are_left_out(tree):
    (tree / "sub" / "loop").symlink_to(tree)

    assert "sub/loop" not in names(tree)
    assert not any(name.startswith("sub/loop/") for name in names(tree))


def test_a_folder_that_is_missing_is_empty(tmp_path):
    assert names(tmp_path / "none") == []
