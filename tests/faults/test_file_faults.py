"""What files do to the tools that read and write them: rows T7 to T14 of the fault table."""

import os
import resource
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from pegboard import ToolResult
from pegboard.errors import PegboardError, ToolError
from pegboard_plugins.apply_patch import apply_patch
from pegboard_plugins.edit import edit, multiedit, write
from pegboard_plugins.glob import glob
from pegboard_plugins.read import read
from support.tools.tool_context import Context, call

Change = Callable[[Context, str, str, str], Coroutine[Any, Any, object]]


def by_write(context: Context, name: str, old: str, new: str) -> Coroutine[Any, Any, object]:
    return call(write, context, filePath=name, content=new)


def by_edit(context: Context, name: str, old: str, new: str) -> Coroutine[Any, Any, object]:
    return call(edit, context, filePath=name, oldString=old, newString=new)


def by_multiedit(context: Context, name: str, old: str, new: str) -> Coroutine[Any, Any, object]:
    edits = [{"oldString": old, "newString": new}]
    return call(multiedit, context, filePath=name, edits=edits)


def by_patch(context: Context, name: str, old: str, new: str) -> Coroutine[Any, Any, object]:
    lines = ["*** Begin Patch", f"*** Update File: {name}", "@@", f"-{old}", f"+{new}"]
    return call(apply_patch, context, patchText="\n".join([*lines, "*** End Patch"]))


CHANGES = [by_write, by_edit, by_multiedit, by_patch]
EDITS = [by_edit, by_multiedit, by_patch]


@pytest.fixture
def small_disk():
    """No file of this process can grow beyond a megabyte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("change", CHANGES)
async def test_t7_a_full_disk_leaves_the_file_whole(context, small_disk, change: Change) -> None:
    with pytest.raises(ToolError, match=r"too large|cannot be"):
        await change(context, "a", "old", "x" * (2 << 20))

    assert (context.directory / "a").read_text() == "old\nkept\n"
    assert [path.name for path in tree(context)] == ["a"]
    context.files.check_fresh(context.directory / "a")


@pytest.mark.parametrize("path", ["/proc/version_new", "/sys/kernel/new", "a/below"])
@pytest.mark.parametrize("change", [by_write, by_edit])
async def test_t8_what_the_system_refuses_is_an_error_that_says_so(
    context, change: Change, path
) -> None:
    with pytest.raises(ToolError, match=r"cannot be written: .*(Errno|not a directory|denied)"):
        await change(context, path, "", "x")


@pytest.mark.parametrize("change", CHANGES)
async def test_t9_a_circle_of_links_is_an_error(context, change: Change) -> None:
    (context.directory / "one").symlink_to("two")
    (context.directory / "two").symlink_to("one")

    with pytest.raises(PegboardError):
        await change(context, "one", "old", "new")

    assert (context.directory / "one").is_symlink()


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(path.parent)
        listener.bind(path.name)


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, a_socket, Path.mkdir, lambda path: path.symlink_to("/dev/zero")],
    ids=["pipe", "socket", "folder", "device"],
)
@pytest.mark.parametrize("change", CHANGES)
async def test_t10_what_is_no_regular_file_is_not_written(
    context, change: Change, make, monkeypatch
) -> None:
    monkeypatch.chdir(context.directory)
    make(context.directory / "it")
    before = (context.directory / "it").lstat()
    context.files.note_read(context.directory / "it")

    with pytest.raises(ToolError):
        await change(context, "it", "old", "new")

    assert os.path.samestat((context.directory / "it").lstat(), before)


@pytest.mark.parametrize("change", EDITS)
async def test_t11_a_huge_file_is_not_edited(context, change: Change) -> None:
    path = context.directory / "huge"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    context.files.note_read(path)

    with pytest.raises(ToolError, match="larger than 50 MiB"):
        await change(context, "huge", "old", "new")

    assert path.stat().st_size == 10 << 30


async def test_t11_names_that_are_no_text_are_shown_and_found(context) -> None:
    names = ["two\nlines", os.fsdecode(b"caf\xe9"), "l" * 250]
    for name in names:
        (context.directory / name).write_text("x\n")

    found = (await call(glob, context, pattern="*")).output
    listed = (await call(read, context, filePath=".")).output

    for output in (found, listed):
        output.encode()
        assert "two\nlines" not in output
        assert "l" * 250 in output


@pytest.mark.parametrize("change", EDITS)
@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbffirst\r\nold\nlast\r\n",
        b"first\nold\r\nlast",
        b"\told\x0b\n\x00 nul \x00\n  last  ",
    ],
    ids=["mark and mixed ends", "no final newline", "odd bytes"],
)
async def test_t13_all_around_an_edit_stays_byte_for_byte(
    context, change: Change, content: bytes
) -> None:
    line = "\told\x0b" if b"\x0b" in content else "old"
    path = context.directory / "a"
    path.write_bytes(content)
    context.files.note_read(path)

    await change(context, "a", line, line.replace("old", "new"))

    assert path.read_bytes() == content.replace(b"old", b"new")


def rewritten(path: Path) -> None:
    path.write_text("somebody's\n")


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def made_a_link(path: Path) -> None:
    path.rename(path.with_name("b"))
    path.unlink(missing_ok=True)
    path.symlink_to("c")
    path.with_name("c").write_text("old\n")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("become", [rewritten, made_a_folder, made_a_link])
async def test_t14_a_file_that_is_not_as_it_was_read_is_not_written(
    context, change: Change, become: Callable[[Path], None]
) -> None:
    become(context.directory / "a")
    before = {path.name: path.is_file() and path.read_bytes() for path in tree(context)}

    with pytest.raises(ToolError):
        await change(context, "a", "old", "new")

    assert {path.name: path.is_file() and path.read_bytes() for path in tree(context)} == before


def tree(context: Context) -> list[Path]:
    return sorted(context.directory.iterdir())


@pytest.mark.parametrize("change", CHANGES)
async def test_t14_other_names_of_a_file_that_keep_the_old_content_are_told(
    context, change: Change
) -> None:
    other = context.directory / "other"
    other.hardlink_to(context.directory / "a")

    result = await change(context, "a", "old", "new")

    assert isinstance(result, ToolResult)
    assert "1 other names of the" in result.output
    assert other.read_text() == "old\nkept\n"


@pytest.mark.parametrize("change", CHANGES)
async def test_t14_mode_and_attributes_stay(context, change: Change) -> None:
    path = context.directory / "a"
    path.chmod(0o750)
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system keeps no attributes")

    await change(context, "a", "old", "new")

    assert path.stat().st_mode & 0o777 == 0o750
    assert os.getxattr(path, "user.note") == b"kept"
