"""What a copy of a session can undo: a fork's and an import's snapshots are its own."""

import os
import re
import time
from pathlib import Path

import pytest

from pegboard import App
from pegboard.schema.message import UserMessage
from pegboard_plugins.cli.export.sessionfile import (
    exported_lines,
    read_conversations,
    store_session,
)
from pegboard_plugins.shared.frontend import forked, reverted, session_diff, unreverted
from support.models.written import ask, full_repository, played, shell, state, written

OLD_S = 2 * 3600.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return full_repository(tmp_path / "project")


async def first_prompt(app: App, session_id: str) -> str:
    turns = await app.list_turns(session_id)
    return next(turn.info.id for turn in turns if isinstance(turn.info, UserMessage))


def aged(folder: Path) -> None:
    """All objects of the snapshots as old as those that a collection takes."""
    then = time.time() - OLD_S
    for file in folder.glob("*/objects/??/*"):
        os.utime(file, (then, then))


async def test_a_fork_is_reverted_when_the_original_is_deleted_and_collected(
    tmp_path: Path, project: Path
) -> None:
    before = state(project)
    steps = (shell("echo x >> a.txt; rm src/b.txt"), written("n.txt", "new"))
    async with played(tmp_path, *steps) as (app, session):
        await ask(app, session)
        after = state(project)
        fork = await forked(app, session)
        await app.delete_session(session)
        aged(tmp_path / "data/snapshot")
        assert app._engine.snapshots is not None
        await app._engine.snapshots.collect(())

        back = await reverted(app, fork.id, await first_prompt(app, fork.id))

        assert state(project) == before != after
        assert back.files.left == ()
        await unreverted(app, fork.id)
        assert state(project) == after


async def test_snapshots_go_with_the_last_session_that_needs_them(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, written("a.txt", "new")) as (app, session):
        await ask(app, session)
        fork = await forked(app, session)
        for each in (session, fork.id):
            await app.delete_session(each)
        aged(tmp_path / "data/snapshot")
        assert app._engine.snapshots is not None
        await app._engine.snapshots.collect(())

    assert list((tmp_path / "data/snapshot").glob("*/refs/pegboard/*")) == []
    assert list((tmp_path / "data/snapshot").glob("*/objects/??/*")) == []


async def test_an_import_is_reverted_where_its_snapshots_are(tmp_path: Path, project: Path) -> None:
    before = state(project)
    async with played(tmp_path, written("a.txt", "new")) as (app, session):
        await ask(app, session)
        lines = [*exported_lines(await read_conversations(app, session))]
        copy = await store_session(app, lines)
        await app.delete_session(session)

        back = await reverted(app, copy.id, await first_prompt(app, copy.id))

    assert state(project) == before
    assert back.files.left == ()


@pytest.mark.parametrize("hostile", [False, True])
async def test_an_import_from_elsewhere_changes_no_file(tmp_path: Path, hostile: bool) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        full_repository(folder / "project")
    async with played(here, written("a.txt", "new"), shell("rm src/b.txt")) as (app, session):
        await ask(app, session)
        lines = [*exported_lines(await read_conversations(app, session))]
    if hostile:  # it names files of this project, and ones beside it
        old, new = bytes(here / "project"), bytes(there / "project")
        lines = [line.replace(old, new).replace(b"/src/b.txt", b"/../../out") for line in lines]
    (there / "out").write_text("mine")
    before = state(there)

    async with played(there) as (app, _):
        copy = await store_session(app, lines)
        back = await reverted(app, copy.id, await first_prompt(app, copy.id))
        diff = await session_diff(app, copy.id)

    assert {name: value for name, value in state(there).items() if name in before} == before
    assert {left.reason for left in back.files.left} == {"lost"}
    assert diff == ()


def placeless(lines: list[bytes]) -> bytes:
    """An export with each id, and what is made of one, as the place where it first stands."""
    places: dict[bytes, bytes] = {}
    joined = re.sub(rb'"slug":"[^"]*"', b"", b"".join(lines))
    return re.sub(
        rb"\b(?:ses|msg|prt)_\w+",
        lambda match: places.setdefault(match[0], b"#%d" % len(places)),
        joined,
    )


async def test_the_export_of_an_import_has_the_bytes_of_the_first(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, written("a.txt", "new"), shell("rm src/b.txt")) as (app, session):
        await ask(app, session)
        first = [*exported_lines(await read_conversations(app, session))]
        copy = await store_session(app, first)
        again = [*exported_lines(await read_conversations(app, copy.id))]

    assert placeless(again) == placeless(first)
    assert first == sorted(set(first), key=first.index)
