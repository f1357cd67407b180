"""Each line that the page of the command line shows is run, and does what it is there for."""

import asyncio
import json
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import randrange
from socket import socket

import pytest

from docs.pages import Block, blocks
from pegboard_plugins.cli.demo import PROJECT, make_project
from plugins.cli.commands import CommandLine, Done, Process, approve
from support.models.model_server import Answer, Body, ModelServer, call, say, step_of
from support.processes.forks import DEVNULL

SHOWN = "ses_dff883d78ffeeZCMUpLBD48u3i"
PORT = "4096"
NOT_RUN = {"pegboard plugins install ./pegboard-dice": "other tests install into a new environment"}
PAGE_BLOCKS = [each for each in blocks("console") if each.page.name == "cli.md"]


def script(body: Body) -> Answer:
    """A model that mends the demonstration's project, and agrees to all else."""
    asked = json.dumps(body["messages"])
    if "The tests of ledger fail." not in asked or not body.get("tools"):
        return say("Well.")
    demo = json.loads((PROJECT.parents[1] / "scripted" / "demo.json").read_text())
    steps = demo["scripts"][-1]["steps"]
    calls = [each for step in steps for each in step.get("calls", ()) if each["tool"] == "edit"]
    read = call("read", {"filePath": "ledger/money.py"})
    patches = (call("apply_patch", {"patchText": patch(**each["input"])}) for each in calls)
    answers = [read, *patches, say("Mended.")]
    return answers[min(step_of(body), len(answers) - 1)]


def patch(filePath: str, oldString: str, newString: str) -> str:
    """An edit in the form of `apply_patch`."""
    old, new = (text.splitlines() for text in (oldString, newString))
    body = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    head = ["*** Begin Patch", f"*** Update File: {filePath}", "@@"]
    return "\n".join([*head, *body, "*** End Patch"])


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    """The command line in the demonstration's project, with what the lines name."""
    project = make_project(tmp_path)
    (project / "error.log").write_text("ValueError: the parts do not add up\n")
    (project / "README.md").write_text("# ledger\n")
    return CommandLine(tmp_path, project)


def lines(block: Block) -> Iterator[str]:
    yield from (line for line in block.text.splitlines() if line.strip())


def test_the_page_has_lines_and_all_but_these_are_run() -> None:
    shown = {line for block in PAGE_BLOCKS for line in lines(block)}

    assert len(shown) > 20
    assert {*NOT_RUN} <= shown


@pytest.mark.parametrize("block", PAGE_BLOCKS, ids=str)
async def test_the_lines_of_a_block_run(block: Block, pegboard: CommandLine) -> None:
    async with ModelServer(script) as server:
        options = {"baseURL": server.url, "apiKey": "k", "wire": "chat"}
        pegboard.configure(model="openai/gpt-5", provider={"openai": {"options": options}})
        await pegboard("run", "a session to go on with")
        await approve(pegboard, "ls *", "git push *", "make *", "cat *")
        stored = json.loads((await pegboard("session", "list", "--format", "json")).out)

        started = []
        port = str(free_port())
        try:
            for line in lines(block):
                said = line.replace(SHOWN, stored[0]["id"]).replace(PORT, port)
                if line.startswith("pegboard serve"):
                    started.append(await listening(pegboard, said))
                elif line not in NOT_RUN:
                    done = await run_line(pegboard, said)
                    assert (line, done.code) == (line, 0), done.err
        finally:
            for each in started:
                each.send_signal(signal.SIGTERM)
                await each.wait()


async def run_line(pegboard: CommandLine, line: str) -> Done:
    """The end of `pegboard ...`, or of `program | pegboard ...`."""
    left, bar, right = line.partition(" | ")
    words = shlex.split(right if bar else left)
    assert words[0] == "pegboard"
    piped = None
    if bar:
        piped = await asyncio.to_thread(output_of, pegboard.project, shlex.split(left))
    return await pegboard(*words[1:], stdin=piped)


def output_of(folder: Path, words: list[str]) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


async def listening(pegboard: CommandLine, line: str) -> Process:
    """Start the server and wait until it prints that it listens."""
    process = await pegboard.start(*shlex.split(line)[1:], stderr=DEVNULL)
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while b"listening on" not in (printed := await process.stdout.readline()):
            assert printed, f"{line} ended with {await process.wait()}"
    return process


def free_port() -> int:
    """Return a free port below those that the system gives to other programs of its own accord."""
    with suppress(OSError), socket() as tried:
        tried.bind(("127.0.0.1", port := randrange(20_000, 30_000)))
        return port
    return free_port()
