"""A fork cannot be told from a process that was started anew."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine, Done, finished
from support.processes import forks

TELL = """
import json, os, resource, signal, sys, tempfile, threading, time

def stream(each):
    return [each.name, each.mode, each.encoding, each.errors, each.line_buffering,
            each.write_through, each.isatty()]

def plain(told):
    return told if isinstance(told, int | str | None) else getattr(told, "__name__", "?")

print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "flags": list(sys.flags),
    "streams": [stream(each) for each in (sys.stdin, sys.stdout, sys.stderr)],
    "env": dict(os.environ), "folder": os.getcwd(), "temporary": tempfile.gettempdir(),
    "zone": time.tzname, "threads": [each.name for each in threading.enumerate()],
    "signals": {number: plain(signal.getsignal(number)) for number in signal.valid_signals()},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "open": sorted(int(name) for name in os.listdir("/proc/self/fd") if int(name) < 100),
    "limits": [resource.getrlimit(each) for each in range(8)],
    "session": os.getsid(0), "group": os.getpgid(0), "nice": os.nice(0),
    "umask": next(line for line in open("/proc/self/status") if line.startswith("Umask")),
    "said": sys.stdin.read(),
}))
sys.stderr.write("last words")
sys.exit(7)
"""
SCRIPTED = "scripted//here"
COMMANDS = (
    ("--version",),
    ("--help",),
    ("run", "--no-such-option"),
    ("no-such-command",),
    ("config", "show", "--format", "json"),
    ("explain", "bash", "git push && rm -rf ~"),
    ("session", "show", "ses_nothing"),
    ("trust", "list"),
    ("run", "-m", "nobody/nothing", "hi"),
    ("run", "-m", SCRIPTED, "hello"),
)


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path, tmp_path / "project")


def lasting(text: str) -> str:
    """What is said of a command, without the ids and seconds of this one."""
    return re.sub(r"ses_\w+|\d\.\d s", "...", text)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
async def test_a_command_says_and_ends_as_one_that_was_started_anew(
    pegboard: CommandLine, words: tuple[str, ...]
) -> None:
    model = pegboard.script({"text": "Hello."})
    words = tuple(model if word == SCRIPTED else word for word in words)
    forked = await pegboard(*words)
    fresh = await finished(
        await asyncio.create_subprocess_exec(
            forks.PEGBOARD,
            *words,
            cwd=pegboard.project,
            env=pegboard.environment(),
            stdin=forks.DEVNULL,
            stdout=forks.PIPE,
            stderr=forks.PIPE,
        )
    )

    again = Done(fresh.code, fresh.out, lasting(fresh.err))
    assert Done(forked.code, forked.out, lasting(forked.err)) == again


def test_a_program_finds_nothing_that_tells_a_fork(tmp_path: Path) -> None:
    program = tmp_path / "tell.py"
    program.write_text(TELL)
    command = [sys.executable, str(program), "one", "two words"]
    env = {**forks.environment(), "TMPDIR": str(tmp_path), "TZ": "Asia/Tokyo", "MORE": "\udcff"}
    told, processes = [], []

    for begin in (forks.start, subprocess.Popen):
        process = begin(
            command,
            cwd=tmp_path,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(b"some words")
        process.stdin.close()
        told.append({**json.loads(process.stdout.read()), "last": process.stderr.read()})
        told[-1]["code"] = process.wait(60)
        process.stdout.close()
        process.stderr.close()

    assert [type(each) for each in processes] == [forks.Fork, subprocess.Popen]
    assert told[0] == told[1]
    assert (told[0]["said"], told[0]["last"], told[0]["code"]) == ("some words", b"last words", 7)


async def test_what_a_command_changes_in_its_modules_is_its_own(pegboard: CommandLine) -> None:
    program = pegboard.home / "change.py"
    program.write_text("import pegboard as p; print(hasattr(p, 'mark')); p.mark = 1\n")
    command = [sys.executable, str(program)]

    async def changed() -> Done:
        env = pegboard.environment()
        return await finished(
            await forks.begin(
                command, cwd=pegboard.home, env=env, stdout=forks.PIPE, stderr=forks.PIPE
            )
        )

    assert [await changed(), await changed()] == [Done(0, "False\n", "")] * 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_a_signal_ends_it_with_the_signal_s_code(tmp_path: Path, number: int) -> None:
    program = tmp_path / "sleep.py"
    program.write_text("import time; print('here', flush=True); time.sleep(100)\n")
    command = [sys.executable, str(program)]

    process = forks.start(
        command, cwd=tmp_path, env=forks.environment(), stdout=forks.PIPE, stderr=forks.DEVNULL
    )
    assert process.stdout
    assert process.stdout.readline() == b"here\n"
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    process.send_signal(number)

    assert await asyncio.to_thread(process.wait, 20) == process.poll() == -number
    process.stdout.close()


async def test_it_is_started_anew_where_python_reads_something_else_at_its_start(
    pegboard: CommandLine,
) -> None:
    one = await pegboard.start("--version")
    pegboard.env["PYTHONPATH"] = str(pegboard.home)
    other = await pegboard.start("--version")

    assert (type(one), type(other)) == (forks.Running, asyncio.subprocess.Process)
    assert await finished(one) == await finished(other) == Done(0, "pegboard 0.1.0\n", "")
