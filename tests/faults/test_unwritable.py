"""Folders that cannot be written: reading works, and a refusal names the variable that helps."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.test_surroundings import ended, is_a_sentence
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="capabilities are those of Linux")
_PR_CAPBSET_DROP = 24
_CAP_DAC = (1, 2)
"""What lets root write, read and search everywhere."""
AS_STRANGER = 'exec unshare --user --map-user=54321 env -u HOME "$@"'


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    """The command line, in an empty project."""
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path, tmp_path / "project")


def as_others() -> None:
    """Leave root only the rights that a folder's mode gives."""
    libc = ctypes.CDLL(None)
    for capability in _CAP_DAC:
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.fixture
def unwritable(pegboard: CommandLine) -> Iterator[CommandLine]:
    """The command line with a session, in folders that nobody can write."""
    model = pegboard.script({"text": "done"})
    assert ended(pegboard, "run", "-m", model, "--title", "Old", "hi").code == 0
    for name in ("data", "state", "cache"):
        (folder := pegboard.home / name).mkdir(exist_ok=True)
        for path in (*folder.rglob("*"), folder):
            path.chmod(0o500 if path.is_dir() else 0o400)
    yield pegboard
    for name in ("data", "state", "cache"):
        for path in ((folder := pegboard.home / name), *folder.rglob("*")):
            path.chmod(0o700)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("session", "list"), "Old"),
        (("stats",), "1"),
        (("config", "show"), ""),
        (("doctor",), "PEGBOARD_DATA_DIR"),
    ],
)
def test_what_only_reads_needs_no_writable_folder(
    unwritable: CommandLine, words: tuple[str, ...], shown: str
) -> None:
    done = ended(unwritable, *words, before=as_others)

    assert done.code == 0, done.err
    assert shown in done.out


def test_a_run_that_cannot_be_stored_names_the_variable(unwritable: CommandLine) -> None:
    model = unwritable.script({"text": "never"})

    done = ended(unwritable, "run", "-m", model, "hi", before=as_others)

    assert done.code == 1
    assert is_a_sentence(done, unwritable, "pegboard.db", "PEGBOARD_DATA_DIR")


def test_an_unsaved_run_needs_no_writable_folder(unwritable: CommandLine) -> None:
    model = unwritable.script({"text": "answered"})

    done = ended(unwritable, "run", "--no-save", "-m", model, "hi", before=as_others)

    assert done.code == 0, done.err
    assert "answered" in done.out


def test_nothing_is_left_in_the_temporary_folder(unwritable: CommandLine, tmp_path: Path) -> None:
    (temp := tmp_path / "temp").mkdir()
    unwritable.env["TMPDIR"] = str(temp)

    ended(unwritable, "session", "list", before=as_others)
    ended(
        unwritable,
        "run",
        "--no-save",
        "-m",
        unwritable.script({"text": "x"}),
        "hi",
        before=as_others,
    )

    assert list(temp.glob("pegboard-*")) == []


async def test_a_log_of_decisions_that_cannot_be_written_names_the_variable(
    pegboard: CommandLine,
) -> None:
    (pegboard.home / "state" / "audit.jsonl").mkdir(parents=True)
    async with ModelServer(by_step(call("list", {}), say("ok"))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "hi")

    assert "audit.jsonl cannot be written" in done.err + done.out
    assert "PEGBOARD_STATE_DIR" in done.err + done.out


@pytest.mark.parametrize("words", [("session", "list"), ("run", "hi"), ("doctor",), ("models",)])
def test_a_user_without_a_home_is_a_sentence(pegboard: CommandLine, words: tuple[str, ...]) -> None:
    probe = subprocess.run(["unshare", "--user", "--map-user=54321", "true"], check=False)
    if probe.returncode:
        pytest.skip("user namespaces are not allowed here")
    folders = {name: os.environ[name] for name in ("PATH",)}
    pegboard.env.update(folders)

    done = ended(pegboard, *words, through=AS_STRANGER)

    assert done.code == 3
    assert is_a_sentence(done, pegboard, "54321", "HOME")
