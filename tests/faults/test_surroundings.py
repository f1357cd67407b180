"""What the machine lacks or refuses is told in a sentence: no traceback, and no crash file."""

import asyncio
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plugins.cli.commands import COMMAND, CommandLine, Done, Process, finished
from support.models.model_server import ModelServer, by_step, call, say

GIB = 1 << 30
BLOCKS = """
import time
from pathlib import Path
from pegboard import tool

@tool
async def block() -> str:
    '''Hold up everything.'''
    Path("blocked").touch()
    time.sleep(1000)
    return ""
"""


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    """The command line, in an empty project."""
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path, tmp_path / "project")


def ended(
    pegboard: CommandLine,
    *words: str,
    before: Callable[[], None] | None = None,
    through: str = 'exec "$@"',
) -> Done:
    """How a command ends that a shell starts, after `before` in its process."""
    done = subprocess.run(
        ["/bin/sh", "-c", through, "sh", COMMAND, *words],
        cwd=pegboard.project,
        env=pegboard.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
        preexec_fn=before,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def is_a_sentence(done: Done, pegboard: CommandLine, *words: str) -> bool:
    """Whether the last line has all the words, and nothing looks like a crash."""
    last = done.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert [word for word in words if word not in last] == []
    assert "Traceback" not in done.err + done.out
    return list(pegboard.home.rglob("crash-*")) == []


def no_threads() -> None:
    """No thread finds room for its stack."""
    resource.setrlimit(resource.RLIMIT_STACK, (16 * GIB, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, 8 * GIB))


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY,
    reason="the stack's limit cannot be raised",
)
@pytest.mark.parametrize("words", [("session", "list"), ("run", "hi"), ("serve", "--port=0")])
def test_a_machine_without_a_thread_to_spare(pegboard: CommandLine, words: tuple[str, ...]) -> None:
    done = ended(pegboard, *words, before=no_threads)

    assert is_a_sentence(done, pegboard, "thread", "ulimit")
    assert done.code == 1


@pytest.mark.parametrize(
    "words", [("models",), ("session", "list", "--format=json"), ("run", "--format=json", "hi")]
)
def test_an_output_without_room(pegboard: CommandLine, words: tuple[str, ...]) -> None:
    done = ended(pegboard, *words, through='exec "$@" >/dev/full')

    assert is_a_sentence(done, pegboard, "No space left on device", "make room")
    assert done.code == 1


def test_a_version_that_cannot_be_said(pegboard: CommandLine) -> None:
    done = ended(pegboard, "--version", through='exec "$@" >/dev/full')

    assert (done.code, done.err) == (1, "")


@pytest.mark.parametrize("words", [("session", "list"), ("run", "hi"), ("serve", "--port=0")])
def test_a_current_folder_that_is_gone(pegboard: CommandLine, words: tuple[str, ...]) -> None:
    through = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = ended(pegboard, *words, through=through)

    assert is_a_sentence(done, pegboard, "folder", "-C")
    assert done.code == 2


IGNORES_CHILDREN = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""


async def test_the_exit_code_of_a_command_is_known_whatever_the_parent_ignores(
    pegboard: CommandLine,
) -> None:
    words = (sys.executable, "-c", IGNORES_CHILDREN, COMMAND, "run", "hi")
    async with ModelServer(by_step(call("bash", {"command": "exit 3"}), say("Done."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=pegboard.project,
            env=pegboard.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        code = await asyncio.wait_for(process.wait(), 40)
        shown = await pegboard("session", "show", "--format", "json")

    assert code == 0
    assert '"exit":3' in shown.out.replace(" ", "")


async def blocked(pegboard: CommandLine, server: ModelServer) -> Process:
    """A run whose event loop turns no more."""
    tools = pegboard.home / "config" / "tool"
    tools.mkdir(parents=True)
    (tools / "block.py").write_text(BLOCKS)
    pegboard.use_model(server.url, permission={"*": "allow"})
    process = await pegboard.start("run", "hi")
    while not (pegboard.project / "blocked").exists():  # noqa: ASYNC110 - a process tells it
        await asyncio.sleep(0.05)
    return process


@pytest.mark.parametrize("times", [1, 2])
async def test_a_signal_ends_a_run_whose_event_loop_is_held_up(
    pegboard: CommandLine, times: int
) -> None:
    async with ModelServer(by_step(call("block", {}), say("Done."))) as server:
        process = await blocked(pegboard, server)
        for _ in range(times):
            process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.2)  # two that come at once are one
        done = await finished(process)

    assert done.code == 130
    assert times == 2 or is_a_sentence(done, pegboard, "4 s")


async def test_damaged_keys_are_said_with_their_file(pegboard: CommandLine) -> None:
    file = pegboard.home / "data" / "auth.json"
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text('{"anthropic":{"type":"api","key":"their-secret"},"gro')

    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "hi")

    assert done.code == 0
    assert f"warning: {file} cannot be used, and the keys in it do not count" in done.err
    assert "their-secret" not in done.err
