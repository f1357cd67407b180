"""`session bisect` finds the step that broke a command, and leaves the worktree alone."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pegboard import App
from pegboard.ids import IdSource
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime, Turn
from pegboard.schema.part import PatchPart
from pegboard.schema.session import Tokens
from pegboard_plugins.cli.bisection import (
    BreakingRange,
    ChangingStep,
    Outcome,
    Trial,
    changing_steps,
    search,
    states_after,
    try_state,
)
from pegboard_plugins.snapshots.objects import FILE, Objects, TreeEntry, tree_of
from pegboard_plugins.snapshots.store import place_of
from plugins.cli.commands import CommandLine, finished
from support.models.model_server import ModelServer, call, in_order, say
from support.models.played import Played, opened, text
from support.models.written import until
from support.tools.worktrees import git, small_repository

STEPS = 64
INTACT = ("sh", "-c", "! grep -q BUG notes.txt")
"""A command that passes until the file has the word, and where there is no file."""


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    (tmp_path / "tmp").mkdir()
    project = small_repository(tmp_path / "project")
    return CommandLine(tmp_path, project, {"TMPDIR": str(tmp_path / "tmp")})


async def session_of(pegboard: CommandLine, *commands: str) -> str:
    """A session of one prompt, in which each step runs a command."""
    steps = [call("bash", {"command": each, "description": "change"}) for each in commands]
    async with ModelServer(in_order(*steps, say("done"))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"}, title="off")
        done = await pegboard("run", "--format", "json", "add the notes")
    return str(done.records[0]["sessionID"])


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Each file below a folder, the repository included."""
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def appended(word: str) -> str:
    return f"echo {word} >> notes.txt"


async def test_the_step_is_shown_with_its_prompt_its_call_and_its_diff(
    pegboard: CommandLine,
) -> None:
    words = ("one", "two", "three", "a BUG", "five", "six")
    session = await session_of(pegboard, *map(appended, words))
    pegboard.env["STRIPE_KEY"] = "sk_live_0123456789abcdef"
    seen = pegboard.home / "environment"
    before = everything(pegboard.project)

    script = f"env > {seen}; touch made; {INTACT[2]}"
    done = await pegboard("session", "bisect", session, "--", "sh", "-c", script)

    assert (done.code, everything(pegboard.project)) == (0, before)
    assert list((pegboard.home / "tmp").iterdir()) == []
    assert done.err.endswith("step 4 of 6 broke it\n")
    assert done.err.count("(exit code ") == 3
    assert "prompt add the notes\n" in done.out
    assert "bash echo a BUG >> notes.txt\n" in done.out
    assert "+ a BUG\n" in done.out
    assert "STRIPE_KEY" not in seen.read_text()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo as ever; exit 3", "it does not pass before the first step (exit code 3)"),
        ("exit 0", "it does not fail after the last step (exit code 0)"),
        ("no_such_program", "it does not pass before the first step (exit code 127)"),
        ("exit 125", "it does not pass before the first step (exit code 125)"),
    ],
)
async def test_without_a_pass_and_a_failure_there_is_nothing_to_find(
    pegboard: CommandLine, script: str, reason: str
) -> None:
    session = await session_of(pegboard, appended("one"))

    done = await pegboard("session", "bisect", session, "--", "sh", "-c", script)

    assert (done.code, done.out) == (1, "")
    assert f"nothing to find: {reason}; give a command that passes" in done.err
    assert ("as ever\n" in done.err) == ("as ever" in script)


async def test_a_session_without_changes_is_refused(pegboard: CommandLine) -> None:
    session = await session_of(pegboard, "true")

    done = await pegboard("session", "bisect", session, "--", *INTACT)

    assert done.code == 2
    assert f"nothing to search in {session}: its steps changed no file" in done.err


