"""The tools for files do not leave the project unasked, by whatever way it is tried."""

import asyncio
import os
import shutil
import threading

import pytest

from pegboard import open_resolved
from pegboard.errors import PegboardError
from pegboard_plugins.edit import edit
from pegboard_plugins.glob import glob
from pegboard_plugins.grep import grep
from pegboard_plugins.read import read
from pegboard_plugins.write import write
from tool_context import Context, call

SECRET = "the content outside"


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text(SECRET)
    return folder


@pytest.fixture
def context(tmp_path, outside):
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "link").symlink_to(outside)
    (project / "alias").symlink_to(outside / "file")
    (project / "loop").symlink_to("loop")
    return Context(project, denied=["external_directory"])


ESCAPES = [
    "link/file",
    "alias",
    "../outside/file",
    "src/../../outside/file",
    "link/../outside/file",
]


@pytest.mark.parametrize("path", [*ESCAPES, "loop"])
@pytest.mark.parametrize("tool", [read, write, edit], ids=lambda tool: tool.id)
async def test_a_way_out_is_asked_for(context, outside, tool, path):
    args = {
        "read": {},
        "write": {"content": "x"},
        "edit": {"oldString": SECRET, "newString": "x"},
    }

    with pytest.raises((PegboardError, OSError)):
        await call(tool, context, filePath=path, **args[tool.id])

    assert (outside / "file").read_text() == SECRET


@pytest.mark.parametrize("path", ["link", "..", "src/../..", "link/.."])
@pytest.mark.parametrize("tool", [glob, grep], ids=lambda tool: tool.id)
async def test_a_search_outside_is_asked_for(context, tool, path):
    with pytest.raises(PegboardError):
        await call(tool, context, pattern="*" if tool is glob else "content", path=path)


async def test_a_search_does_not_follow_links(context):
    found = await call(grep, context, pattern="content")
    named = await call(glob, context, pattern="**/file")

    assert SECRET not in found.output
    assert "outside" not in named.output


async def test_writing_to_a_hard_link_leaves_the_other_name_as_it_was(context, outside):
    os.link(outside / "file", context.directory / "hard")
    await call(read, context, filePath="hard")

    await call(write, context, filePath="hard", content="new")

    assert (outside / "file").read_text() == SECRET


async def test_a_grep_leaves_out_what_looks_like_a_secret(context):
    (context.directory / "server.pem").write_text("content of a key")
    (context.directory / "notes").write_text("content of notes")

    found = await call(grep, context, pattern="content")

    assert "content of notes" in found.output
    assert "content of a key" not in found.output


class Swapping:
    """A folder of the project that is a link out of it half of the time."""

    def __init__(self, folder, outside):
        self._folder = folder
        self._real = folder.with_name("real")
        self._outside = outside
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._swap)

    def _swap(self):
        while not self._stop.is_set():
            try:
                self._folder.rename(self._real)
                self._folder.symlink_to(self._outside)
                self._folder.unlink()
                self._real.rename(self._folder)
            except OSError:  # the tool has made the folder that was missing
                self._mend()

    def _mend(self):
        if self._folder.is_symlink():
            self._folder.unlink()
        self._folder.mkdir(exist_ok=True)
        shutil.rmtree(self._real, ignore_errors=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("tool", [read, write], ids=lambda tool: tool.id)
async def test_a_link_put_in_after_the_check_leads_nowhere(context, outside, tool):
    folder = context.directory / "src"
    (folder / "file").write_text("inside")
    args = {"content": "written"} if tool is write else {}
    outputs = []

    with Swapping(folder, outside):
        for _ in range(300):
            try:
                outputs.append((await call(tool, context, filePath="src/file", **args)).output)
            except (PegboardError, OSError):
                await asyncio.sleep(0)

    assert not any(SECRET in output for output in outputs)
    assert (outside / "file").read_text() == SECRET


def test_a_path_with_a_link_is_not_opened(tmp_path, outside):
    (tmp_path / "way").symlink_to(outside)

    for path in (tmp_path / "way" / "file", tmp_path / "way"):
        with pytest.raises(OSError, match=r"link|Too many levels"):
            os.close(open_resolved(path, os.O_RDONLY))
    os.close(open_resolved(outside / "file", os.O_RDONLY))
