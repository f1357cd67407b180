"""Checkpoints: a folder as commits of a bare repository, from which others make it again."""

import asyncio
import shutil
from pathlib import Path

import pytest
from pegboard_fleet.checkpoints import Checkpoints, check_remote
from pegboard_fleet.folders import Folders, SetupError
from pegboard_fleet.jobs import Job
from pegboard_fleet.state import Attempt

from support.tools.worktrees import git

SESSION = "ses_1"


def attempt(repository: Path | None, begun: int = 1) -> Attempt:
    repo = "" if repository is None else str(repository)
    return Attempt(job=Job(id="one", prompt="go", repo=repo), number=1, begun=[0] * begun)


@pytest.fixture
def remote(tmp_path: Path) -> str:
    place = tmp_path / "remote.git"
    git(tmp_path, "init", "--quiet", "--bare", str(place))
    return str(place)


def refs(remote: str) -> list[str]:
    return git(Path(remote), "for-each-ref", "--format=%(refname)", "refs/pegboard/ses_1").split()


async def made(root: Path, of: Attempt, remote: str) -> tuple[Path, Checkpoints]:
    """Make the folder of a worker's attempt."""
    folders = Folders(root)
    base = await folders.make(of)
    return folders.of(of), Checkpoints(folders, remote, of, SESSION, base)


@pytest.mark.parametrize("has_repository", [True, False])
async def test_another_worker_has_the_folder_as_it_was_saved(
    tmp_path: Path, repository: Path, remote: str, has_repository: bool
) -> None:
    source = repository if has_repository else None
    folder, saved = await made(tmp_path / "first", attempt(source), remote)
    (folder / "made.txt").write_text("apple\n")
    (folder / ".gitignore").write_text("cache\n")
    (folder / "cache").write_text("big\n")
    (folder / "a.txt").unlink(missing_ok=True)
    await saved.save()
    (folder / "later.txt").write_text("not saved\n")
    other, restored = await made(tmp_path / "second", attempt(source, begun=2), remote)
    (other / ".gitignore").write_text("cache\n")
    (other / "cache").write_text("of the setup\n")
    await restored.restore()

    names = {each.name for each in other.iterdir()} - {".git"}
    assert names == {"made.txt", ".gitignore", "cache", *(["b.txt"] if has_repository else [])}
    assert (other / "made.txt").read_text() == "apple\n"
    assert (other / "cache").read_text() == "of the setup\n"


async def test_only_the_newest_checkpoint_stays_and_an_unchanged_folder_makes_none(
    tmp_path: Path, repository: Path, remote: str
) -> None:
    folder, saved = await made(tmp_path / "first", attempt(repository), remote)
    await saved.save()
    await saved.save()
    once = refs(remote)
    (folder / "made.txt").write_text("apple\n")
    await saved.save()
    twice = refs(remote)
    await saved.drop()

    assert once == ["refs/pegboard/ses_1/1/1"]
    assert twice == ["refs/pegboard/ses_1/1/2"]
    assert refs(remote) == []


async def test_what_an_earlier_worker_saves_late_does_not_count(
    tmp_path: Path, repository: Path, remote: str
) -> None:
    old, late = await made(tmp_path / "first", attempt(repository), remote)
    new, saved = await made(tmp_path / "second", attempt(repository, begun=2), remote)
    (new / "made.txt").write_text("new\n")
    await saved.save()
    for number in range(3):
        (old / "made.txt").write_text(f"old {number}\n")
        await late.save()
    other, restored = await made(tmp_path / "third", attempt(repository, begun=3), remote)
    await restored.restore()

    assert (other / "made.txt").read_text() == "new\n"


async def test_a_repository_that_refuses_checkpoints_is_named(tmp_path: Path, remote: str) -> None:
    good = await check_remote(remote, tmp_path)
    shutil.rmtree(remote)
    _, saved = await made(tmp_path / "first", attempt(None), remote)

    assert good == ""
    assert "does not appear to be a git repository" in await check_remote(remote, tmp_path)
    with pytest.raises(SetupError, match="git push"):
        await saved.save()


async def test_a_checkpoint_that_a_late_push_replaces_is_looked_up_again(
    tmp_path: Path, remote: str
) -> None:
    old, late = await made(tmp_path / "first", attempt(None), remote)
    new, restored = await made(tmp_path / "second", attempt(None, begun=2), remote)
    await late.save()

    async def saving() -> None:
        for number in range(20):
            (old / "made.txt").write_text(f"{number}\n")
            await late.save()

    pushes = asyncio.create_task(saving())
    while not pushes.done():
        await restored.restore()
    await pushes
    await restored.restore()

    assert (new / "made.txt").read_text() == "19\n"
