"""Files that several processes change: one at a time, whole, and private to the user."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.kit.privatefile import lock_file, replace_file, set_aside

ADDER = """
import sys
from pathlib import Path
from pegboard.kit.privatefile import lock_file, replace_file
path = Path(sys.argv[1])
for _ in range(20):
    with lock_file(path):
        replace_file(path, str(int(path.read_text()) + 1).encode())
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_no_change_of_another_process_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")
    command = [sys.executable, "-c", ADDER, str(path)]

    adders = [subprocess.Popen(command) for _ in range(3)]

    assert [each.wait(60) for each in adders] == [0, 0, 0]
    assert path.read_text() == "60"


def test_a_new_file_and_its_folder_are_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "keys"

    with lock_file(path):
        replace_file(path, b"a")

    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    assert mode_of(path.with_name("keys.lock")) == 0o600


def test_what_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.mkdir()

    with pytest.raises(OSError, match="directory"):
        replace_file(path, b"a")

    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_file_is_kept_beside(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("{")

    aside = set_aside(path)

    assert (aside.read_text(), path.exists()) == ("{", False)
    assert aside.name.startswith("keys.damaged-")


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys.lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="symbolic links"), lock_file(tmp_path / "keys"):
        raise AssertionError("the lock was taken")
