"""Git's index goes back with the files, and what the user has staged is not lost."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pegboard_plugins.shared.frontend import reverted, unreverted
from support.models.written import ask, full_repository, played, shell, state
from support.tools.worktrees import IDENTITY, git


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return full_repository(tmp_path / "project")


def staged(project: Path) -> str:
    return git(project, "ls-files", "-s") + git(project, "status", "--porcelain")


COMMANDS = {
    "moved": "git mv a.txt moved.txt",
    "removed": "git rm -q src/b.txt",
    "added": "echo x > new.txt; git add new.txt",
    "changed": "echo x >> a.txt; chmod +x a.txt; git add -A",
    "file to folder": "git rm -q a.txt; mkdir a.txt; echo x > a.txt/inner; git add -A",
    "unstaged": "git reset -q",
    "forgotten": "git rm -q --cached mine.txt a.txt",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
async def test_what_was_staged_before_is_staged_again(
    tmp_path: Path, project: Path, command: str
) -> None:
    (project / "mine.txt").write_text("staged by the user\n")
    (project / "run.sh").write_text("staged by the user, too\n")
    git(project, "add", "mine.txt", "run.sh")
    before = staged(project)
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        after = staged(project)
    async with played(tmp_path) as (app, _):
        back = await reverted(app, session, prompt)

        assert (back.files.left, staged(project)) == ((), before)
        assert before != after
        forth = await unreverted(app, session)
        assert (forth.files.left, staged(project)) == ((), after)


@pytest.mark.parametrize("before_it", ["", "sha1"])
async def test_a_repository_with_sha256_is_undone_with_its_index(
    tmp_path: Path, before_it: str
) -> None:
    """Also where snapshots of the folder were taken when it had another hash."""
    project = full_repository(tmp_path / "project")
    if before_it:
        async with played(tmp_path, shell("echo x > own.txt")) as (app, session):
            await ask(app, session)
    shutil.rmtree(project / ".git")
    git(project, "init", "-q", "--object-format=sha256")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "start")
    (project / "a.txt").write_text("staged by the user\n")
    git(project, "add", "a.txt")
    before = staged(project)
    command = "echo x >> a.txt; git mv run.sh moved.sh; rm -r src; echo y > new.txt; git add -A"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        after = staged(project)
    async with played(tmp_path) as (app, _):
        back = await reverted(app, session, prompt)

        assert (back.files.left, staged(project)) == ((), before)
        assert (project / "a.txt").read_text() == "staged by the user\n"
        assert (project / "src" / "b.txt").read_text() == "two\n"
        forth = await unreverted(app, session)
        assert (forth.files.left, staged(project)) == ((), after)


async def test_what_somebody_staged_since_is_left_and_named(tmp_path: Path, project: Path) -> None:
    command = "echo x >> a.txt; echo y >> run.sh; git add -A"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        (project / "a.txt").write_text("mine\n")
        (project / "own.txt").write_text("mine\n")
        git(project, "add", "a.txt", "own.txt")

        back = await reverted(app, session, prompt)

    assert {(each.path.name, each.reason) for each in back.files.left} == {
        ("a.txt", "changed"),
        ("a.txt", "restaged"),
    }
    assert git(project, "status", "--porcelain") == "M  a.txt\nA  own.txt"


async def test_what_was_committed_is_not_staged_backwards(tmp_path: Path, project: Path) -> None:
    command = (
        "echo x >> a.txt; git add -A; git -c user.name=t -c user.email=t@l commit -qm x;"
        "echo y >> run.sh; git add -A"
    )
    async with played(tmp_path, shell(command)) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert [(each.path.name, each.reason) for each in back.files.left] == [("a.txt", "committed")]
    assert git(project, "status", "--porcelain") == "M a.txt"


async def test_an_index_that_git_uses_is_left_and_named(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, shell("echo x >> a.txt; git add -A")) as (app, session):
        prompt = await ask(app, session)
        (project / ".git/index.lock").touch()

        back = await reverted(app, session, prompt)

    assert [(each.path.name, each.reason) for each in back.files.left] == [("a.txt", "locked")]
    assert "git restore --staged a.txt" in back.warning
    (project / ".git/index.lock").unlink()
    assert git(project, "status", "--porcelain") == "MM a.txt"


async def test_what_the_repository_has_no_more_is_not_put_into_its_index(
    tmp_path: Path, project: Path
) -> None:
    (project / "a.txt").write_text("staged by the user\n")
    git(project, "add", "a.txt")
    async with played(tmp_path, shell("echo x > a.txt; git add -A")) as (app, session):
        prompt = await ask(app, session)
        git(project, "prune", "--expire=now")

        back = await reverted(app, session, prompt)

    assert [(each.path.name, each.reason) for each in back.files.left] == [("a.txt", "unstaged")]
    assert (project / "a.txt").read_text() == "staged by the user\n"
    git(project, "fsck", "--strict")


async def test_a_linked_worktree_has_an_index_of_its_own(tmp_path: Path) -> None:
    full_repository(tmp_path / "main")
    git(tmp_path / "main", "worktree", "add", "-q", str(tmp_path / "project"), "-b", "other")
    project = tmp_path / "project"
    before = (staged(tmp_path / "main"), staged(project))
    async with played(tmp_path, shell("git mv a.txt moved.txt")) as (app, session):
        prompt = await ask(app, session)
        assert staged(project) != before[1]

        await reverted(app, session, prompt)

    assert (staged(tmp_path / "main"), staged(project)) == before


async def test_a_user_who_stages_between_turns_is_not_undone(tmp_path: Path, project: Path) -> None:
    answers = (shell("echo x >> a.txt; git add -A"), shell("true"))
    async with played(tmp_path, *answers) as (app, session):
        prompt = await ask(app, session)
        (project / "own.txt").write_text("mine\n")
        git(project, "add", "own.txt")
        await ask(app, session, "again")

        back = await reverted(app, session, prompt)

    assert back.files.left == ()
    assert git(project, "status", "--porcelain") == "A  own.txt"


def in_conflict(project: Path) -> None:
    """A merge that the user has begun, with a conflict of each kind."""
    for branch, content in (("theirs", "theirs\n"), ("ours", "ours\n")):
        git(project, "checkout", "-qb", branch, "HEAD~0" if branch == "theirs" else "theirs~1")
        (project / "a.txt").write_text(content)
        (project / "both.txt").write_text(content)
        (project / "src/b.txt").write_text(content)
        if branch == "ours":
            git(project, "rm", "-qf", "src/b.txt")
        git(project, "add", "-A")
        git(project, "commit", "-qm", branch)
    done = subprocess.run(
        ["git", *IDENTITY, "merge", "-q", "theirs"], cwd=project, check=False, capture_output=True
    )
    assert done.returncode == 1


SOLUTIONS = {
    "solved": "printf mine > a.txt; git add a.txt",
    "removed": "git rm -q a.txt",
    "all solved": "git add -A",
    "one side": "git checkout -q --ours a.txt both.txt; rm src/b.txt; git add -u",
    "given up": "git merge --abort",
}


@pytest.mark.parametrize("command", SOLUTIONS.values(), ids=SOLUTIONS.keys())
async def test_a_conflict_that_was_solved_is_one_again(
    tmp_path: Path, project: Path, command: str
) -> None:
    in_conflict(project)
    before, files = git(project, "ls-files", "-s"), state(project)
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        after = git(project, "ls-files", "-s")

        back = await reverted(app, session, prompt)

        assert (back.files.left, git(project, "ls-files", "-s")) == ((), before)
        assert state(project) == files
        assert before != after
        forth = await unreverted(app, session)
        assert (forth.files.left, git(project, "ls-files", "-s")) == ((), after)


async def test_a_conflict_that_was_solved_and_committed_is_left_and_named(
    tmp_path: Path, project: Path
) -> None:
    in_conflict(project)
    async with played(tmp_path, shell(SOLUTIONS["all solved"])) as (app, session):
        prompt = await ask(app, session)
        git(project, "commit", "-qm", "merged")
        after = git(project, "ls-files", "-s")

        back = await reverted(app, session, prompt)

    assert {each.path.name: each.reason for each in back.files.left} == dict.fromkeys(
        ("a.txt", "both.txt", "b.txt"), "committed"
    )
    assert git(project, "ls-files", "-s") == after


async def test_a_name_that_looks_like_a_stage_is_staged_as_it_is(
    tmp_path: Path, project: Path
) -> None:
    (project / ":2:a.txt").write_text("one\n")
    git(project, "--literal-pathspecs", "add", ":2:a.txt")
    before = git(project, "ls-files", "-s")
    command = "echo two > :2:a.txt; git add -A"
    async with played(tmp_path, shell(command)) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert (back.files.left, git(project, "ls-files", "-s")) == ((), before)
