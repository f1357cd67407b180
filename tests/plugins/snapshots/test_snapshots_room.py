"""Snapshots leave room on the disk, and what they left half written goes."""

import logging
import os
import stat
from pathlib import Path

import pytest

from pegboard.snapshots import RestoreWay
from pegboard_plugins.snapshots import worktree
from pegboard_plugins.snapshots.objects import file_id, object_id
from support.tools.worktrees import OWNER, small_repository, taking, writing

ALL = 1 << 62


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return small_repository(tmp_path / "project")


async def test_snapshots_stop_first_when_the_disk_is_nearly_full(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with taking(project) as snapshots:
        await snapshots.track()
        with writing(snapshots):
            (project / "a.txt").write_text("by the session")
        with monkeypatch.context() as full, caplog.at_level(logging.WARNING):
            full.setattr(worktree, "RESERVE_BYTES", ALL)
            found = [await snapshots.track() for _ in range(5)]

        assert found == [None] * 5
        (line,) = [each.getMessage() for each in caplog.records]
        assert "so changes of files cannot be undone: make room" in line
        assert await snapshots.track() is not None
        assert snapshots.take(OWNER[0]) == (project / "a.txt",)


async def test_files_are_put_back_though_the_disk_is_nearly_full(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with taking(project) as snapshots:
        before = str(await snapshots.track())
        with writing(snapshots):
            (project / "a.txt").write_text("by the session")
        after = str(await snapshots.track())
        monkeypatch.setattr(worktree, "RESERVE_BYTES", ALL)
        way = RestoreWay(before=after, after=before)

        back = await snapshots.restore({project / "a.txt": way})

    assert back.changed == (project / "a.txt",)


async def test_what_a_kill_left_half_written_is_swept(project: Path) -> None:
    async with taking(project) as snapshots:
        await snapshots.track()
        (folder,) = (project.parent / "data").glob("*/objects")
        (folder / "ab").mkdir(exist_ok=True)
        old, young = folder / "ab/tmp_old", folder / "ab/tmp_young"
        for file in (old, young):
            file.write_bytes(b"half")
        os.utime(old, (0, 0))

        freed = await snapshots.collect(())

    assert (freed >= 4, old.exists(), young.exists()) == (True, False, True)


def test_of_a_file_that_grows_only_the_size_that_was_seen_is_read(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"seen, and more since")
    with file.open("rb") as content:
        assert file_id(content.fileno(), 4) == object_id("blob", b"seen")
        assert os.lseek(content.fileno(), 0, os.SEEK_CUR) == 4


async def test_owner_permissions_and_attributes_of_a_file_stay(project: Path) -> None:
    file = project / "a.txt"
    file.chmod(0o666)
    group = next((each for each in os.getgroups() if each != os.getegid()), None)
    if group is None and os.geteuid() == 0:
        group = 12345
    if group is not None:
        os.chown(file, -1, group)
    try:
        os.setxattr(file, "user.note", b"the user's")
    except (AttributeError, OSError):
        attributes = None
    else:
        attributes = b"the user's"
    async with taking(project) as snapshots:
        before = str(await snapshots.track())
        with writing(snapshots):
            file.write_text("by the session")
        after = str(await snapshots.track())
        await snapshots.restore({file: RestoreWay(before=after, after=before)})

    facts = file.stat()
    assert file.read_text() == "one\n"
    assert stat.S_IMODE(facts.st_mode) == 0o666
    assert group in (None, facts.st_gid)
    assert attributes is None or os.getxattr(file, "user.note") == attributes
