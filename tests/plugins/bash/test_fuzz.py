"""Any line is judged in bounded time, and what bash really runs was in the judgement."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard_plugins.bash.scan import Scan, StartPlace, scan
from plugins.bash.shell_lines import PROGRAMS, lines

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ", "2000"))
"""How many lines are made up; 20,000 take some minutes. Unless asked for, always the same ones."""
SAME = "PEGBOARD_FUZZ" not in os.environ
LINES_RUN = max(100, EXAMPLES // 20)
pytestmark = [pytest.mark.long, pytest.mark.timeout(60 + EXAMPLES / 10)]
REAL = ("sh", "bash", "env", "nohup", "timeout", "nice", "xargs", "find", "sleep")
UNLIMITED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=SAME,
)
AFTERWARDS_S = 0.05
"""A process substitution may still run when its line has ended."""
NOISE = st.sampled_from(
    (
        *("\\\n", "'", '"', "`", "$(", ")", "${", "}", "((", "))", "<<E\n", "\nE\n", "|", "&", ";"),
        *("\r", "\t", "\x1b[2K", "\u202e", "\u200b", "\ud800", "é", "\0", "{a,b}", "[[ ", " ]]"),
        *("#", "!", "=", "~", "*", "?", "[", "]", "<(", ">(", ">|", "$'", '$"', "sudo ", "eval "),
    )
)


@st.composite
def mutated(draw):
    line = draw(lines)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        cut = draw(st.integers(0, 3))
        line = line[:at] + draw(NOISE) + line[at + cut :]
    return line


@UNLIMITED
@given(mutated())
def test_every_line_is_judged_in_bounded_time(line):
    started = time.process_time()

    found = scan(
        line, StartPlace(cwd=Path("/w/proj"), home=Path("/home/u"), worktree=Path("/w/proj"))
    )

    assert isinstance(found, Scan)
    assert time.process_time() - started < 2


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with stubs that note their names beside themselves, and the real wrappers."""
    root = tmp_path_factory.mktemp("shell")
    stub = root / "stub"
    stub.write_text('#!/bin/sh\necho "${0##*/}" >> "${0%/*}/ran"\n')
    stub.chmod(0o755)
    (root / "work" / "dir").mkdir(parents=True)
    return root


def really_run(place, line):
    """The stubs that a real bash starts for the line, in a folder of its own."""
    with TemporaryDirectory(dir=place) as folder:
        programs = Path(folder)
        for name in PROGRAMS:
            (programs / name).symlink_to(place / "stub")
        for name in REAL:
            (programs / name).symlink_to(shutil.which(name))
        process = subprocess.Popen(
            [shutil.which("bash") or "bash", "-c", line],
            cwd=place / "work",
            env={"PATH": folder, "HOME": str(place / "work")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end(process)
        log = programs / "ran"
        return set(log.read_text().split()) if log.exists() else set()


def end(process):
    """Give what the line has started the time to note itself, and end the rest."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    deadline = time.monotonic() + AFTERWARDS_S
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@settings(UNLIMITED, max_examples=LINES_RUN)
@given(line=lines)
def test_what_bash_runs_was_judged(place, line):
    found = scan(line, StartPlace(cwd=place / "work", home=place / "work"))
    judged = {argv[0].rpartition("/")[2] for argv in found.commands}

    ran = really_run(place, line)

    assert found.unclear or ran <= judged
