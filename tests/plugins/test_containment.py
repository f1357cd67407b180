"""The tools for files do not leave the project unasked, by whatever way it is tried.

What cannot be told apart is not promised: a hard link in the project to a file outside is a file
of the project, so it is read; writing puts a new file in its place. A mount in the project, which
only the machine's owner can make, belongs to the project, too.
"""

import asyncio
import os
import shutil
import subprocess
import threading
from contextlib import suppress

import pytest

from pegboard.errors import PegboardError
from pegboard.files import is_resolved, open_resolved, remove_resolved
from pegboard.unstable import move_resolved
from pegboard_plugins.apply_patch import apply_patch
from pegboard_plugins.bash import bash
from pegboard_plugins.edit import edit, multiedit, write
from pegboard_plugins.glob import glob
from pegboard_plugins.grep import grep
from pegboard_plugins.list import list_files
from pegboard_plugins.read import read
from support.tools.tool_context import Context, call

SECRET = "the content outside"
ONLY_OUTSIDE = "only-outside"


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text(SECRET)
    (folder / ONLY_OUTSIDE).write_text(SECRET)
    return folder


@pytest.fixture
def context(tmp_path, outside):
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "mine").write_text("mine\n")
    (project / "link").symlink_to(outside)
    (project / "alias").symlink_to(outside / "file")
    (project / "chain").symlink_to("alias")
    (project / "loop").symlink_to("loop")
    return Context(project, denied=["external_directory"])


