"""What an App still needs is not collected under it, however long it rests in between."""

import os
from pathlib import Path

import pytest

from pegboard.snapshots import RestoreWay
from pegboard_plugins.snapshots import state
from support.tools.worktrees import small_repository, taking, writing

OLD_S = 2 * 3600.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return small_repository(tmp_path / "project")


def grown_old(project: Path) -> None:
    """All objects as old as those that a collection takes."""
    for path in (project.parent / "data").glob("*/objects/??/*"):
        at = path.stat().st_mtime - OLD_S
        os.utime(path, (at, at))


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_what_was_there_before_a_long_rest_can_be_brought_back(
    project: Path, monkeypatch: pytest.MonkeyPatch, *, elsewhere: bool
) -> None:
    monkeypatch.setattr(state, "FRESHEN_EVERY_S", 0.0)
    files = (project / "notes.txt", project / "a.txt", project / "deep/er/new.txt")
    files[2].parent.mkdir(parents=True)
    for file in files:
        file.write_text("as the user left it")  # untracked or changed: the user's git lacks it

    async with taking(project) as snapshots:
        await snapshots.track()
        grown_old(project)
        if elsewhere:
            async with taking(project) as others:
                await others.collect(())
        else:
            await snapshots.collect(())
        before = await snapshots.track(fresh=True)
        with writing(snapshots):
            for file in files:
                file.write_text("by the session")
        after = await snapshots.track()
        assert before is not None
        assert after is not None
        restored = await snapshots.restore(
            {f: RestoreWay(before=after, after=before) for f in files}
        )

    assert restored.left == ()
    assert {file.read_text() for file in files} == {"as the user left it"}


async def test_what_is_used_again_is_young_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "FRESHEN_EVERY_S", 0.0)
    (project / "notes.txt").write_text("as the user left it")

    async with taking(project) as snapshots:
        before = await snapshots.track()
        grown_old(project)
        await snapshots.track(fresh=True)
        await snapshots.collect(())
        with writing(snapshots):
            (project / "notes.txt").write_text("by the session")
        after = await snapshots.track()
        way = RestoreWay(before=str(after), after=str(before))
        restored = await snapshots.restore({project / "notes.txt": way})

    assert restored.left == ()