async def test_what_the_user_broke_between_two_steps_is_blamed_on_no_step(
    pegboard: CommandLine,
) -> None:
    session = await session_of(pegboard, appended("one"))
    with (pegboard.project / "notes.txt").open("a") as notes:
        notes.write("BUG\n")
    more = call("bash", {"command": appended("two"), "description": "change"})
    async with ModelServer(in_order(more, say("done"))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"}, title="off")
        await pegboard("run", "-s", session, "more")

    done = await pegboard("session", "bisect", session, "--", *INTACT)

    assert (done.code, done.out) == (1, "")
    assert "no step broke it: between the steps 1 and 2 something else changed" in done.err


async def test_an_interrupt_leaves_nothing(pegboard: CommandLine) -> None:
    session = await session_of(pegboard, appended("one"))
    before, marker = everything(pegboard.project), pegboard.home / "pid"

    script = f"echo $$ > {marker}.new; mv {marker}.new {marker}; exec sleep 600"
    process = await pegboard.start("session", "bisect", session, "--", "sh", "-c", script)
    await until(marker.exists)
    process.send_signal(signal.SIGINT)
    done = await finished(process)

    assert (done.code, everything(pegboard.project)) == (130, before)
    assert list((pegboard.home / "tmp").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


@pytest.mark.parametrize("broken", range(STEPS + 2))
async def test_the_search_takes_seven_runs_at_most_for_64_steps(broken: int) -> None:
    asked: list[int] = []

    async def run(state: int) -> Outcome:
        asked.append(state)
        return "fails" if state >= broken else "passes"

    assert await search(STEPS, run) == BreakingRange(broken - 1, broken)
    assert len(asked) <= 7


async def test_a_state_that_cannot_be_tested_is_passed_over() -> None:
    async def run(state: int) -> Outcome:
        if state in (4, 5):
            return "cannot be tested"
        return "fails" if state >= 5 else "passes"

    assert await search(8, run) == BreakingRange(3, 6)


class Sessions:
    """Sessions of which each step appends a line to a file, with the states in the snapshots."""

    def __init__(self, app: App, folder: Path) -> None:
        root = app.workspace.worktree
        self._file = root / "notes.txt"
        self._objects = Objects(place_of(root, folder) / "objects")
        self._ids = IdSource()

    def _trees(self, lines: Sequence[str]) -> Iterator[str]:
        content = ""
        for line in lines:
            content += f"{line}\n"
            blob = self._objects.put("blob", content.encode())
            yield tree_of({b"notes.txt": TreeEntry(FILE, blob)}, self._objects)

    def steps(self, lines: Sequence[str]) -> tuple[ChangingStep, ...]:
        """The steps of one session."""
        before, turns = tree_of({}, self._objects), []
        for tree in self._trees(lines):
            id_ = self._ids.new("message")
            info = AssistantMessage(
                id=id_,
                session_id="ses_1",
                parent_id="msg_1",
                model_id="m",
                provider_id="played",
                mode="build",
                agent="build",
                path=MessagePath(cwd="", root=""),
                cost=None,
                tokens=Tokens(),
                time=MessageTime(created=1),
            )
            patch = PatchPart(
                id=self._ids.new("part"),
                session_id="ses_1",
                message_id=id_,
                hash=before,
                files=(str(self._file),),
                after=tree,
            )
            turns.append(Turn(info=info, parts=(patch,)))
            before = tree
        return changing_steps(turns)


async def found_breaks(folder: Path, number: int) -> None:
    """Look for the break in so many sessions."""
    chance = random.Random(7)
    small_repository(folder / "project")
    async with opened(folder, Played(text("x"))) as app:
        assert app.snapshots is not None
        await app.snapshots.track()
        sessions = Sessions(app, folder / "data" / "snapshot")
        trial = Trial(command=INTACT, env=await app.user_env(), limit_s=60)
        for _ in range(number):
            broken, runs = chance.randint(1, STEPS), 0
            lines = [f"{chance.random()}" for _ in range(STEPS)]
            lines[broken - 1] += " BUG"
            steps = sessions.steps(lines)

            async def run(state: int, steps: tuple[ChangingStep, ...] = steps) -> Outcome:
                nonlocal runs
                runs += 1
                return (await try_state(app, trial, states_after(steps, state))).outcome

            assert await search(STEPS, run) == BreakingRange(broken - 1, broken)
            assert runs <= 7


async def test_the_planted_break_of_a_session_is_found(tmp_path: Path) -> None:
    await found_breaks(tmp_path, 5)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_the_planted_break_of_each_of_100_sessions_is_found(tmp_path: Path) -> None:
    await found_breaks(tmp_path, 100)


async def test_a_run_over_its_limit_fails_and_a_lost_state_cannot_be_tested(
    tmp_path: Path,
) -> None:
    small_repository(tmp_path / "project")
    async with opened(tmp_path, Played(text("x"))) as app:
        trial = Trial(command=("sleep", "600"), env=await app.user_env(), limit_s=0.5)
        slow = await try_state(app, trial, {})
        lost = await try_state(app, trial, {app.workspace.worktree / "x": "0" * 40})

    assert (slow.outcome, slow.reason) == ("fails", "no end within 0.5 s")
    assert (lost.outcome, lost.reason) == ("cannot be tested", "1 file is no longer stored")


async def test_the_copy_has_what_git_ignores_and_no_repository(tmp_path: Path) -> None:
    project = small_repository(tmp_path / "project")
    (project / ".gitignore").write_text("deps/\n")
    (project / "deps").mkdir()
    (project / "deps" / "x").touch()
    os.mkfifo(project / "pipe")
    async with opened(tmp_path, Played(text("x"))) as app:
        script = "test -e deps/x && test ! -e .git && test ! -e pipe && ! git status"
        trial = Trial(command=("sh", "-c", script), env=await app.user_env(), limit_s=60)
        done = await try_state(app, trial, {})

    assert done.outcome == "passes", done.printed
    assert git(project, "status", "--porcelain")


async def test_a_cancelled_copy_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = small_repository(tmp_path / "project")
    for number in range(2_000):
        (project / f"file{number}").touch()
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    async with opened(tmp_path, Played(text("x"))) as app:
        trial = Trial(command=("sleep", "600"), env=await app.user_env(), limit_s=600)
        trying = asyncio.create_task(try_state(app, trial, {}))
        await until(lambda: bool(list(scratch.glob("*/project/*"))))
        trying.cancel()
        with suppress(asyncio.CancelledError):
            await trying

    assert list(scratch.iterdir()) == []
