"""What a revert cannot put back is named, with the reason, and nothing else is lost by it."""

import asyncio
import os
from pathlib import Path

import pytest

from pegboard.schema.event import SessionWarned
from pegboard.snapshots import RestoreWay
from pegboard_plugins.shared.frontend import Reverted, reverted, unreverted
from pegboard_plugins.snapshots.objects import object_id
from support.models.played import heard, text
from support.models.written import ask, full_repository, played, shell, state, written
from support.tools.worktrees import git, taking, writing

LARGE = (50 << 20) + 1


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return full_repository(tmp_path / "project")


def left(back: Reverted) -> dict[str, str]:
    return {each.path.name: each.reason for each in back.files.left}


def sparse(file: Path, size: int) -> None:
    file.touch()
    os.truncate(file, size)


def binaries(project: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in project.glob("*.bin")}


def inner_repository(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "inner.txt").write_text("one\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")


def with_submodule(project: Path) -> None:
    inner_repository(project.parent / "library")
    allowed = ("-c", "protocol.file.allow=always")
    git(project, *allowed, "submodule", "--quiet", "add", str(project.parent / "library"), "lib")
    git(project, "commit", "-qm", "with a submodule")


async def test_a_file_too_large_for_a_snapshot_is_named(tmp_path: Path, project: Path) -> None:
    sparse(project / "big.bin", LARGE)
    async with played(tmp_path, shell("echo y >> big.bin; echo z > a.txt")) as (app, session):
        prompt = await ask(app, session)

        back = await reverted(app, session, prompt)

    assert left(back) == {"big.bin": "large"}
    assert (project / "big.bin").stat().st_size == LARGE + 2
    assert (project / "a.txt").read_text() == "one\n"


async def test_a_file_that_shrinks_below_the_limit_is_no_new_one(
    tmp_path: Path, project: Path
) -> None:
    sparse(project / "big.bin", LARGE)
    async with played(tmp_path, shell("echo y > big.bin")) as (app, session):
        prompt = await ask(app, session)

        back = await reverted(app, session, prompt)

    assert left(back) == {"big.bin": "large"}
    assert (project / "big.bin").read_text() == "y\n"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"snapshot": False}, "snapshots are turned off"),
        (
            {"plugins": {"pegboard_plugins.snapshots": {"enabled": False}}},
            "no plugin keeps snapshots",
        ),
    ],
    ids=["turned off", "no plugin"],
)
async def test_without_snapshots_the_files_stay_and_the_reason_is_named(
    tmp_path: Path, project: Path, settings: dict[str, object], why: str
) -> None:
    config = {"model": "played/m", **settings}
    async with played(tmp_path, shell("echo x > a.txt"), config=config) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert (project / "a.txt").read_text() == "x\n"
    assert why in back.files.unknown


async def test_an_empty_folder_that_cannot_come_back_is_named(
    tmp_path: Path, project: Path
) -> None:
    (project / "old" / "empty").mkdir(parents=True)
    async with played(tmp_path, shell("rm -r old")) as (app, session):
        prompt = await ask(app, session)
        (project / "old").symlink_to(tmp_path)
        back = await reverted(app, session, prompt)
        forth = await unreverted(app, session)

    assert left(back) == {"old": "changed", "empty": "empty"}
    assert "`mkdir -p old/empty` makes it again" in back.warning
    assert not (tmp_path / "empty").exists()
    assert left(forth) == {}


async def test_a_file_in_the_place_of_an_empty_folder_goes(tmp_path: Path, project: Path) -> None:
    (project / "empty").mkdir()
    command = "rmdir empty; echo x > empty"
    async with played(tmp_path, shell("true"), shell(command)) as (app, session):
        await reverted(app, session, await ask(app, session))

    assert not (project / "empty").is_file()


async def test_a_repository_within_the_worktree_is_named(tmp_path: Path, project: Path) -> None:
    inner_repository(project / "known")
    with_submodule(project)
    command = "echo x > known/inner.txt; git init -q made; echo y > made/y; echo z > lib/inner.txt"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)

        back = await reverted(app, session, prompt)

    assert left(back) == {"known": "nested", "made": "nested", "lib": "submodule"}


@pytest.mark.parametrize("command", ["rm -rf known lib", "git rm -qf lib; rm -rf known"])
async def test_a_repository_within_the_worktree_that_goes_is_named(
    tmp_path: Path, project: Path, command: str
) -> None:
    inner_repository(project / "known")
    with_submodule(project)
    (project / "known/inner.txt").write_text("the user's edit\n")
    async with played(tmp_path, shell(command)) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert left(back) == {"known": "nested", "lib": "submodule"}
    assert "known: it was a repository of its own and is gone: no copy was made" in back.warning


async def test_a_repository_that_nobody_changed_is_not_named(tmp_path: Path, project: Path) -> None:
    inner_repository(project / "known")
    with_submodule(project)
    command = "git -C known status; cat lib/inner.txt; echo x > a.txt"
    async with played(tmp_path, shell(command)) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert back.files.left == ()


