"""Commands that bash leaves running, from the call to their end."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pegboard import hookimpl
from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.schema.part import Completed
from pegboard_plugins import bash as bash_plugin
from pegboard_plugins import read as read_plugin
from pegboard_plugins import task as task_plugin
from pegboard_plugins.bash import bash, leaving, processes
from support.models.played import HI, Played, calls, opened, text, tools_of
from support.models.played import call as model_call
from support.processes.processes import alive, remaining
from support.tools.tool_context import Context, call

LIMIT_S = 30
NAP = 78_000_000 + os.getpid()


@pytest.fixture(autouse=True)
def settle(monkeypatch):
    """How long a call waits for its command: a moment, unless a test says else."""
    monkeypatch.setattr(leaving, "SETTLE_S", 0.05)
    return lambda seconds: monkeypatch.setattr(leaving, "SETTLE_S", seconds)


def nap(number: int) -> str:
    """Return a number of seconds that no other process sleeps."""
    return f"{NAP}.{number}"


async def written(path: Path, text: str) -> None:
    """Nothing, once the file has this text."""
    async with asyncio.timeout(LIMIT_S):
        while text not in path.read_text():  # noqa: ASYNC110, ASYNC240 - a file
            await asyncio.sleep(0.01)


@pytest.fixture
async def context(tmp_path):
    context = Context(tmp_path)
    yield context
    await context.owner.end()


async def test_a_server_goes_on_after_the_call_and_can_be_stopped(context):
    started = await call(
        bash,
        context,
        command=f"echo ready; exec sleep {nap(1)}",
        background=True,
        description="Serve",
    )
    await written(Path(started.metadata["outputPath"]), "ready")
    seen = await call(processes, context)
    assert len(alive(nap(1))) == 1

    stopped = await call(processes, context, stop="p1")

    (process,) = context.background.listed()
    assert started.output.removeprefix("ready\n").startswith(
        "[it runs on in the background as p1, with process id"
    )
    assert str(process.output_path) in started.output
    assert (started.title, started.metadata["background"]) == ("Serve", "p1")
    assert seen.output.startswith(f"p1: Serve (process id {process.pid}, running; started ")
    assert seen.metadata == {"running": ["p1"]}
    assert "stopped; started" in stopped.output
    assert remaining(nap(1)) == []


async def test_what_fails_at_once_says_so(context, settle):
    settle(LIMIT_S)
    result = await call(bash, context, command="nonsuch-program", background=True)

    assert "not found" in result.output
    assert result.output.endswith("[exit code 127]")
    assert result.metadata["exit"] == 127


async def test_without_the_file_of_its_output_the_end_is_told_all_the_same(context):
    started = await call(bash, context, command=f"exec sleep {nap(2)}", background=True)
    os.unlink(started.metadata["outputPath"])  # noqa: PTH108 - a test

    stopped = await call(processes, context, stop="p1")

    assert stopped.output.endswith("[its output is lost: No such file or directory]\n\n[stopped]")


async def test_leaving_a_command_running_is_asked_like_running_it(context):
    context.denied.add("bash")

    with pytest.raises(PermissionDeniedError):
        await call(bash, context, command="touch made", background=True)

    (ask,) = [ask for ask in context.asks if ask.permission == "bash"]
    assert (ask.patterns, ask.metadata["background"]) == (("touch made",), True)
    assert not (context.directory / "made").exists()
    assert context.background.listed() == ()


async def test_a_long_output_is_told_by_its_end(context, settle):
    settle(LIMIT_S)
    result = await call(bash, context, command="seq 1 5000; echo last", background=True)

    assert result.output.startswith("[")
    assert "bytes before this are in the file]" in result.output
    assert "last\n\n[exit code 0]" in result.output


async def test_an_aborted_call_leaves_nothing_running(context, settle):
    settle(LIMIT_S)
    calling = asyncio.create_task(
        call(bash, context, command=f"exec sleep {nap(2)}", background=True)
    )
    async with asyncio.timeout(LIMIT_S):
        while not any(each.pid for each in context.background.listed()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    calling.cancel()

    with pytest.raises(asyncio.CancelledError):
        await calling

    assert remaining(nap(2)) == []


async def test_without_processes_there_is_nothing_to_stop(context):
    listed = await call(processes, context)

    assert listed.output == "Nothing was left running in the background."
    with pytest.raises(ToolError, match="no background process 'p1'; there are: none"):
        await call(processes, context, stop="p1")


class Prompted:
    """Gives the session a system prompt, which every request of a real one has."""

    @hookimpl
    async def chat_system_transform(self) -> tuple[str, ...]:
        return ("Be brief.",)


START = (
    f"""{{"command": "echo ready; exec sleep {NAP}.%s", "background": true, "description": "s"}}"""
)


async def test_a_session_is_offered_the_list_once_there_is_something_on_it(tmp_path: Path) -> None:
    provider = Played(
        calls(model_call("bash", START % 3)),
        calls(model_call("processes", '{"stop": "p1"}', call_id="call_1")),
        text("done"),
    )
    async with opened(tmp_path, provider, bash_plugin, Prompted()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        parts = tools_of(await app.list_turns(session.id))

        assert [isinstance(part.state, Completed) for part in parts] == [True, True]
        assert remaining(nap(3)) == []
    offered = [{tool.name for tool in request.tools} for request in provider.requests]
    assert ["processes" in names for names in offered] == [False, True, True]


async def test_processes_end_with_their_session_and_with_the_app(tmp_path: Path) -> None:
    provider = Played(
        *(answer for n in (4, 5) for answer in (calls(model_call("bash", START % n)), text("ok")))
    )
    async with opened(tmp_path, provider, bash_plugin) as app:
        first, second = [await app.create_session() for _ in range(2)]
        await app.prompt(first.id, HI)
        await app.prompt(second.id, HI)
        assert len(alive(nap(4))) == len(alive(nap(5))) == 1

        await app.delete_session(first.id)

        assert (remaining(nap(4)), len(alive(nap(5)))) == ([], 1)
    assert remaining(nap(5)) == []


async def test_its_output_can_be_read_without_asking(tmp_path: Path) -> None:
    async def answer(request):
        said = str(request.messages[-1])
        if "output goes to " in said:
            path = said.partition("output goes to ")[2].partition(";")[0]
            await written(Path(path), "ready")
            events = calls(model_call("read", f'{{"filePath": "{path}"}}', call_id="call_1"))
        else:
            events = text("done")
        for event in events:
            yield event

    provider = Played(calls(model_call("bash", START % 6)), answer)
    async with opened(tmp_path, provider, bash_plugin, read_plugin) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        _, reading = tools_of(await app.list_turns(session.id))

    assert isinstance(reading.state, Completed)
    assert "00001| ready" in reading.state.output


async def test_what_a_subagent_leaves_running_ends_with_its_task(tmp_path: Path) -> None:
    told: list[str] = []

    async def answer(request):
        last = str(request.messages[-1])
        prompt = str([each for each in request.messages if each.role == "user"][-1])
        if "serve" in prompt and "runs on" not in last:
            events = calls(model_call("bash", START % 7))
        elif "serve" in prompt:
            told.append(last)
            assert len(alive(nap(7))) == 1
            events = text("it runs")
        elif "it runs" in last:
            told.append(str(remaining(nap(7))))
            events = text("done")
        else:
            task = {"description": "d", "prompt": "serve", "subagent_type": "helper"}
            events = calls(model_call("task", json.dumps(task)))
        for event in events:
            yield event

    async with opened(tmp_path, Played(answer), bash_plugin, task_plugin) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    assert "until your task is done" in told[0]
    assert told[1:] == ["[]"]


PROGRAM = """
import asyncio, sys
from pathlib import Path
from support.models.played import HI, Played, call, calls, opened, text
from pegboard_plugins import bash

async def main():
    provider = Played(calls(call("bash", sys.argv[2])), text("done"))
    async with opened(Path(sys.argv[1]), provider, bash) as app:
        await app.prompt((await app.create_session()).id, HI)
        print("begun", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc to find processes in")
def test_when_the_program_is_killed_nothing_goes_on(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path), START % 8]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        until = time.monotonic() + LIMIT_S
        while not any(line.startswith("sleep") for line in alive(nap(8))):
            assert time.monotonic() < until
            time.sleep(0.02)

        program.kill()

    assert remaining(nap(8)) == []
