"""Names that are not UTF-8: a turn goes on after a command that makes one, and undo works."""

import os
from pathlib import Path

import pytest

from pegboard.schema.part import Completed
from pegboard_plugins.shared.frontend import reverted, session_diff, unreverted
from support.models.written import ask, calls_of, full_repository, patches, played, shell, state
from support.tools.worktrees import git

NAME = b"caf\xe9"

COMMANDS = {
    "made": "echo x > \\\"$(printf 'new\\\\351')\\\"",
    "changed": "for f in caf*; do echo more >> $f; done",
    "renamed": "for f in caf*; do mv $f plain; done",
    "removed": "rm caf* a.txt u.txt",
    "staged": "for f in caf*; do echo y > $f; git add $f; done",
    "in a folder": "mkdir \\\"$(printf 'd\\\\351')\\\"; for d in d*; do echo x > $d/x; done",
}


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
async def test_what_is_done_to_a_name_that_is_not_utf8_is_undone(
    tmp_path: Path, command: str, tracked: bool
) -> None:
    project = full_repository(tmp_path / "project")
    (project / os.fsdecode(NAME)).write_text("old\n")
    (project / "u.txt").write_text("the user's\n")
    if tracked:
        git(project, "add", os.fsdecode(NAME))
        git(project, "commit", "-qm", "named")
    before, staged = state(project), git(project, "ls-files", "-s")
    async with played(tmp_path, shell(command), shell("echo 2 > a.txt")) as (app, session):
        prompt = await ask(app, session)
        after = state(project)

        assert [type(call.state) for call in await calls_of(app, session)] == [Completed] * 2
        assert await session_diff(app, session)
        back = await reverted(app, session, prompt)

        assert (state(project), back.files.left) == (before, ())
        assert git(project, "ls-files", "-s") == staged
        await unreverted(app, session)
        assert state(project) == after


async def test_a_name_that_is_not_utf8_is_stored_with_its_bytes(tmp_path: Path) -> None:
    full_repository(tmp_path / "project")
    async with played(tmp_path, shell(COMMANDS["made"])) as (app, session):
        await ask(app, session)

        (patch,) = await patches(app, session)

    assert [Path(file).name for file in patch.files] == ["new\ufffdE9"]


async def test_what_is_left_of_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    project = full_repository(tmp_path / "project")
    file = project / os.fsdecode(NAME)
    file.write_text("old\n")
    async with played(tmp_path, shell(COMMANDS["changed"])) as (app, session):
        prompt = await ask(app, session)
        file.write_text("the user's\n")

        back = await reverted(app, session, prompt)

    assert [(each.path, each.reason) for each in back.files.left] == [(file, "changed")]
    assert "caf\ufffdE9: edited since" in back.warning
