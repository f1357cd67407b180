"""Whose work a change is does not depend on the clock of the file system, nor on old times."""

import time
from pathlib import Path

import pytest

from pegboard_plugins.shared.frontend import reverted
from pegboard_plugins.snapshots.clock import FileClock, file_clock
from support.models.written import ask, full_repository, played, shell, state, until
from support.tools.worktrees import OWNER, git, small_repository, taking, writing

COMMANDS = {
    "a folder becomes a link to one that is older": "rm -r d; ln -s e d",
    "a folder becomes a link to one outside": "rm -r d; ln -s /usr d",
    "a link above the folder": "rm -r d; ln -s e d; rm -r src",
    "a folder is moved": "mv d moved",
    "a folder is moved into another": "mv d e/",
    "a folder is moved in the place of another": "rm -r d; mv e d",
    "times are set back": "rm d/b.txt; touch -d 2001-01-01 d; echo x > a.txt",
    "an archive brings old times": "mkdir n; echo x > n/x; touch -d 2001-01-01 n/x n",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
async def test_what_a_command_does_to_folders_is_undone(tmp_path: Path, command: str) -> None:
    project = full_repository(tmp_path / "project")
    for folder in ("d/deep", "e/deep"):
        (project / folder).mkdir(parents=True)
        (project / folder / "c.txt").write_text(f"{folder}\n")
        (project / folder).with_name("b.txt").write_text(f"{folder}\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "folders")
    (project / "d/b.txt").write_text("the user's edit\n")
    (project / "d/u.txt").write_text("the user's file\n")
    before = state(project)
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        assert state(project) != before

        back = await reverted(app, session, prompt)

    assert (state(project), back.files.left) == (before, ())


@pytest.mark.parametrize("ahead_s", [-3600, -0.5, 0.5, 3600])
async def test_a_call_is_undone_where_the_clocks_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    real_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() - int(ahead_s * 10**9))
    project = small_repository(tmp_path / "project")
    async with taking(project) as snapshots:
        await snapshots.track()
        with writing(snapshots):
            (project / "a.txt").write_text("the call's\n")
            (project / "run.sh").unlink()
        await snapshots.track()

        assert set(snapshots.take(OWNER[0])) == {project / "a.txt", project / "run.sh"}


async def test_a_clock_that_is_set_during_a_call_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_ns = time.time_ns
    project = small_repository(tmp_path / "project")
    async with taking(project) as snapshots:
        await snapshots.track()
        with writing(snapshots):
            (project / "a.txt").write_text("the call's\n")
            monkeypatch.setattr(time, "time_ns", lambda: real_ns() + 3600 * 10**9)
        await snapshots.track()

        assert snapshots.take(OWNER[0]) == (project / "a.txt",)


async def test_what_changed_before_a_call_is_not_its_work_where_the_clocks_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() - 3600 * 10**9)
    project = small_repository(tmp_path / "project")
    async with taking(project) as snapshots:
        await snapshots.track()
        (project / "a.txt").write_text("the user's\n")
        edited_ns = (project / "a.txt").stat().st_ctime_ns
        slack_ns = file_clock(project).slack_ns
        await until(lambda: real_ns() > edited_ns + 2 * slack_ns)
        with writing(snapshots):
            (project / "run.sh").write_text("the call's\n")
        await snapshots.track()

        assert snapshots.take(OWNER[0]) == (project / "run.sh",)


def test_the_clock_of_a_file_system_is_the_system_s_and_leaves_no_file(tmp_path: Path) -> None:
    assert file_clock(tmp_path).ahead_ns == 0
    assert tuple(tmp_path.iterdir()) == ()


def test_a_folder_in_which_no_file_can_be_made_has_the_system_s_clock(tmp_path: Path) -> None:
    assert file_clock(tmp_path / "none") == FileClock()
