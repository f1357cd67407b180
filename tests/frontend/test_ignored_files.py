"""Files that no snapshot has come back all the same when a tool says that it changes them."""

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from pegboard import App
from pegboard.providers import StreamEvent
from pegboard.workspace import open_workspace
from pegboard_plugins import apply_patch, read
from pegboard_plugins.shared.frontend import Reverted, reverted, session_diff, unreverted
from pegboard_plugins.snapshots.worktree import GitSnapshots
from support.models.played import Played, call, calls, opened, text
from support.models.written import ask, full_repository, played, shell, state, written
from support.tools.worktrees import OWNER, git, taking


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = full_repository(tmp_path / "project")
    (folder / "old.log").write_text("old\n")
    return folder


def left(back: Reverted) -> dict[str, str]:
    return {each.path.name: each.reason for each in back.files.left}


def patch(*lines: str) -> Sequence[StreamEvent]:
    whole = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    return calls(call("apply_patch", json.dumps({"patchText": whole})))


async def back_and_forth(app: App, session: str, project: Path, before: object) -> Reverted:
    """The revert of one prompt, which gives `before`; its work comes again by an unrevert."""
    prompt = await ask(app, session)
    after = state(project)
    back = await reverted(app, session, prompt)
    assert state(project) == before
    again = await unreverted(app, session)
    assert state(project) == after != before
    assert again.files.left == ()
    return back


async def test_an_ignored_file_that_a_tool_writes_or_makes_is_put_back(
    tmp_path: Path, project: Path
) -> None:
    before = state(project)
    answers = (written("old.log", "1"), written("deep/new.log", "x"), written("old.log", "2"))
    async with played(tmp_path, *answers) as (app, session):
        back = await back_and_forth(app, session, project, before)

        shown = {each.file: each.status for each in await session_diff(app, session)}

    assert back.files.left == ()
    assert shown == {"old.log": "modified", "deep/new.log": "added"}


async def test_an_ignored_file_that_a_patch_removes_moves_or_changes_is_put_back(
    tmp_path: Path, project: Path
) -> None:
    for name in ("gone.log", "moved.log"):
        (project / name).write_text("one\ntwo\n")
    before = state(project)
    reads = calls(
        *(
            call("read", json.dumps({"filePath": name}), call_id=name)
            for name in ("gone.log", "moved.log", "old.log")
        )
    )
    change = patch(
        *("*** Delete File: gone.log", "*** Update File: moved.log", "*** Move to: to.log"),
        *("@@", " one", "-two", "+three", "*** Update File: old.log", "@@", "-old", "+new"),
    )
    provider = Played(reads, change, text("done"))
    async with opened(tmp_path, provider, apply_patch, read) as app:
        session = (await app.create_session()).id
        back = await back_and_forth(app, session, project, before)

    assert back.files.left == ()
    assert (project / "to.log").read_text() == "one\nthree\n"


