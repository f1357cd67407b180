"""The states of a worktree: exact and cheap."""

import json
import os
import stat
import time
from base64 import b64encode
from pathlib import Path

import pytest

from pegboard.snapshots import Left, RestoreWay
from pegboard.unstable import temporary_beside
from pegboard.workspace import open_workspace
from pegboard_plugins.snapshots.objects import Objects
from pegboard_plugins.snapshots.worktree import GitSnapshots
from support.tools.worktrees import (
    counted_git,
    git,
    lines,
    small_repository,
    taking,
    tree_by_git,
    writing,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return small_repository(tmp_path / "project")


@pytest.fixture
def counted(tmp_path: Path) -> tuple[dict[str, str], Path]:
    return counted_git(tmp_path)


async def test_a_tree_is_the_one_that_git_would_make(project: Path) -> None:
    async with taking(project) as snapshots:
        first = await snapshots.track()
        assert first == git(project, "rev-parse", "HEAD^{tree}")

        with writing(snapshots):
            (project / "a.txt").unlink()
            (project / "new").mkdir()
            (project / "new/ünï code.txt").write_text("x")
            (project / "run.sh").chmod(0o644)
            (project / "link").unlink()
            (project / "link").symlink_to("run.sh")
            (project / "src.txt").write_text("sorts before src/")
        second = await snapshots.track()

    assert second == tree_by_git(project)


async def test_a_dirty_worktree_is_taken_as_it_is(project: Path) -> None:
    (project / "a.txt").write_text("changed\n")
    (project / "untracked.txt").write_text("x")
    async with taking(project) as snapshots:
        assert await snapshots.track() == tree_by_git(project)


async def test_the_user_s_repository_is_not_touched(project: Path) -> None:
    (project / "a.txt").write_text("changed\n")
    before = {path: path.stat().st_mtime_ns for path in (project / ".git").rglob("*")}

    async with taking(project) as snapshots:
        await snapshots.track()
        with writing(snapshots):
            (project / "b.txt").write_text("x")
        await snapshots.track()

    assert {path: path.stat().st_mtime_ns for path in (project / ".git").rglob("*")} == before


async def test_a_step_costs_one_process_at_most_and_none_without_a_write(
    project: Path, counted: tuple[dict[str, str], Path]
) -> None:
    env, log = counted
    async with taking(project, env) as snapshots:
        await snapshots.track()
        assert lines(log) == 1

        await snapshots.track()
        assert lines(log) == 0

        with writing(snapshots, project / "a.txt"):
            (project / "a.txt").write_text("told\n")
        await snapshots.track()
        assert lines(log) == 0

        with writing(snapshots, project / "new.txt"):
            (project / "new.txt").write_text("may be ignored\n")
        await snapshots.track()
        assert lines(log) == 1

        with writing(snapshots):
            (project / "other.txt").write_text("by a command\n")
        await snapshots.track()
        await snapshots.track()
        assert lines(log) == 1

        assert await snapshots.track() == tree_by_git(project)


async def test_a_file_that_is_told_and_ignored_is_left_out(project: Path) -> None:
    (project / ".gitignore").write_text("*.log\n")
    async with taking(project) as snapshots:
        before = await snapshots.track()
        with writing(snapshots, project / "x.log"):
            (project / "x.log").write_text("x")
        assert await snapshots.track() == before
        assert snapshots.unkept(snapshots.take("ses_1")) == {project / "x.log": "ignored"}


async def test_a_change_of_the_same_size_within_a_tick_is_seen(project: Path) -> None:
    async with taking(project) as snapshots:
        seen = set()
        for letter in "abcdefgh":
            with writing(snapshots):
                (project / "new.txt").write_text(letter)
            seen.add(await snapshots.track())
        assert len(seen) == 8


async def test_a_commit_or_a_checkout_between_is_taken_in(project: Path) -> None:
    async with taking(project) as snapshots:
        await snapshots.track()
        git(project, "checkout", "-qb", "other")
        (project / "a.txt").write_text("other\n")
        git(project, "commit", "-qam", "other")
        assert await snapshots.track(fresh=True) == git(project, "rev-parse", "other^{tree}")
        git(project, "checkout", "-q", "-")
        assert await snapshots.track(fresh=True) == git(project, "rev-parse", "HEAD^{tree}")
        assert snapshots.take("ses_1") == ()


@pytest.mark.parametrize("attributes", ["* text=auto", "*.txt eol=crlf", "*.txt filter=shout"])
async def test_files_that_attributes_convert_are_taken_byte_by_byte(
    tmp_path: Path, attributes: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    git(project, "config", "filter.shout.clean", "tr -d '\\r'")
    (project / ".gitattributes").write_text(f"{attributes}\n")
    content = b"one\r\ntwo\r\n"
    (project / "a.txt").write_bytes(content)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "start")
    async with taking(project) as snapshots:
        first = await snapshots.track()
        with writing(snapshots):
            (project / "a.txt").write_bytes(b"changed\r\n")
        second = await snapshots.track()
        (file,) = snapshots.take("ses_1")
        await snapshots.restore({file: RestoreWay(before=str(second), after=str(first))})

    assert (project / "a.txt").read_bytes() == content


async def test_large_new_files_are_left_out_and_known_ones_are_kept(project: Path) -> None:
    big = b"x" * (3 << 20)
    async with taking(project) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            (project / "big.bin").touch()
            os.truncate(project / "big.bin", (50 << 20) + 1)
        assert await snapshots.track() == before
        assert snapshots.unkept(snapshots.take("ses_1")) == {project / "big.bin": "large"}

        with writing(snapshots):
            (project / "a.txt").write_bytes(big)
        after = await snapshots.track()
        (file,) = snapshots.take("ses_1")
        back = await snapshots.restore({file: RestoreWay(before=str(after), after=str(before))})
        forth = await snapshots.restore({file: RestoreWay(before=str(before), after=str(after))})

    assert back.changed == forth.changed == (project / "a.txt",)
    assert (project / "a.txt").read_bytes() == big


async def test_home_folders_and_those_above_are_refused(tmp_path: Path) -> None:
    home = tmp_path / "home/u"
    home.mkdir(parents=True)
    for folder in (home, tmp_path / "home", Path("/")):
        snapshots = GitSnapshots(
            open_workspace(folder), folder=tmp_path / "data", env={"HOME": str(home)}
        )
        assert await snapshots.track() is None
        assert "home" in snapshots.refused
    assert not (tmp_path / "data").exists()


async def test_a_folder_with_too_much_and_no_git_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.snapshots.state.OTHERS_LIMIT_FILES", 3)
    project = tmp_path / "project"
    project.mkdir()
    for number in range(4):
        (project / str(number)).touch()
    async with taking(project) as snapshots:
        assert await snapshots.track() is None
        assert "no git repository" in snapshots.refused


async def test_without_git_installed_there_are_no_snapshots(project: Path) -> None:
    async with taking(project, {"PATH": "/nowhere"}) as snapshots:
        assert await snapshots.track() is None
        assert "git" in snapshots.refused


async def test_a_nested_repository_is_left_alone(project: Path) -> None:
    nested = project / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "own.txt").write_text("x")
    async with taking(project) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            (nested / "own.txt").write_text("y")
        assert await snapshots.track() == before