def tree(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def patch(section):
    return apply_patch, {"patchText": f"*** Begin Patch\n{section}\n*** End Patch"}


FILE_TOOLS = {
    "read": lambda path: (read, {"filePath": path}),
    "write": lambda path: (write, {"filePath": path, "content": "x"}),
    "edit": lambda path: (edit, {"filePath": path, "oldString": SECRET, "newString": "x"}),
    "multiedit": lambda path: (
        multiedit,
        {"filePath": path, "edits": [{"oldString": SECRET, "newString": "x"}]},
    ),
    "add": lambda path: patch(f"*** Add File: {path}\n+x"),
    "update": lambda path: patch(f"*** Update File: {path}\n@@\n-{SECRET}\n+x"),
    "move": lambda path: patch(
        f"*** Update File: {path}\n*** Move to: taken\n@@\n-{SECRET}\n+{SECRET}"
    ),
    "move to": lambda path: patch(f"*** Update File: mine\n*** Move to: {path}\n@@\n-mine\n+mine"),
    "delete": lambda path: patch(f"*** Delete File: {path}"),
}
FOLDER_TOOLS = {
    "read": lambda path: (read, {"filePath": path}),
    "glob": lambda path: (glob, {"pattern": "*", "path": path}),
    "grep": lambda path: (grep, {"pattern": "content", "path": path}),
    "list": lambda path: (list_files, {"path": path}),
    "bash": lambda path: (bash, {"command": "pwd", "workdir": path}),
}
ESCAPES = ["link/file", "../outside/file", "src/../../outside/file", "link/../outside/file"]
LINKS = ["alias", "chain", "loop"]
PAIRS = [
    *((tool, path) for tool in FILE_TOOLS for path in [*ESCAPES, *LINKS]),
    *((tool, "{outside}/file") for tool in FILE_TOOLS),
    *((tool, "{outside}/new") for tool in ("write", "add", "move to")),
    *((tool, "link/new/deep") for tool in ("write", "add", "move to")),
]
OF_ITSELF = {("delete", path) for path in LINKS}
"""A link that is deleted goes itself, and what it leads to stays."""


@pytest.mark.parametrize(("name", "path"), PAIRS)
async def test_a_way_out_is_asked_for(context, outside, name, path):
    before = tree(outside)
    context.files.note_read(context.directory / "mine")
    context.files.note_read(outside / "file")
    tool, args = FILE_TOOLS[name](path.format(outside=outside))

    if (name, path) in OF_ITSELF:
        assert SECRET not in (await call(tool, context, **args)).output
    else:
        with pytest.raises((PegboardError, OSError)):
            await call(tool, context, **args)

    assert tree(outside) == before


@pytest.mark.parametrize("path", ["link", "..", "src/../..", "link/..", "{outside}"])
@pytest.mark.parametrize("name", FOLDER_TOOLS)
async def test_a_search_outside_is_asked_for(context, outside, name, path):
    tool, args = FOLDER_TOOLS[name](path.format(outside=outside))

    with pytest.raises(PegboardError):
        await call(tool, context, **args)


@pytest.mark.parametrize("name", ["glob", "grep", "list"])
async def test_a_search_does_not_follow_links(context, name):
    tool, args = FOLDER_TOOLS[name](".")

    found = await call(tool, context, **args)

    assert SECRET not in found.output
    assert ONLY_OUTSIDE not in found.output


@pytest.mark.parametrize("name", ["write", "edit", "multiedit", "update", "move", "delete"])
async def test_a_change_of_a_hard_link_leaves_the_other_name_as_it_was(context, outside, name):
    os.link(outside / "file", context.directory / "hard")
    before = tree(outside)
    await call(read, context, filePath="hard")
    tool, args = FILE_TOOLS[name]("hard")

    await call(tool, context, **args)

    assert tree(outside) == before


@pytest.fixture
def mount(context, outside):
    """The folder outside, mounted in the project."""
    folder = context.directory / "mnt"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "--bind", str(outside), str(folder)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_mount_in_the_project_is_of_the_project(context, mount):
    found = await call(read, context, filePath=str(mount / "file"))

    assert SECRET in found.output
    assert context.asked("external_directory") == []


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


def fill(folder):
    """Put the file back that a tool has taken away, but not through a link."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with os.fdopen(os.open("file", flags, dir_fd=number), "w") as file:
                file.write("inside content\n")
        finally:
            os.close(number)


READ_FIRST = (read, {"filePath": "src/file"})
RACES = {
    "read": [READ_FIRST],
    "read folder": [(read, {"filePath": "src"})],
    "write": [READ_FIRST, (write, {"filePath": "src/file", "content": "written"})],
    "write new": [(write, {"filePath": "src/deep/new", "content": "written"})],
    "edit": [READ_FIRST, (edit, {"filePath": "src/file", "oldString": "in", "newString": "x"})],
    "add": [patch("*** Add File: src/deep/new\n+x")],
    "update": [READ_FIRST, patch("*** Update File: src/file\n@@\n-inside content\n+x")],
    "move": [
        READ_FIRST,
        patch("*** Update File: src/file\n*** Move to: src/other\n@@\n-inside content\n+x"),
        patch("*** Delete File: src/other"),
    ],
    "delete": [READ_FIRST, patch("*** Delete File: src/file")],
    "glob": [(glob, {"pattern": "**/*"}), (glob, {"pattern": "*", "path": "src"})],
    "grep": [(grep, {"pattern": "content"}), (grep, {"pattern": "content", "path": "src"})],
    "grep for names": [
        (grep, {"pattern": "content", "path": "src", "output_mode": mode})
        for mode in ("files_with_matches", "count")
    ],
    "list": [(list_files, {"path": "src"})],
}
SEARCHES = {"glob", "grep", "grep for names"}
ROUNDS = int(os.environ.get("PEGBOARD_RACES", "60"))
"""Each of a search starts a process, so that a quarter of them takes as long."""


@pytest.mark.parametrize("name", RACES)
async def test_a_link_put_in_after_the_check_leads_nowhere(context, outside, name):
    folder = context.directory / "src"
    before = tree(outside)
    outputs = []

    with Swapping(folder, outside):
        for _ in range(ROUNDS // 4 if name in SEARCHES else ROUNDS):
            await asyncio.to_thread(fill, folder)
            for tool, args in RACES[name]:
                try:
                    outputs.append((await call(tool, context, **args)).output)
                except (PegboardError, OSError) as error:
                    outputs.append(str(error))

    assert [output for output in outputs if SECRET in output or ONLY_OUTSIDE in output] == []
    assert tree(outside) == before


def test_a_path_with_a_link_is_not_used(tmp_path, outside):
    (tmp_path / "way").symlink_to(outside)
    (tmp_path / "mine").touch()

    for path in (tmp_path / "way" / "file", tmp_path / "way"):
        with pytest.raises(OSError, match=r"link|Too many levels"):
            os.close(open_resolved(path, os.O_RDONLY))
        assert not is_resolved(path)
    for change in (
        lambda: move_resolved(tmp_path / "mine", tmp_path / "way/new"),
        lambda: move_resolved(tmp_path / "way/file", tmp_path / "taken"),
        lambda: remove_resolved(tmp_path / "way/file"),
    ):
        with pytest.raises(OSError, match=r"link"):
            change()
    os.close(open_resolved(outside / "file", os.O_RDONLY))
    assert is_resolved(outside / "file")
    assert tree(outside)["file"] == SECRET
