"""Trial runs of programs: they get no key, and leave no process."""

import os
import select
import subprocess
from pathlib import Path

import pytest

from pegboard.unstable import try_program


def test_a_trial_that_takes_too_long_leaves_no_process(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    wrapper = ("/bin/sh", "-c", f"exec 3>{pipe}; sleep 600; :")

    with pytest.raises(subprocess.TimeoutExpired):
        try_program(wrapper, timeout_s=1)

    assert select.select([reader], [], [], 60)[0]  # the end: no process has it open any more
    os.close(reader)


def test_a_trial_gets_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    monkeypatch.setenv("ODD_NAME", "1234567890")

    done = try_program(("/usr/bin/env",), timeout_s=60)

    names = {line.partition("=")[0] for line in done.stdout.decode().splitlines()}
    assert "PATH" in names
    assert not names & {"OPENAI_API_KEY", "ODD_NAME"}
