import os
import subprocess

import pytest

from pegboard.files.walk import walk_files


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


def test_a_folder_that_cannot_be_read_is_empty(tmp_path):
    missed: list[str] = []

    assert list(walk_files(tmp_path / "none", missed=missed.append)) == []
    assert missed == [f"{tmp_path}/none/"]


def test_a_folder_that_is_ignored_is_walked_when_it_is_asked_for(tree):
    (tree / ".git").mkdir()

    assert names(tree / "built") == ["x"]


def test_rules_for_searches_come_before_those_for_git(tree):
    (tree / ".git" / "info").mkdir(parents=True)
    (tree / ".git" / "info" / "exclude").write_text("d\n")
    (tree / ".ignore").write_text("!/built\na\n!.gitignore\n")
    (tree / ".rgignore").write_text(".gitignore\n.rgignore\n")

    assert names(tree) == [
        *(".env", ".ignore", "built/x", "keep.log", "sub/c.log"),
    ]


def test_what_the_user_excludes_everywhere_is_left_out(tree, tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    (home / "mine").write_text("d\n")
    (tree / ".git").mkdir()

    assert "sub/d" not in names(tree)
