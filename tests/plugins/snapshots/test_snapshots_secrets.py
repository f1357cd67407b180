"""Files of secrets in snapshots: what becomes of them is known, their contents are nowhere."""

import json
import zlib
from pathlib import Path

import pytest

from pegboard.schema.session import FileDiff
from pegboard.snapshots import Left, Restored, RestoreWay
from plugins.cli.commands import CommandLine
from support.tools.worktrees import git, small_repository, taking, writing

SECRET = b"TOKEN=topsecret-4711\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return small_repository(tmp_path / "project")


def kept(folder: Path) -> bytes:
    """All that is in the objects below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and len(path.name) == 38)
    return b"".join(zlib.decompress(path.read_bytes()) for path in files)


async def test_a_secret_that_git_does_not_ignore_is_copied_nowhere(
    project: Path, tmp_path: Path
) -> None:
    (project / ".env").write_bytes(SECRET)
    (project / "sub").mkdir()
    async with taking(project) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            (project / ".env").write_bytes(SECRET * 2)
            (project / "sub" / "server.pem").write_bytes(SECRET)
            (project / "plain.txt").write_bytes(b"plain")
        after = await snapshots.track()
        assert before
        assert after
        assert before != after
        ways = {
            project / name: RestoreWay(before=before, after=after)
            for name in (".env", "sub/server.pem", "plain.txt")
        }
        shown = await snapshots.diff(ways)
        back = await snapshots.restore(
            {path: RestoreWay(before=way.after, after=way.before) for path, way in ways.items()}
        )

    found = kept(tmp_path)
    assert b"plain" in found
    assert b"topsecret" not in found
    assert {each.file: each.patch for each in shown if "plain" not in each.file} == {
        ".env": "",
        "sub/server.pem": "",
    }
    assert FileDiff(file=".env", additions=0, deletions=0, status="modified") in shown
    assert back.changed == (project / "plain.txt",)
    assert set(back.left) == {
        Left(path=project / ".env", reason="secret"),
        Left(path=project / "sub" / "server.pem", reason="secret"),
    }
    assert (project / ".env").read_bytes() == SECRET * 2
    assert (project / "sub" / "server.pem").read_bytes() == SECRET


async def test_a_secret_that_git_tracks_comes_back_from_there_alone(
    project: Path, tmp_path: Path
) -> None:
    (project / ".env").write_bytes(SECRET)
    git(project, "add", ".env")
    git(project, "commit", "-qm", "x")
    async with taking(project) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            (project / ".env").write_bytes(SECRET * 2)
        after = await snapshots.track()
        assert before
        assert after
        back = await snapshots.restore({project / ".env": RestoreWay(before=after, after=before)})

    assert back == Restored(changed=(project / ".env",))
    assert (project / ".env").read_bytes() == SECRET
    assert b"topsecret" not in kept(tmp_path / "data")


async def test_a_run_copies_no_secret(pegboard: CommandLine) -> None:
    small_repository(pegboard.project)
    (pegboard.project / ".env").write_bytes(SECRET)
    call = {"tool": "write", "input": {"filePath": "b.txt", "content": "plain"}}
    model = pegboard.script({"calls": [call]}, {"text": "done"})

    done = await pegboard("run", "--trust", "--format", "json", "-m", model, "go")

    assert "done" in json.dumps(done.records)
    found = kept(pegboard.home / "data" / "snapshot")
    assert b"plain" in found
    assert b"topsecret" not in found


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path, tmp_path / "project")
