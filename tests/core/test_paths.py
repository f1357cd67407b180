"""The user's folders, and paths without links."""

import os
from pathlib import Path

import pytest

from pegboard.files import resolved_path
from pegboard.paths import UserFolders

NOBODY = 65534


@pytest.fixture
def without_rights():
    """A user who may not look at the processes of others."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    yield
    os.seteuid(own)


def test_where_a_link_may_not_be_read_the_path_ends(without_rights: None) -> None:
    """Also behind a link in a project, which so leads out of it."""
    link = f"/proc/{os.getpid()}/root/proc/1/cwd"
    if os.access("/proc/1/cwd", os.F_OK):
        pytest.skip("the first process is ours")

    assert resolved_path("/proc/1/cwd/a/b") == "/proc/1/cwd"
    assert resolved_path(f"{link}/a") == resolved_path(link) != f"{link}/a"


def test_links_that_lead_to_each_other_and_long_names_are_paths(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    long = f"/{'x' * 300}/{'y/' * 3000}z"

    assert Path(resolved_path(tmp_path / "a" / "c")).is_relative_to(tmp_path)
    assert resolved_path(long) == long


def test_what_no_file_can_be_called_is_taken_as_it_stands() -> None:
    assert resolved_path("/a\0b").startswith("/a")
    assert resolved_path("/\ud800") == "/\ud800"


def test_the_folders_are_those_of_the_environment_that_is_given() -> None:
    env = {"HOME": "/home/ada", "XDG_DATA_HOME": "/big", "XDG_STATE_HOME": "relative"}

    assert UserFolders.of(env | {"PEGBOARD_CACHE_DIR": "/fast"}) == UserFolders(
        config=Path("/home/ada/.config/pegboard"),
        data=Path("/big/pegboard"),
        state=Path("/home/ada/.local/state/pegboard"),
        cache=Path("/fast"),
    )
    assert UserFolders.of(env, data=Path("/chosen")).data == Path("/chosen")