async def test_an_ignored_file_that_a_patch_removes_is_named_where_it_cannot_be_kept(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.snapshots.apart.LIMIT_BYTES", 1)
    (project / "big.log").write_bytes(b"line\n" * (1 << 19))
    reads = calls(call("read", json.dumps({"filePath": "big.log", "limit": 1})))
    change = patch("*** Delete File: big.log")
    async with opened(tmp_path, Played(reads, change, text("done")), apply_patch, read) as app:
        session = (await app.create_session()).id
        back = await reverted(app, session, await ask(app, session))

    assert left(back) == {"big.log": "large"}
    assert not (project / "big.log").exists()


async def test_no_copy_is_made_of_a_secret_that_git_ignores(tmp_path: Path, project: Path) -> None:
    (project / ".gitignore").write_text("*.log\n.env\n")
    (project / ".env").write_text("TOKEN=topsecret-4711\n")
    async with played(tmp_path, written(".env", "TOKEN=other-4711")) as (app, session):
        back = await reverted(app, session, await ask(app, session))

        shown = await session_diff(app, session)

    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert left(back) == {".env": "secret"}
    assert (project / ".env").read_text() == "TOKEN=other-4711"
    assert not [each for each in shown if each.patch]
    objects = b"".join(zlib.decompress(p.read_bytes()) for p in files if len(p.name) == 38)
    assert objects
    assert b"4711" not in objects


async def test_the_room_for_long_copies_has_a_limit(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.snapshots.apart.LIMIT_BYTES", 7 << 20)
    for name in ("one.log", "two.log", "three.log"):
        (project / name).write_bytes(os.urandom(3 << 20))
    answers = (written(f"{name}.log", "x") for name in ("one", "two", "three"))
    async with played(tmp_path, *answers) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert left(back) == {"three.log": "large"}
    assert (project / "two.log").stat().st_size == 3 << 20


async def test_a_file_in_a_repository_of_its_own_is_put_back_where_a_tool_wrote_it(
    tmp_path: Path, project: Path
) -> None:
    inner = project / "known"
    inner.mkdir()
    (inner / "inner.txt").write_text("one\n")
    git(inner, "init", "-q")
    before = state(project)
    async with played(tmp_path, written("known/inner.txt", "x")) as (app, session):
        back = await back_and_forth(app, session, project, before)

    assert back.files.left == ()


async def test_a_file_among_too_many_that_git_does_not_track_is_put_back(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.snapshots.state.OTHERS_LIMIT_FILES", 2)
    for name in ("one", "two", "three"):
        (project / name).write_text("1\n")
    before = state(project)
    reads = calls(*(call("read", json.dumps({"filePath": n}), call_id=n) for n in ("one", "two")))
    change = patch("*** Delete File: one", "*** Update File: two", "@@", "-1", "+2")
    async with opened(tmp_path, Played(reads, change, text("done")), apply_patch, read) as app:
        session = (await app.create_session()).id
        back = await back_and_forth(app, session, project, before)

    assert back.files.left == ()


async def test_a_file_that_comes_and_goes_within_a_step_is_no_ignored_one(project: Path) -> None:
    new = project / "new.txt"
    async with taking(project) as snapshots:
        await snapshots.track()
        with snapshots.writing(OWNER, tells=True) as writing:
            new.write_text("x")
            writing.intend(new)
            new.unlink()
            writing.tell(new)
        before = await snapshots.track()
        new.write_text("y")

        assert await snapshots.track(fresh=True) != before


async def test_what_a_command_does_to_an_ignored_file_that_a_tool_wrote_is_named(
    tmp_path: Path, project: Path
) -> None:
    answers = (written("old.log", "x"), text("done"), shell("echo y > old.log"))
    async with played(tmp_path, *answers) as (app, session):
        await ask(app, session)
        second = await reverted(app, session, await ask(app, session))

    assert left(second) == {"old.log": "ignored"}
    assert (project / "old.log").read_text() == "y\n"


async def test_an_ignored_file_that_somebody_has_edited_since_is_left(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, written("old.log", "x")) as (app, session):
        prompt = await ask(app, session)
        (project / "old.log").write_text("mine\n")
        back = await reverted(app, session, prompt)

    assert left(back) == {"old.log": "changed"}
    assert (project / "old.log").read_text() == "mine\n"


async def test_a_later_process_puts_a_copy_back_though_all_else_was_collected(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, written("old.log", "x")) as (app, session):
        prompt = await ask(app, session)
    for path in (tmp_path / "data").rglob("*"):
        if len(path.name) == 38:
            os.utime(path, (0, 0))
    store = GitSnapshots(open_workspace(project), folder=tmp_path / "data/snapshot", env={})
    await store.collect(())
    async with played(tmp_path) as (app, _):
        back = await reverted(app, session, prompt)

    assert back.files.left == ()
    assert (project / "old.log").read_text() == "old\n"
