"""The file in which a server tells of itself."""

import stat
from pathlib import Path

import pytest

from pegboard.client.runtime import running
from pegboard_plugins.server.notice import put_up

FACTS = {"url": "http://127.0.0.1:1", "pid": 1, "directory": "/one", "token": "t"}


def test_a_server_is_told_of_as_long_as_it_lives(tmp_path: Path) -> None:
    path = tmp_path / "state" / "server-1.json"

    with put_up(path, FACTS) as notice:
        assert [each.token for each in running(path.parent)] == ["t"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        notice.take_down()
        assert list(path.parent.iterdir()) == []


def test_a_server_leaves_the_file_of_the_one_after_it(tmp_path: Path) -> None:
    path = tmp_path / "server-1.json"

    with put_up(path, FACTS):
        after = put_up(path, {**FACTS, "token": "u"})
    with after:
        assert [each.token for each in running(tmp_path)] == ["u"]


@pytest.mark.parametrize("kind", ["link", "dead link", "file"])
def test_what_stands_in_the_place_is_replaced_and_not_followed(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "server-1.json", tmp_path / "other"
    if kind != "dead link":
        other.write_text("mine")
    if kind == "file":
        path.write_text("{}")
        path.chmod(0o666)
    else:
        path.symlink_to(other)

    with put_up(path, FACTS):
        assert not path.is_symlink()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not other.exists() or other.read_text() == "mine"


def test_what_a_killed_server_left_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "server-1.json").write_text("{}")
    with put_up(tmp_path / "server-2.json", FACTS), put_up(tmp_path / "server-3.json", FACTS):
        names = {each.name for each in tmp_path.iterdir()}

    assert names == {"server-2.json", "server-3.json"}