async def test_a_linked_worktree_has_its_own_state(project: Path) -> None:
    other = project.parent / "other"
    git(project, "worktree", "add", "-q", str(other))
    async with taking(other) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            (other / "a.txt").write_text("x")
        after = await snapshots.track()
        (file,) = snapshots.take("ses_1")
        assert file == other / "a.txt"
        await snapshots.restore({file: RestoreWay(before=str(after), after=str(before))})
    assert (other / "a.txt").read_text() == "one\n"


async def test_data_inside_the_project_is_not_taken(project: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    snapshots = GitSnapshots(open_workspace(project), folder=project / ".data/snapshot", env=env)
    before = await snapshots.track()
    assert await snapshots.track(fresh=True) == before == git(project, "rev-parse", "HEAD^{tree}")
    await snapshots.aclose()


async def test_a_file_is_never_written_through_a_symlink(project: Path) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("changed\n")
    async with taking(project) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            (project / "src/deep/b.txt").write_text("changed\n")
        after = await snapshots.track()
        (file,) = snapshots.take("ses_1")
        (project / "src/deep/b.txt").unlink()
        (project / "src/deep").rmdir()
        (project / "src/deep").symlink_to(outside)
        back = await snapshots.restore({file: RestoreWay(before=str(after), after=str(before))})

    assert back.left == (Left(path=file, reason="failed"),)
    assert (outside / "b.txt").read_text() == "changed\n"


async def test_permissions_of_a_file_stay(project: Path) -> None:
    (project / "a.txt").chmod(0o600)
    async with taking(project) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            (project / "a.txt").write_text("x")
        after = await snapshots.track()
        (file,) = snapshots.take("ses_1")
        await snapshots.restore({file: RestoreWay(before=str(after), after=str(before))})
    assert stat.S_IMODE((project / "a.txt").stat().st_mode) == 0o600


def age(project: Path) -> None:
    """Objects are kept for an hour in any case; they are older now."""
    for path in (project.parent / "data").glob("*/objects/??/*"):
        os.utime(path, (0, 0))


async def test_what_nobody_refers_to_is_collected_and_the_rest_is_kept(project: Path) -> None:
    async with taking(project) as snapshots:
        trees = [await snapshots.track()]
        for word in ("kept", "dropped", "last"):
            with writing(snapshots):
                (project / "a.txt").write_text(word)
            trees.append(await snapshots.track())
        before, kept, dropped, _ = (str(tree) for tree in trees)
        await snapshots.keep("ses_1", "msg_1", RestoreWay(before=before, after=kept))
        age(project)

        assert await snapshots.collect(()) > 0

        file = project / "a.txt"
        assert len(await snapshots.diff({file: RestoreWay(before=before, after=kept)})) == 1
        assert await snapshots.diff({file: RestoreWay(before=kept, after=dropped)}) == ()
        await snapshots.forget("ses_1")
        age(project)
        await snapshots.collect(())
    assert list((project.parent / "data").glob("*/objects/??/*")) == []


async def test_the_quota_drops_the_oldest_first(project: Path) -> None:
    async with taking(project) as snapshots:
        trees = [str(await snapshots.track())]
        for number in range(3):
            with writing(snapshots):
                (project / "a.txt").write_bytes(os.urandom(1 << 20))
            trees.append(str(await snapshots.track()))
            await snapshots.keep(
                "ses_1", f"m{number}", RestoreWay(before=trees[-1], after=trees[-1])
            )
        data = project.parent / "data"
        age(project)
        for number in range(3):
            for ref in data.glob(f"*/refs/pegboard/ses_1/m{number}-*"):
                os.utime(ref, (2e9 + number, 2e9 + number))
        snapshots._store.collect(quota_bytes=3 << 19)
        kept = sorted(path.name for path in data.glob("*/refs/pegboard/ses_1/*"))
    assert kept == ["m2-after", "m2-before"]


async def test_what_is_there_for_an_instant_is_left_out(project: Path) -> None:
    async with taking(project) as snapshots:
        before = await snapshots.track()
        temporary = temporary_beside(project / "a.txt")
        with writing(snapshots):
            temporary.write_text("half a file")
        during = await snapshots.track()
        with writing(snapshots, temporary):
            temporary.write_text("more of it")
        told = await snapshots.track()

    assert before == during == told


async def test_a_long_file_is_not_read_again_by_the_next_process(project: Path) -> None:
    (project / "big.bin").write_bytes(os.urandom(3 << 20))
    os.utime(project / "big.bin", (1, 1))
    time.sleep(0.05)  # noqa: ASYNC251 - younger files are read again: they may change unseen
    async with taking(project) as snapshots:
        first = await snapshots.track()
    known = next((project.parent / "data").rglob("large"))
    other = Objects(known.parent / "objects").put("blob", b"other")
    (entry,) = json.loads(known.read_bytes()).values()
    swapped = known.read_bytes().replace(entry["oid"].encode(), b64encode(other))
    known.write_bytes(swapped)

    async with taking(project) as snapshots:
        second = await snapshots.track()

    assert entry["facts"][2] == 3 << 20
    assert first != second
