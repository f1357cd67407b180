"""A git that hangs, prints without end or leaves children: it is ended, and people are told."""

import asyncio
import logging
import os
import signal
from pathlib import Path

import pytest

from pegboard_plugins.snapshots import git as shadow
from plugins.cli.commands import CommandLine, finished
from support.models.model_server import ModelServer, by_step, call, say
from support.processes.processes import MARK, alive, remaining
from support.tools.worktrees import git, small_repository, taking, writing

HANGS = f"""#!/bin/bash
trap '' TERM
(exec -a "sleep {MARK}" sleep 1000) &
setsid bash -c 'exec -a "sleep {MARK}" sleep 1000' &
wait
"""
FLOODS = f"#!/bin/sh\nexec yes {MARK}\n"
LEAVES = f"""#!/bin/bash
setsid bash -c 'exec -a "sleep {MARK}" sleep 1000' &
exec "{{git}}" "$@"
"""


def stand_in(folder: Path, script: str) -> dict[str, str]:
    """An environment in which this is git."""
    folder.mkdir()
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository."""
    return small_repository(tmp_path / "project")


@pytest.mark.parametrize(
    "case",
    [(HANGS, "took more than 1 s"), (FLOODS, "printed more than 256 MiB")],
    ids=["hangs", "floods"],
)
async def test_a_git_that_does_not_end_is_ended_with_its_children_and_not_tried_again(
    tmp_path: Path,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    case: tuple[str, str],
) -> None:
    script, why = case
    monkeypatch.setattr(shadow, "TIME_LIMIT_S", 1.0 if "took" in why else 50.0)
    async with taking(project, stand_in(tmp_path / "bin", script)) as snapshots:
        tree = await snapshots.track()
        left = remaining(MARK)
        again = await snapshots.track(fresh=True)
        refused = snapshots.refused

    assert (tree, again, left) == (None, None, [])
    assert why in refused
    assert [each for each in caplog.messages if why in each and "cannot be undone" in each]


async def test_people_are_told_that_git_is_waited_for(
    tmp_path: Path,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(shadow, "SLOW_S", 0.1)
    slow = '#!/bin/sh\nsleep 0.3\nexec "{git}" "$@"\n'
    env = stand_in(tmp_path / "bin", slow.replace("{git}", git(project, "--exec-path") + "/git"))
    with caplog.at_level(logging.WARNING):
        async with taking(project, env) as snapshots:
            tree = await snapshots.track()

    assert tree is not None
    assert [each for each in caplog.messages if "git ls-files has not ended after 0.1 s" in each]


async def test_what_git_leaves_running_is_ended_and_not_waited_for(
    tmp_path: Path, project: Path
) -> None:
    real = git(project, "--exec-path") + "/git"
    env = stand_in(tmp_path / "bin", LEAVES.replace("{git}", real))
    async with taking(project, env) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            (project / "a.txt").write_text("two\n")
        after = await snapshots.track()
        left = remaining(MARK)

    assert None not in (before, after)
    assert before != after
    assert left == []


async def test_the_end_of_the_program_ends_git(tmp_path: Path, project: Path) -> None:
    async with taking(project, stand_in(tmp_path / "bin", HANGS)) as snapshots:
        looking = asyncio.create_task(snapshots.track())
        while not alive(MARK):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.02)
        await snapshots.aclose()
        tree = await looking

    assert (tree, remaining(MARK)) == (None, [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_is_heeded_while_git_hangs(
    tmp_path: Path, project: Path, number: signal.Signals
) -> None:
    pegboard = CommandLine(tmp_path, project, stand_in(tmp_path / "bin", HANGS))
    answers = call("bash", {"command": "echo hi", "description": "Say"}), say("Done.")
    async with ModelServer(by_step(*answers)) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        process = await pegboard.start("run", "hi")
        while not alive(MARK):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.05)
        process.send_signal(number)
        done = await finished(process)  # which waits for half as long as git would take

    assert done.code == 130
    assert "interrupted; the session is saved" in done.err
    assert remaining(MARK) == []