async def test_what_was_left_is_named_again_by_a_later_process_and_told_by_an_event(
    tmp_path: Path, project: Path
) -> None:
    sparse(project / "big.bin", LARGE)
    async with played(tmp_path, shell("echo y >> big.bin")) as (app, session):
        prompt = await ask(app, session)

    async with played(tmp_path) as (app, _):
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionWarned))
        )
        await asyncio.sleep(0)
        await reverted(app, session, prompt)
        told = (await listening)[-1].properties
        forth = await unreverted(app, session)

    assert isinstance(told, SessionWarned)
    assert "big.bin: too large" in told.message
    assert forth.files.left == ()


@pytest.mark.parametrize("harm", ["cut", "flipped", "emptied"])
async def test_one_damaged_copy_does_not_keep_the_others_from_coming_back(
    tmp_path: Path, project: Path, harm: str
) -> None:
    (project / "u.txt").write_text("not tracked\n")
    (project / "v.txt").write_text("not tracked either\n")
    command = "echo x > a.txt; echo y > u.txt; echo z > v.txt"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
    blob = object_id("blob", b"not tracked\n").decode()
    objects = next((tmp_path / "data/snapshot").iterdir()) / "objects"
    damage(objects / blob[:2] / blob[2:], harm)

    async with played(tmp_path) as (app, _):
        back = await reverted(app, session, prompt)

    assert left(back) == {"u.txt": "lost"}
    assert (project / "a.txt").read_text() == "one\n"
    assert (project / "v.txt").read_text() == "not tracked either\n"
    assert (project / "u.txt").read_text() == "y\n"


def damage(file: Path, harm: str) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.chmod(0o600)
    file.write_bytes({"cut": content[:5], "flipped": content, "emptied": b""}[harm])


async def test_steps_without_a_snapshot_are_told(tmp_path: Path, project: Path) -> None:
    off = {"config": {"model": "played/m", "snapshot": False}}
    async with played(tmp_path, written("a.txt", "x"), text("done"), **off) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert "1 step changed" in back.files.unknown
    assert "snapshot = false" in back.files.unknown


async def test_a_session_that_only_read_leaves_nothing_unknown(
    tmp_path: Path, project: Path
) -> None:
    off = {"config": {"model": "played/m", "snapshot": False}}
    async with played(tmp_path, text("done"), **off) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert back.files.unknown == ""


async def test_a_long_file_that_git_does_not_track_comes_back(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.snapshots.apart.LIMIT_BYTES", 7 << 20)
    for name in ("one.bin", "two.bin", "three.bin"):
        (project / name).write_bytes(os.urandom(3 << 20))
    before = binaries(project)
    async with played(tmp_path, shell("for f in *.bin; do echo x >> $f; done")) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    after = binaries(project)
    assert left(back) == {"two.bin": "large"}
    assert {name for name in before if before[name] == after[name]} == {
        "image.bin",
        "one.bin",
        "three.bin",
    }


async def test_what_could_not_be_put_back_is_tried_again(tmp_path: Path, project: Path) -> None:
    command = "rm -r src; echo x > a.txt; git add -A"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        (project / "src").symlink_to("/tmp")
        first = await reverted(app, session, prompt)
        (project / "src").unlink()
        (project / "a.txt").write_text("the user's, since\n")

        second = await reverted(app, session, prompt)
        third = await reverted(app, session, prompt)

    assert left(first) == {"b.txt": "failed"}
    assert left(second) == left(third) == {"a.txt": "changed"}
    assert (project / "src/b.txt").read_text() == "two\n"
    assert (project / "a.txt").read_text() == "the user's, since\n"
    assert git(project, "diff", "--cached") == ""


@pytest.mark.parametrize("watched", [False, True])
async def test_a_file_that_goes_among_too_many_is_named(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    monkeypatch.setattr("pegboard_plugins.snapshots.state.OTHERS_LIMIT_FILES", 2)
    for number in range(4):
        (project / f"{number}.txt").write_text("the user's\n")
    commands = ["echo x > a.txt", "rm 1.txt"] if watched else ["rm 1.txt"]
    async with played(tmp_path, *map(shell, commands)) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert left(back) == {"1.txt": "many"}
    assert (project / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("command", ["echo x > a.txt", "rm a.txt", "echo x > src/b.txt"])
async def test_a_file_that_git_is_told_to_skip_is_undone(
    tmp_path: Path, project: Path, command: str
) -> None:
    git(project, "update-index", "--skip-worktree", "a.txt", "src/b.txt")
    (project / "a.txt").write_text("the user's edit\n")
    (project / "src/b.txt").unlink()
    (project / "src/stays").touch()
    before = state(project)
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        assert state(project) != before
        back = await reverted(app, session, prompt)

    assert (back.files.left, state(project)) == ((), before)


async def test_the_project_s_own_folder_stays(tmp_path: Path, project: Path) -> None:
    (project / "work").mkdir()
    (project / "work/only.txt").write_text("x\n")
    async with taking(project, directory=project / "work") as snapshots:
        (project / "work/only.txt").unlink()
        before = str(await snapshots.track())
        with writing(snapshots):
            (project / "work/new.txt").write_text("x\n")
        after = str(await snapshots.track())
        way = RestoreWay(before=after, after=before)
        await snapshots.restore({project / "work/new.txt": way})

    assert tuple((project / "work").iterdir()) == ()
