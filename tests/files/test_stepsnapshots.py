"""Each step tells what it did to files, at the price of one look at most."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from pegboard import App, ToolContext, tool
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.event import PartUpdated, SessionDiffed, SessionIdle
from pegboard.schema.message import UserMessage
from pegboard.schema.part import StepFinishPart, StepStartPart
from pegboard.schema.session import SessionSummary
from pegboard_plugins.shared.frontend import forked, reverted, session_diff
from support.models.played import Played, ToolsPlugin, call, calls, heard, opened, text
from support.models.written import ask, full_repository, patches, played, put, shell, until, written


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return full_repository(tmp_path / "project")


async def test_each_step_tells_its_files(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, written("a.txt", "new"), shell("rm src/b.txt")) as (app, session):
        await ask(app, session)

        told = await patches(app, session)
        turns = await app.list_turns(session)
        starts = [p.snapshot for t in turns for p in t.parts if isinstance(p, StepStartPart)]
        finishes = [p.snapshot for t in turns for p in t.parts if isinstance(p, StepFinishPart)]

    assert [patch.files for patch in told] == [
        (str(project / "a.txt"),),
        (str(project / "src/b.txt"),),
    ]
    assert [patch.hash for patch in told] == starts[:2]
    assert finishes == [*starts[1:], starts[2]]
    assert len(set(starts)) == 3


@pytest.mark.usefixtures("project")
async def test_a_step_is_told_once_though_its_snapshots_come_late(tmp_path: Path) -> None:
    async with played(tmp_path, shell("echo 1 > a.txt")) as (app, session):
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)
        await ask(app, session)
        events = await listening
        stored = [part for turn in await app.list_turns(session) for part in turn.parts]

    told = [each.properties.part for each in events if isinstance(each.properties, PartUpdated)]
    for kind in (StepStartPart, StepFinishPart):
        parts = [part for part in stored if isinstance(part, kind)]
        assert all(part.snapshot for part in parts)
        assert [part.id for part in told if isinstance(part, kind)] == [part.id for part in parts]


async def snapshots_of(app: App, session_id: str) -> list[str]:
    """The snapshots with which steps of a session begin."""
    parts = [part for turn in await app.list_turns(session_id) for part in turn.parts]
    return [part.snapshot for part in parts if isinstance(part, StepStartPart) and part.snapshot]


async def test_what_the_user_edits_while_the_model_thinks_is_not_the_session_s(
    tmp_path: Path, project: Path
) -> None:
    async def thinks(_request: object) -> AsyncIterator[object]:
        async with asyncio.timeout(30):
            while not await snapshots_of(app, session):  # noqa: ASYNC110 - the database has no event
                await asyncio.sleep(0.01)
        (project / "src/b.txt").write_text("by the user\n")
        await asyncio.sleep(0.1)
        for event in shell("echo x > new.txt"):
            yield event

    async with played(tmp_path, thinks) as (app, session):
        await ask(app, session)

        told = await patches(app, session)

    assert [patch.files for patch in told] == [(str(project / "new.txt"),)]


async def test_ignored_files_are_left_alone(tmp_path: Path, project: Path) -> None:
    (project / "old.log").write_text("kept\n")
    (project / ".git/info/exclude").write_text("*.tmp\n")
    command = "echo x > old.log; echo x > new.log; echo x > new.tmp; echo x > new.txt"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)

        await reverted(app, session, prompt)

        told = await patches(app, session)
    assert [patch.files for patch in told] == [(str(project / "new.txt"),)]
    assert (project / "old.log").read_text() == "x\n"
    assert (project / "new.tmp").exists()


async def test_every_prompt_has_the_changes_of_its_turn_and_every_turn_those_of_the_session(
    tmp_path: Path, project: Path
) -> None:
    answers = (written("a.txt", "1\\n"), text("done"), text("read"), written("n.txt", "x\\n"))
    told: list[list[str]] = []
    async with played(tmp_path, *answers) as (app, session):
        for _ in range(3):
            listening = asyncio.create_task(
                heard(app, lambda event: isinstance(event.properties, SessionIdle))
            )
            await asyncio.sleep(0)
            await ask(app, session)
            told += [
                [diff.file for diff in each.properties.diff]
                for each in await listening
                if isinstance(each.properties, SessionDiffed)
            ]
        prompts = [t.info for t in await app.list_turns(session) if isinstance(t.info, UserMessage)]
        alone = [await session_diff(app, session, message_id=each.id) for each in prompts]

    summaries = [each.summary for each in prompts if each.summary is not None]
    assert told == [["a.txt"], ["a.txt"], ["a.txt", "n.txt"]]
    assert [each.diffs for each in summaries] == alone
    assert [[diff.file for diff in each] for each in alone] == [["a.txt"], [], ["n.txt"]]
    assert all("@@" in diff.patch for each in alone for diff in each)
    assert all(each.title for each in summaries)


async def test_the_whole_change_of_a_session_is_told_once_per_turn(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, written("a.txt", "1\\n2\\n"), written("n.txt", "x\\n")) as (app, s):
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)

        prompt = await ask(app, s)

        told = [
            e.properties.diff for e in await listening if isinstance(e.properties, SessionDiffed)
        ]
        session = await app.session(s)
        assert (
            await session_diff(app, s) == await session_diff(app, s, message_id=prompt) == told[0]
        )
        await reverted(app, s, prompt)
        assert await session_diff(app, s) == ()
    assert [(d.file, d.status, d.additions, d.deletions) for d in told[0]] == [
        ("a.txt", "modified", 2, 1),
        ("n.txt", "added", 1, 0),
    ]
    assert told[0][0].patch.endswith("@@ -1 +1,2 @@\n-one\n+1\n+2\n")
    assert len(told) == 1
    assert session.summary == SessionSummary(files=2, additions=3, deletions=1)


@pytest.mark.usefixtures("project")
async def test_a_diff_during_an_answer_has_the_changes_of_each_step_before_it(
    tmp_path: Path,
) -> None:
    found: list[object] = []

    async def looks(_request: ModelRequest) -> AsyncIterator[StreamEvent]:
        diff = await session_diff(app, session)
        found.append([(each.file, each.status) for each in diff])
        copy = await forked(app, session)
        assert await session_diff(app, copy.id) == diff
        for event in text("done"):
            yield event

    answers = (shell("touch made"), looks, shell("rm made"), looks)
    async with played(tmp_path, *answers) as (app, session):
        await ask(app, session)
        await ask(app, session)

    assert found == [[("made", "added")], []]


@pytest.mark.usefixtures("project")
async def test_a_diff_at_the_end_of_a_run_has_the_changes_of_its_last_step(tmp_path: Path) -> None:
    begun, ends = tmp_path / "begun", tmp_path / "ends"
    os.mkfifo(ends)
    env = git_that_waits(tmp_path, begun, ends)

    async def works(_request: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in shell(f"touch made; : > {begun}; sleep 30"):
            yield event

    async with played(tmp_path, works, env=env) as (app, session):
        prompt = asyncio.create_task(app.prompt(session, "go"))
        await until(begun.exists)
        ending = asyncio.create_task(app.abort(session))
        await asyncio.to_thread(ends.read_text)  # git has begun: the last step is looked at
        diff = asyncio.create_task(session_diff(app, session))
        await asyncio.to_thread(ends.write_text, "go on")
        await asyncio.wait((prompt, ending))

        assert [(each.file, each.status) for each in await diff] == [("made", "added")]


def git_that_waits(folder: Path, begun: Path, ends: Path) -> dict[str, str]:
    """An environment with a git that says so in a pipe and waits there, once `begun` exists."""
    (folder / "bin").mkdir()
    shim = folder / "bin/git"
    wait = f"if rm {begun} 2> /dev/null; then echo here > {ends}; read -r _ < {ends}; fi"
    shim.write_text(f'#!/bin/sh\n{wait}\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    return {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder)}


async def test_a_subagent_s_files_are_its_caller_s_too(tmp_path: Path, project: Path) -> None:
    @tool(permission="task", effect="delegates")
    async def delegate(context: ToolContext) -> str:
        """Have a subagent work."""
        result = await context.run_subagent("helper", "write", description="write")
        return result.text

    answers = (calls(call("delegate", "{}")), written("a.txt", "child"), text("child done"))
    provider = Played(*answers, text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(delegate, put)) as app:
        session = (await app.create_session()).id
        prompt = await ask(app, session)

        await reverted(app, session, prompt)

    assert (project / "a.txt").read_text() == "one\n"


async def test_a_file_that_is_written_and_not_told_of_yet_is_its_writer_s_alone(
    tmp_path: Path, project: Path
) -> None:
    written_there, noticed = asyncio.Event(), asyncio.Event()

    @tool(permission="edit", effect="edits")
    async def slow(context: ToolContext) -> str:
        """Write a file, and say so much later."""
        place = context.directory / "slow.txt"
        await context.files.replace(place, b"slow")
        written_there.set()
        await noticed.wait()
        await context.record_edit(place)
        return "written"

    @tool(permission="bash")
    async def quick(context: ToolContext) -> str:
        """Write a file beside it, and never say so."""
        await written_there.wait()
        (context.directory / "quick.txt").write_text("quick")
        return "written"

    async def chooses(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        name = "slow" if "slow" in repr(request.messages[0].content) else "quick"
        for event in text("done") if len(request.messages) > 1 else calls(call(name, "{}")):
            yield event

    provider = Played(*[chooses] * 4)
    async with opened(tmp_path, provider, ToolsPlugin(slow, quick)) as app:
        sessions = {name: (await app.create_session()).id for name in ("slow", "quick")}
        async with asyncio.TaskGroup() as group:
            group.create_task(app.prompt(sessions["slow"], "slow"))
            await app.prompt(sessions["quick"], "quick")
            noticed.set()

        told = {name: await patches(app, session) for name, session in sessions.items()}

    assert {name: [patch.files for patch in each] for name, each in told.items()} == {
        name: [(str(project / f"{name}.txt"),)] for name in sessions
    }


async def test_a_step_costs_one_process_of_git_at_most_and_the_request_goes_first(
    tmp_path: Path, project: Path
) -> None:
    log = tmp_path / "processes"
    log.touch()
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin/git"
    shim.write_text(f'#!/bin/sh\necho x >> {log}\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    before: list[int] = []

    def counting(answer: Sequence[StreamEvent]) -> Callable[[object], AsyncIterator[object]]:
        async def stream(_request: object) -> AsyncIterator[object]:
            before.append(len(log.read_text().split()))
            for event in answer:
                yield event

        return stream

    answers = [
        *(written("a.txt", str(number)) for number in range(3)),
        *(shell(f"echo {number} > src/b.txt") for number in range(3)),
    ]
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    turns = [*answers, text("done"), *answers, text("done")]
    async with played(tmp_path, *map(counting, turns), env=env) as (app, session):
        await ask(app, session)
        await ask(app, session)
        at_end = len(log.read_text().split())

    costs = [after - before for before, after in pairwise([*before, at_end])]
    first, second = costs[:7], costs[7:]
    assert before[0] == 0
    # A look at the start, none for what tools tell; where the kernel tells, none for commands.
    assert first[:4] == [1, 0, 0, 0]
    assert max(first[4:6]) <= 1
    # At the end of the turn also, once, the contents that its diff begins with.
    assert first[6] <= 2
    assert max(second) <= 1


@tool(effect="reads")
async def look() -> str:
    """Look at nothing."""
    return "nothing"


async def test_no_snapshot_of_a_run_outlives_it(tmp_path: Path, project: Path) -> None:
    provider = Played(calls(call("look", "{}")), calls(call("look", "{}")), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(look)) as app:
        await ask(app, (await app.create_session()).id)

        names = {task.get_name() for task in asyncio.all_tasks() if not task.done()}

    assert not names & {"snapshot", "last snapshot"}
