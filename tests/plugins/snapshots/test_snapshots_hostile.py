"""A repository that wants its programs run by whoever looks at it."""

import os
import subprocess
from pathlib import Path

import pytest

from pegboard.snapshots import RestoreWay
from pegboard.workspace import open_workspace
from pegboard_plugins.snapshots.worktree import GitSnapshots

KEYS = (
    *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass"),
    *("core.alternateRefsCommand", "core.gitProxy", "diff.external", "sequence.editor"),
    *("gpg.program", "credential.helper", "uploadpack.packObjectsHook", "pager.ls-files"),
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
    *("diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "interactive.diffFilter"),
)
HOOKS = (
    *("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman", "pre-auto-gc"),
    *("reference-transaction", "post-rewrite", "prepare-commit-msg"),
)


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a marker beside itself, whatever it is called for."""
    program = tmp_path / "trap"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> {tmp_path}/marker\ncat\n')
    program.chmod(0o755)
    return program


def plant(folder: Path, trap: Path) -> None:
    for key in KEYS:
        git(folder, "config", key, str(trap))
    git(folder, "config", "filter.evil.required", "true")
    git(folder, "config", "core.attributesFile", str(folder / "attributes"))
    (folder / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
    git(folder, "config", "core.hooksPath", str(trap.parent / "hooks"))
    for place in (trap.parent / "hooks", folder / ".git/hooks"):
        place.mkdir(exist_ok=True)
        for hook in HOOKS:
            (place / hook).unlink(missing_ok=True)
            (place / hook).symlink_to(trap)


@pytest.fixture
def project(tmp_path: Path, trap: Path) -> Path:
    """A repository full of traps, with another and a bare one in it."""
    project = tmp_path / "project"
    nested = project / "nested"
    bare = project / "bare"
    for folder in (project, nested, bare):
        folder.mkdir()
        git(folder, "init", "-q", *(("--bare",) if folder == bare else ()))
    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("two\n")
    (project / ".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n")
    git(project, "add", "a.txt", ".gitattributes")
    git(project, "commit", "-qm", "start")
    plant(project, trap)
    plant(nested, trap)
    git(bare, "config", "core.fsmonitor", str(trap))
    return project


@pytest.fixture
def env(tmp_path: Path, project: Path, trap: Path) -> dict[str, str]:
    """The environment of a user whose settings are traps, too."""
    home = tmp_path / "home"
    (home / ".config/git").mkdir(parents=True)
    for name in (".gitconfig", ".config/git/config"):
        (home / name).write_text((project / ".git/config").read_text())
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_EXTERNAL_DIFF": str(trap),
        "GIT_PAGER": str(trap),
        "GIT_SSH_COMMAND": str(trap),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(trap),
    }


async def test_nothing_of_a_hostile_repository_is_run(
    tmp_path: Path, project: Path, env: dict[str, str]
) -> None:
    snapshots = GitSnapshots(open_workspace(project), folder=tmp_path / "data", env=env)
    first = await snapshots.track()
    with snapshots.writing(("ses_1",), tells=False):
        (project / "a.txt").write_text("changed\n")
        (project / "b.txt").unlink()
        (project / "new.txt").write_text("x\n")
        (project / "nested/n.txt").write_text("x\n")
    second = await snapshots.track()
    files = snapshots.take("ses_1")
    ways = {file: RestoreWay(before=str(first), after=str(second)) for file in files}
    diffs = await snapshots.diff(ways)
    back = {file: RestoreWay(before=way.after, after=way.before) for file, way in ways.items()}
    restored = await snapshots.restore(back)
    await snapshots.collect(())
    await snapshots.aclose()

    assert not (tmp_path / "marker").exists()
    assert [diff.file for diff in diffs] == ["b.txt", "a.txt", "new.txt"]
    assert restored.left == ()
    assert (project / "a.txt").read_text() == "one\n"
    assert (project / "b.txt").read_text() == "two\n"
    assert not (project / "new.txt").exists()


def test_the_traps_do_work(tmp_path: Path, trap: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    plant(project, trap)
    subprocess.run(["git", "status"], cwd=project, check=False, capture_output=True)
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("name", ["commondir", "config", "info/exclude", "info/attributes"])
async def test_no_pipe_in_the_place_of_what_git_reads_is_waited_for(
    tmp_path: Path, name: str
) -> None:
    project = tmp_path / "project"
    file = project / ".git" / name
    file.parent.mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/trunk\n")
    os.mkfifo(file)
    (project / "a.txt").write_text("a")

    snapshots = GitSnapshots(open_workspace(project), folder=tmp_path / "data", env=os.environ)

    assert await snapshots.track()
    await snapshots.aclose()
