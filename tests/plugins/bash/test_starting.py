"""The shell that runs a line: found once, and none that has become the project's meanwhile."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard_plugins.bash.starting import is_read_as_bash, shell_argv
from support.tools.looks import counted_looks


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a bash of its own; the user has one in front of the system's."""
    program(tmp_path / "project/bin/bash")
    program(tmp_path / "own/bash")
    monkeypatch.setenv("PATH", f"{tmp_path}/own:{os.defpath}")
    return tmp_path / "project"


def test_the_shell_is_searched_once(project: Path) -> None:
    def ask() -> None:
        is_read_as_bash(project)
        shell_argv(project)

    ask()
    looks = counted_looks(ask)

    assert (looks["stat"], looks["lstat"]) == (2, 0)


def linked(own: Path, project: Path) -> None:
    own.unlink()
    own.symlink_to(project / "bin/bash")


def folder_linked(own: Path, project: Path) -> None:
    own.unlink()
    own.parent.rmdir()
    own.parent.symlink_to(project / "bin")


def removed(own: Path, _: Path) -> None:
    own.unlink()


@pytest.mark.parametrize("change", [linked, folder_linked, removed])
def test_a_shell_that_has_changed_is_searched_again(
    project: Path, tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    own = tmp_path / "own/bash"
    assert shell_argv(project) == [str(own), "-p", "-c"]

    change(own, project)

    assert shell_argv(project)[0] in ("/bin/bash", "/usr/bin/bash")


def test_another_path_has_another_shell(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shell_argv(project)
    monkeypatch.setenv("PATH", os.defpath)

    assert shell_argv(project) != before


def test_the_question_for_the_version_brings_no_key(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    (tmp_path / "own/bash").write_text(
        "#!/bin/sh\n[ -z \"$OPENAI_API_KEY\" ] && echo 'GNU bash, version 5.2'\n"
    )

    assert is_read_as_bash(project)
