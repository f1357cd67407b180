"""Which programs git would run by itself, as a repository's own files say."""

import os
import subprocess
from pathlib import Path

import pytest

from pegboard.workspace import open_workspace
from pegboard_plugins.shared.frontend import running_settings, settings_warnings
from support.models.played import Played, opened


@pytest.fixture
def project(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def set_to(project: Path, key: str, value: str) -> None:
    subprocess.run(["git", "config", key, value], cwd=project, check=True)


def found(project: Path) -> tuple[str, ...]:
    return running_settings(open_workspace(project).git_dirs)


@pytest.mark.parametrize(
    "key",
    [
        *("core.fsmonitor", "core.hookspath", "core.sshcommand", "core.pager", "diff.external"),
        *("filter.a b.clean", "filter.x.process", "diff.x.textconv", "merge.x.driver"),
        *("credential.helper", "credential.https://a.helper", "gpg.program", "gpg.ssh.program"),
        *("include.path", "includeIf.gitdir:~/.path", "difftool.x.cmd", "remote.origin.vcs"),
    ],
)
def test_a_program_in_a_setting_is_found(project: Path, key: str) -> None:
    set_to(project, key, "./run")

    assert [name.lower() for name in found(project)] == [key.lower()]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("core.fsmonitor", "true"), ("user.name", "me"), ("remote.origin.url", "x")),
        *(
            ("branch.main.merge", "refs/heads/main"),
            ("alias.st", "status"),
            ("diff.renames", "copy"),
        ),
    ],
)
def test_other_settings_are_not(project: Path, key: str, value: str) -> None:
    set_to(project, key, value)

    assert found(project) == ()


def test_aliases_and_hooks_that_run_programs_are_found(project: Path) -> None:
    set_to(project, "alias.st", "!./run")
    (project / ".git/hooks").mkdir(exist_ok=True)
    (project / ".git/hooks/pre-commit").touch()
    (project / ".git/hooks/pre-push.sample").touch()

    assert found(project) == ("alias.st", "hooks/pre-commit")


def test_a_pipe_in_the_place_of_the_settings_is_not_waited_for(project: Path) -> None:
    config = project / ".git" / "config"
    config.unlink()
    os.mkfifo(config)

    assert found(project) == ()


def test_a_folder_without_git_runs_nothing(tmp_path: Path) -> None:
    assert running_settings(open_workspace(tmp_path).git_dirs) == ()


@pytest.mark.parametrize("trust", [None, True])
async def test_a_front_end_warns_of_them_in_a_project_without_trust(
    tmp_path: Path, trust: bool | None
) -> None:
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", project], check=True)  # noqa: ASYNC221 - a test
    set_to(project, "core.fsmonitor", "./run")
    tool = project / ".pegboard" / "tool" / "look.py"
    tool.parent.mkdir(parents=True)
    tool.write_text("")

    async with opened(tmp_path, Played(), trust=trust) as app:
        found = [line for line in settings_warnings(app) if "core.fsmonitor" in line]

    assert len(found) == (trust is None)
