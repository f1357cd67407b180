"""A bash sets its limits itself, and its line knows nothing of it."""

import asyncio
import os
import subprocess
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from pegboard.enclosing import ProcessResult
from pegboard.processes import family as family_module
from pegboard.processes.limits import Bounds
from pegboard.processes.process import run_process, service_process
from pegboard.schema.config import ProcessLimits


async def in_bash(line: str, folder: Path, **given: Any) -> ProcessResult:
    """What a bash prints that sets its limits itself."""
    return await run_process(
        ["bash", "-p", "-c", line],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        timeout_s=30,
        limit_bytes=1 << 20,
        bounds=Bounds(ProcessLimits(open_files=300)),
        **given,
    )


FACTS = """ulimit -Sn; echo "$BASH_EXECUTION_STRING" $LINENO $?
echo $LINENO ${AGENT_LIMITS-none}; env | grep -c AGENT_LIMITS; type eval >&2
grep -c . /proc/$BASHPID/cmdline; nothing-there"""


async def test_a_bash_sets_its_limits_itself_and_its_line_knows_nothing_of_it(
    tmp_path: Path,
) -> None:
    bounds = Bounds(ProcessLimits(open_files=300))
    argv, _ = bounds.around(["bash", "-p", "-c", "true"], cwd=tmp_path, env=os.environ, seal=7)
    env = {**os.environ, "LC_ALL": "C"}
    line = f"ulimit -Sn 300; exec bash -p -c '{FACTS}'"
    bash = ["bash", "-p", "-c", line]
    plain = await run_process(bash, cwd=tmp_path, env=env, timeout_s=30, limit_bytes=1 << 20)

    result = await in_bash(FACTS, tmp_path)

    assert argv[0] == "bash"
    assert result.output == plain.output
    assert result.output.startswith("300\n")


UNREADABLE = ("echo a; foo )", "foo (\n)", "echo 'open", "if", "x" * 5000 + " )")


@pytest.mark.parametrize("line", UNREADABLE)
async def test_an_error_of_syntax_shows_the_line_as_it_was_written(
    tmp_path: Path, line: str
) -> None:
    bash = ["bash", "-p", "-c", line]
    env = {**os.environ, "LC_ALL": "C"}
    plain = await run_process(bash, cwd=tmp_path, env=env, timeout_s=30, limit_bytes=1 << 20)
    heard: list[str] = []

    result = await in_bash(line, tmp_path, on_output=heard.append)

    assert (result.output, result.exit_code) == (plain.output, plain.exit_code)
    assert "".join(heard) == plain.output


@pytest.mark.parametrize("spare", [0, 1, 30])
async def test_the_longest_line_runs_within_its_limits(tmp_path: Path, spare: int) -> None:
    line = "ulimit -Sn; : ".ljust((128 << 10) - 1 - spare, "x")

    assert (await in_bash(line, tmp_path)).output == "300\n"


async def test_a_service_that_is_a_bash_has_its_limits(tmp_path: Path) -> None:
    argv = ["bash", "-p", "-c", "ulimit -Sn; echo ${AGENT_LIMITS-none}"]
    bounds = Bounds(ProcessLimits(open_files=300))
    async with service_process(argv, cwd=tmp_path, env=os.environ, bounds=bounds) as command:
        process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=PIPE)
        output, _ = await process.communicate()

    assert output == b"300\nnone\n"


async def test_the_end_of_a_command_looks_at_no_process_of_others_where_a_group_knows_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Bounds(ProcessLimits()).group() as group:
        if group is None:
            pytest.skip("only root has control groups, where the machine lets it make them")
    looked_at: set[str] = set()
    read = family_module._read

    def noted(path: str) -> bytes:
        looked_at.add(path.split("/")[2])
        return read(path)

    monkeypatch.setattr(family_module, "_read", noted)
    others: list[subprocess.Popen[bytes]] = []

    def begun(_: int) -> None:
        others.extend(subprocess.Popen(["sleep", "60"]) for _ in range(5))

    try:
        result = await in_bash("sleep 0.2; echo done", tmp_path, on_start=begun)
    finally:
        for other in others:
            other.kill()
            other.wait()

    assert result.output == "done\n"
    assert looked_at & {str(other.pid) for other in others} == set()
