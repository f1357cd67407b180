import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard.processes.background import MOST_RUNNING, ToolProcesses
from pegboard.schema.config import ProcessLimits
from support.processes.processes import remaining

LIMIT_S = 30
NAP = 77_000_000 + os.getpid()
"""A number of seconds that no other process sleeps."""


@asynccontextmanager
async def session(folder, *, name="ses_1"):
    processes = ToolProcesses(ProcessLimits())
    try:
        yield processes.background(name, output_dir=folder / "output")
    finally:
        await processes.end()


def start(view, command, folder):
    return view.start(["bash", "-c", command], cwd=folder, env=dict(os.environ), title=command)


async def written(path: Path, text: str) -> str:
    """The file's content once `text` is in it."""
    async with asyncio.timeout(LIMIT_S):
        while text not in (content := path.read_text()):  # noqa: ASYNC110, ASYNC240 - a file
            await asyncio.sleep(0.01)
    return content


async def test_a_process_goes_on_and_its_output_is_in_a_file(tmp_path):
    async with session(tmp_path) as view:
        process = await start(view, f"echo ready; exec sleep {NAP}.1", tmp_path)

        content = await written(process.output_path, "ready")

        assert content == "ready\n"
        assert process.running
        assert process.pid > 0
        assert view.listed() == (process,)
    assert remaining(f"{NAP}.1") == []


@pytest.mark.parametrize(
    ("end", "code", "ending"),
    [
        ("exit 3", 3, "exit code 3"),
        ("kill -9 $$", -9, "ended by signal 9"),
        ("sleep {nap}.4 &", 0, "exit code 0; what it had left running was ended"),
    ],
)
async def test_a_process_that_ends_says_how(tmp_path, end, code, ending):
    async with session(tmp_path) as view:
        process = await start(view, f"echo out; {end.format(nap=NAP)}", tmp_path)

        ended = await view.wait(process.id, limit_s=LIMIT_S)

    assert (ended.running, ended.exit_code, ended.ending) == (False, code, ending)
    assert process.output_path.read_text() == f"out\n\n[{ending}]\n"
    assert process.output_path.stat().st_mode & 0o777 == 0o600


async def test_a_stopped_process_ends_with_all_that_it_has_started(tmp_path):
    async with session(tmp_path) as view:
        command = f"setsid sleep {NAP}.2 & sleep {NAP}.2 & echo on; wait"
        process = await start(view, command, tmp_path)
        await written(process.output_path, "on")

        ended = await view.stop(process.id)

        assert (ended.running, ended.exit_code, ended.ending) == (False, None, "stopped")
        assert remaining(f"{NAP}.2") == []
        assert await view.stop(process.id) == ended


async def test_a_deleted_session_takes_its_processes_with_it_and_no_others(tmp_path):
    processes = ToolProcesses(ProcessLimits())
    views = [processes.background(name, output_dir=tmp_path) for name in ("a", "b")]
    for view, word in zip(views, (f"{NAP}.3", f"{NAP}.4"), strict=True):
        await start(view, f"exec sleep {word}", tmp_path)

    await processes.end("a")

    assert processes.background("a", output_dir=tmp_path).listed() == ()
    assert remaining(f"{NAP}.3") == []
    assert [each.running for each in views[1].listed()] == [True]
    await processes.end()
    assert remaining(f"{NAP}.4") == []


async def test_no_more_than_a_few_run_at_the_same_time(tmp_path):
    async with session(tmp_path) as view:
        started = [await start(view, f"exec sleep {NAP}.5", tmp_path) for _ in range(MOST_RUNNING)]

        with pytest.raises(ToolError, match="stop one first"):
            await start(view, f"exec sleep {NAP}.5", tmp_path)
        await view.stop(started[0].id)
        await start(view, f"exec sleep {NAP}.5", tmp_path)

        assert sum(each.running for each in view.listed()) == MOST_RUNNING


async def test_what_cannot_run_is_no_process_and_leaves_no_file(tmp_path):
    async with session(tmp_path) as view:
        with pytest.raises(ToolError, match="cannot run"):
            await start(view, "true", tmp_path / "missing")

        assert view.listed() == ()
        assert list((tmp_path / "output").iterdir()) == []


async def test_an_unknown_process_is_answered_with_those_that_there_are(tmp_path):
    async with session(tmp_path) as view:
        process = await start(view, "true", tmp_path)

        with pytest.raises(ToolError, match=f"no background process 'p9'; there are: {process.id}"):
            await view.stop("p9")


async def test_the_file_of_a_process_that_writes_for_ever_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr("pegboard.processes.background.OUTPUT_LIMIT_BYTES", 1000)
    async with session(tmp_path) as view:
        process = await start(view, "head -c 100000 /dev/zero | tr '\\0' x", tmp_path)

        await view.wait(process.id, limit_s=LIMIT_S)

    lost = "[what it wrote after that is lost]"
    assert process.output_path.read_text() == f"{'x' * 1000}\n{lost}\n[exit code 0]\n"


async def test_no_process_begins_after_the_end_of_all(tmp_path):
    processes = ToolProcesses(ProcessLimits())
    before = processes.background("ses_1", output_dir=tmp_path)
    env = dict(os.environ)
    await processes.end()

    for view in (before, processes.background("ses_2", output_dir=tmp_path)):
        with pytest.raises(ToolError, match="cannot run 'true'"):
            await view.start(["true"], cwd=tmp_path, env=env, title="late")
    with pytest.raises(ToolError, match="the program ends"):
        await processes.run(["true"], cwd=tmp_path, env=env, timeout_s=9, limit_bytes=9)
    with pytest.raises(ToolError, match="the program ends"):
        processes.service(["true"], cwd=tmp_path, env=env)
