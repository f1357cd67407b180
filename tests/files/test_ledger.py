import asyncio
import os

import pytest

from pegboard.errors import ToolError
from pegboard.unstable import LocalLedger


@pytest.fixture
def ledger():
    return LocalLedger()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "hull.txt"
    path.write_text("oak\n")
    return path


def test_a_file_that_was_not_read_is_not_fresh(ledger, file):
    with pytest.raises(ToolError, match="read it first"):
        ledger.view("a").check_fresh(file)


def test_what_one_session_read_another_has_not(ledger, file):
    ledger.view("a").note_read(file)

    ledger.view("a").check_fresh(file)
    with pytest.raises(ToolError, match="read it first"):
        ledger.view("b").check_fresh(file)


def test_a_changed_file_has_to_be_read_again(ledger, file):
    files = ledger.view("a")
    files.note_read(file)
    file.write_text("elm\n")

    with pytest.raises(ToolError, match="read it again"):
        files.check_fresh(file)


def test_a_touched_file_with_the_same_content_is_fresh(ledger, file):
    files = ledger.view("a")
    files.note_read(file)
    os.utime(file, (1, 1))

    files.check_fresh(file)


def test_a_deleted_file_is_not_fresh(ledger, file):
    files = ledger.view("a")
    files.note_read(file)
    file.unlink()

    with pytest.raises(ToolError, match="gone"):
        files.check_fresh(file)


def test_a_link_and_its_target_are_one_file(ledger, file, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file)
    files = ledger.view("a")
    files.note_read(link)

    files.check_fresh(file)


def test_a_forgotten_session_has_read_nothing(ledger, file):
    ledger.view("a").note_read(file)
    ledger.forget("a")

    with pytest.raises(ToolError, match="read it first"):
        ledger.view("a").check_fresh(file)


async def test_writers_of_one_file_take_turns_in_their_order(ledger, file, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file)
    steps = []

    async def write(name, path):
        async with ledger.view(name).lock(path):
            steps.append(f"{name} in")
            await asyncio.sleep(0.005)
            steps.append(f"{name} out")

    async with asyncio.TaskGroup() as group:
        for name, path in [("a", file), ("b", link), ("c", file)]:
            group.create_task(write(name, path))

    assert steps == ["a in", "a out", "b in", "b out", "c in", "c out"]


async def test_a_writer_that_fails_or_is_cancelled_leaves_the_file_free(ledger, file):
    async def fail():
        async with ledger.lock(file):
            raise ValueError("broken")

    async def hang():
        async with ledger.lock(file):
            await asyncio.sleep(60)

    hanging = asyncio.create_task(hang())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(fail())
    await asyncio.sleep(0)
    hanging.cancel()

    with pytest.raises(ValueError, match="broken"):
        await waiting
    async with asyncio.timeout(30), ledger.lock(file):
        pass


async def test_a_replaced_file_keeps_its_mode_and_counts_as_read(ledger, file):
    file.chmod(0o751)
    files = ledger.view("a")

    await files.replace(file, b"elm\n")

    assert file.read_bytes() == b"elm\n"
    assert file.stat().st_mode & 0o777 == 0o751
    files.check_fresh(file)
    assert [path.name for path in file.parent.iterdir()] == ["hull.txt"]


async def test_of_a_file_with_several_names_it_is_said_how_many_keep_the_old_content(ledger, file):
    other = file.with_name("other.txt")
    other.hardlink_to(file)
    before = other.read_bytes()

    assert await ledger.view("a").replace(file, b"elm\n") == 1
    assert await ledger.view("a").replace(file, b"oak\n") == 0
    assert other.read_bytes() == before


async def test_a_new_file_follows_the_umask_and_brings_its_folders(ledger, tmp_path):
    path = tmp_path / "a" / "b" / "new.txt"
    umask = os.umask(0o027)
    try:
        await ledger.view("a").replace(path, b"x")
    finally:
        os.umask(umask)

    assert path.stat().st_mode & 0o777 == 0o640


async def test_nothing_is_written_through_a_link(ledger, file, tmp_path):
    before = file.read_bytes()
    (tmp_path / "link").symlink_to("hull.txt")
    (tmp_path / "folder").symlink_to(tmp_path)

    for path in (tmp_path / "link", tmp_path / "folder" / "hull.txt"):
        with pytest.raises(OSError, match=r"regular file|link"):
            await ledger.view("a").replace(path, b"elm\n")

    assert file.read_bytes() == before


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "pipe"])
async def test_what_is_no_regular_file_is_not_replaced(ledger, tmp_path, make):
    make(tmp_path / "it")

    with pytest.raises(OSError, match="is"):
        await ledger.view("a").replace(tmp_path / "it", b"x")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is protected from root")
async def test_a_write_protected_file_is_not_replaced(ledger, file):
    file.chmod(0o444)

    with pytest.raises(PermissionError):
        await ledger.view("a").replace(file, b"x")


async def test_a_failed_write_leaves_the_old_file_whole(ledger, file, tmp_path):
    blocked = tmp_path / "hull.txt" / "below"

    with pytest.raises(OSError, match="Not a directory"):
        await ledger.view("a").replace(blocked, b"x")

    assert file.read_text() == "oak\n"
    assert [path.name for path in tmp_path.iterdir()] == ["hull.txt"]


async def test_a_cancelled_write_ends_before_the_lock_is_given_up(ledger, file):
    files = ledger.view("a")

    async def write():
        async with files.lock(file):
            await files.replace(file, b"x" * (8 << 20))

    task = asyncio.create_task(write())
    await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert file.stat().st_size in (4, 8 << 20)
    assert [path.name for path in file.parent.iterdir()] == ["hull.txt"]
