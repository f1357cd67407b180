"""Ctrl-C ends a command with 130 and without a traceback, however early it comes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine

STARTED = """
import sys
import pegboard.cli.main as cli

def then_say_so(install=cli.end_at_once_when_interrupted):
    install()
    print("begun", flush=True)

cli.end_at_once_when_interrupted = then_say_so
sys.argv = ["pegboard", *sys.argv[1:]]
cli.main()
"""


@pytest.mark.parametrize("delay_ms", range(0, 120, 6))
def test_an_interrupt_in_the_start_is_130(tmp_path: Path, delay_ms: int) -> None:
    (tmp_path / "project").mkdir()
    pegboard = CommandLine(tmp_path, tmp_path / "project")
    model = pegboard.script({"text": "x", "delay_s": 30})
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, "run", "-m", model, "hi"],
        cwd=pegboard.project,
        env=pegboard.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(delay_ms / 1000)  # each moment of the start is to be met by one of the tests
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()

    assert "Traceback" not in err
    assert "KeyboardInterrupt" not in err
    assert process.returncode == 130, err
    assert list(tmp_path.rglob("crash-*")) == []
