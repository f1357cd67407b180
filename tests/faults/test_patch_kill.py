"""A process that is ended in the middle of writing: files are whole, and what stands is said."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from plugins.cli.commands import LIMIT_S, CommandLine, finished
from support.processes.forks import Running
from support.tools.worktrees import small_repository

FILES = 300
LINES = 10
OLD, NEW = "one\n", "1\n"
MANY = "x" * (1 << 19)
WIDE = "y" * 40


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    line = CommandLine(tmp_path, small_repository(tmp_path / "project"))
    line.configure(permission="allow")
    return line


def patch() -> dict[str, Any]:
    lines = ["*** Begin Patch", "*** Update File: a.txt", "@@", "-one", "+1"]
    for number in range(FILES):
        lines += [f"*** Add File: many/{number}", *(["+new"] * LINES)]
    lines += ["*** Delete File: run.sh", "*** End Patch"]
    return {"tool": "apply_patch", "input": {"patchText": "\n".join(lines)}}


async def ended(
    process: Running | asyncio.subprocess.Process, word: signal.Signals, holds: Callable[[], bool]
) -> None:
    """The end of a process that gets a signal as soon as something holds."""
    async with asyncio.timeout(LIMIT_S):
        while not holds():
            assert process.returncode is None
            await asyncio.sleep(0.002)
    process.send_signal(word)
    await finished(process)


def read(name: str) -> dict[str, Any]:
    return {"tool": "read", "input": {"filePath": name}}


def many(pegboard: CommandLine) -> list[Path]:
    """The files that the patch has added so far."""
    return [file for file in (pegboard.project / "many").glob("*") if file.name.isdigit()]


async def later(pegboard: CommandLine) -> tuple[str, dict[str, Any]]:
    """How the last call ended, as the next start says it, and what a revert says after that."""
    (listed,) = json.loads((await pegboard("session", "list", "--format", "json")).out)
    shown = json.loads((await pegboard("session", "show", listed["id"], "--format", "json")).out)
    calls = [part for m in shown["messages"] for part in m["parts"] if part["type"] == "tool"]
    back = await pegboard("session", "revert", listed["id"], "--format", "json")
    database = apsw.Connection(str(pegboard.home / "data" / "pegboard.db"))
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return calls[-1]["state"].get("error", ""), json.loads(back.out)


async def patched_until(pegboard: CommandLine, word: signal.Signals) -> None:
    """A run that gets a signal when a few files of its patch are written."""
    pegboard.env["PEGBOARD_DISABLE_PLUGINS"] = "litellm,write,edit"  # a model that patches
    model = pegboard.script(
        {"calls": [read("a.txt"), read("run.sh")]}, {"calls": [patch()]}, {"text": "done"}
    )
    process = await pegboard.start("run", "--trust", "-m", model, "go")
    await ended(process, word, lambda: len(many(pegboard)) > 5)


async def test_a_patch_that_is_killed_leaves_whole_files_and_a_revert_says_that_it_knows_nothing(
    pegboard: CommandLine,
) -> None:
    await patched_until(pegboard, signal.SIGKILL)
    error, back = await later(pegboard)

    assert 5 < len(many(pegboard)) < FILES
    assert {file.read_text() for file in many(pegboard)} == {"new\n" * LINES}
    assert (pegboard.project / "a.txt").read_text() == NEW
    assert (pegboard.project / "run.sh").exists()
    assert "What it had done by then is done" in error
    assert "1 step changed are as they are" in back["unknown"]
    assert "the program ended" in back["unknown"]


async def test_a_patch_that_is_terminated_is_finished_and_can_be_taken_back(
    pegboard: CommandLine,
) -> None:
    await patched_until(pegboard, signal.SIGTERM)
    written = len(many(pegboard))
    error, back = await later(pegboard)

    assert written == FILES
    assert "applied whole" in error
    assert (back["unknown"], back["left"]) == ("", [])
    assert many(pegboard) == []
    assert (pegboard.project / "a.txt").read_text() == OLD
    assert (pegboard.project / "run.sh").exists()


@pytest.mark.parametrize("word", [signal.SIGKILL, signal.SIGTERM])
async def test_a_long_write_that_is_ended_leaves_the_old_file_or_the_new_one(
    pegboard: CommandLine, word: signal.Signals
) -> None:
    (pegboard.project / "a.txt").write_text(MANY)
    change = {"filePath": "a.txt", "oldString": "x", "newString": WIDE, "replaceAll": True}
    edit = {"tool": "edit", "input": change}
    model = pegboard.script({"calls": [read("a.txt")]}, {"calls": [edit]}, {"text": "done"})
    process = await pegboard.start("run", "--trust", "-m", model, "go")
    await ended(process, word, lambda: any(pegboard.project.glob(".a.txt.*")))
    found = (pegboard.project / "a.txt").read_text()
    error, back = await later(pegboard)

    assert found in (MANY, WIDE * len(MANY))
    if word == signal.SIGTERM:
        assert (pegboard.project / "a.txt").read_text() == MANY
        assert (back["unknown"], back["left"]) == ("", [])
    else:
        assert "interrupted" in error
        assert "the program ended" in back["unknown"]
