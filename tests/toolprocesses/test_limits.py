"""What a command may take of the machine; the faults themselves are in faults/test_tool_faults."""

import asyncio
import os
import pwd
import resource
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard.processes import limits as limits_module
from pegboard.processes import process as process_module
from pegboard.processes.limits import Bounds, FamilyWatch, Groups, Machine, machine
from pegboard.processes.process import run_process, service_process
from pegboard.schema.config import ProcessLimits
from support.plugins.config_place import Place
from support.processes.processes import alive, remaining

NUMBER = str(73_000_000 + os.getpid())
CROWD = f"for n in $(seq 60); do sleep {NUMBER} & done; wait"


async def ran(command: str, folder: Path, *, env: dict[str, str] | None = None, **limits: int):
    return await run_process(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **(env or {})},
        timeout_s=30,
        limit_bytes=100_000,
        bounds=Bounds(ProcessLimits(**limits)),
    )


async def test_a_command_starts_with_its_limits(tmp_path: Path) -> None:
    own = int(Path("/proc/self/oom_score_adj").read_text())  # noqa: ASYNC240 - a test
    told = "ulimit -Sn; ulimit -Hn; cat /proc/self/oom_score_adj; cat /proc/self/comm"

    result = await ran(told, tmp_path, open_files=300)

    assert result.output.split() == ["300", "300", str(min(own + 500, 1000)), "cat"]


async def test_limits_are_never_looser_than_those_of_the_program(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    result = await ran("ulimit -Sn; ulimit -Hn", tmp_path, open_files=hard + 1)

    assert result.output.split() == [str(soft), str(hard)]


async def test_a_command_within_its_limits_is_left_alone(tmp_path: Path) -> None:
    nap = f"for n in 1 2 3 4; do sleep 0.{NUMBER} & done; wait; echo $?; exit 3"

    result = await ran(nap, tmp_path, processes=20, memory_mb=1000)

    assert (result.output, result.exit_code, result.exceeded) == ("0\n", 3, "")


@pytest.mark.parametrize("left", ["", "env -i setsid "], ids=["in its group", "in hiding"])
async def test_too_many_processes_are_ended_and_said_to_be(tmp_path: Path, left: str) -> None:
    result = await ran(CROWD.replace("sleep", f"{left}sleep"), tmp_path, processes=30)

    assert (result.exceeded, result.exit_code) == ("more than 30 processes", None)
    assert not result.timed_out
    assert not result.background_ended
    assert remaining(NUMBER) == []


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc to find processes in")
async def test_a_daemon_that_hides_is_found_without_a_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # who gets no group
    daemon = f"setsid -f env -i sleep {NUMBER} >/dev/null 2>&1 </dev/null"

    result = await ran(f"{daemon}; echo begun", tmp_path)

    assert (result.output, result.background_ended) == ("begun\n", True)
    assert remaining(NUMBER) == []


async def test_memory_is_counted_over_all_processes(tmp_path: Path) -> None:
    hog = f"x = bytearray(b'x') * (90 << 20); import time; time.sleep({NUMBER})"
    script = f"for n in 1 2 3; do '{sys.executable}' -c \"{hog}\" & done; wait"

    result = await ran(script, tmp_path, memory_mb=200)

    assert result.exceeded == "more than 200 MB of memory"
    assert remaining(NUMBER) == []


async def served(script: str, folder: Path, **limits: int) -> AsyncIterator[str]:
    """The first line of a service's output, and then what it was ended by, if it was."""
    bounds = Bounds(ProcessLimits(**limits))
    async with service_process(
        ["bash", "-c", script], cwd=folder, env=os.environ, bounds=bounds
    ) as argv:
        process = await asyncio.create_subprocess_exec(*argv, cwd=folder, stdout=PIPE)
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode()
        if limits:
            yield str(await asyncio.wait_for(process.wait(), 30))
    await process.communicate()


async def test_of_a_service_nothing_is_left(tmp_path: Path) -> None:
    script = f"setsid -f env -i sleep {NUMBER}; setsid -f sleep {NUMBER}; echo x; sleep {NUMBER}"

    async for line in served(script, tmp_path):
        assert (line, len(alive(NUMBER)) > 1) == ("x\n", True)

    assert remaining(NUMBER) == []


async def test_a_service_that_takes_too_much_memory_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "SERVICE_TICK_S", 0.05)
    hog = f"x = bytearray(b'x') * (90 << 20); import time; time.sleep({NUMBER})"
    script = f"echo x; for n in 1 2 3; do '{sys.executable}' -c \"{hog}\" & done; wait"

    assert [line async for line in served(script, tmp_path, memory_mb=200)] == ["x\n", "-9"]
    assert remaining(NUMBER) == []


async def test_memory_that_others_give_back_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "SERVICE_TICK_S", 0.05)
    monkeypatch.setattr(limits_module, "LOOK_S", 0.5)
    full = "x = bytearray(b'x') * (400 << 20); print('full', flush=True); input()"
    hog = f"x = bytearray(b'x') * (90 << 20); import time; time.sleep({NUMBER})"
    script = f"echo x; for n in 1 2 3; do '{sys.executable}' -c \"{hog}\" & done; wait"
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", full, stdin=PIPE, stdout=PIPE
    )
    assert other.stdout is not None
    await asyncio.wait_for(other.stdout.readline(), 30)

    lines = []
    async for line in served(script, tmp_path, memory_mb=200):
        lines.append(line)
        if other.returncode is None:
            other.kill()
            await other.communicate()

    assert lines == ["x\n", "-9"]


async def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    fork = (
        "x = bytearray(b'x') * (90 << 20); import os, time;"
        " [os.fork() for _ in range(2)]; time.sleep(1)"
    )

    result = await ran(f"'{sys.executable}' -c \"{fork}\"", tmp_path, memory_mb=200)

    assert result.exceeded == ""


async def test_a_limit_of_nothing_is_none(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    crowd = "for n in $(seq 60); do sleep 0.3 & done; wait; ulimit -Hn"

    result = await ran(crowd, tmp_path, processes=0, open_files=0, memory_mb=0)

    assert (result.output, result.exceeded) == (f"{hard}\n", "")


async def test_variables_that_no_shell_can_name_come_through(tmp_path: Path) -> None:
    odd = {"BASH_FUNC_greet%%": "() { echo hello; }", "a.b-c": "d e", "PLAIN": "x"}

    result = await ran('greet; printenv a.b-c; echo "$PLAIN"', tmp_path, env=odd)

    assert result.output == "hello\nd e\nx\n"


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-file", ".", "a\0b"])
async def test_a_program_that_is_not_there_is_an_error(tmp_path: Path, program: str) -> None:
    with pytest.raises(ToolError, match="cannot run"):
        await run_process(
            [program],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
            timeout_s=1,
            limit_bytes=10,
            bounds=Bounds(ProcessLimits()),
        )


def test_without_a_loss_of_the_machine_no_process_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = Machine(threads=1000, free=8 << 30)
    monkeypatch.setattr(limits_module, "machine", lambda: now)
    looks = []

    def members() -> set[int]:
        looks.append(now)
        return set()

    watch = FamilyWatch(Bounds(ProcessLimits(processes=100, memory_mb=1024)), members)
    for threads, free in ((1099, 8 << 30), (1000, (7 << 30) + (600 << 20))):
        now = Machine(threads=threads, free=free)
        assert watch.exceeded() == ""
    assert looks == []

    now = Machine(threads=1100, free=8 << 30)
    assert watch.exceeded() == ""
    assert len(looks) == 1


def test_a_group_of_the_kernel_is_gone_with_its_command() -> None:
    groups = Groups(100)
    group = groups.new()
    if group is None:
        pytest.skip("no control group can be made here")
    there = f"echo 0 >{group.door}; exec sleep 60"
    with subprocess.Popen(["/bin/sh", "-c", there]) as process:
        limit = time.monotonic() + 30
        while group.members() != {process.pid} and time.monotonic() < limit:
            time.sleep(0.01)
        assert group.members() == {process.pid}
        assert not group.was_full()
        process.kill()

    groups.remove(group)

    assert not group.folder.exists()


def test_a_group_that_is_gone_already_is_not_tried_again() -> None:
    groups = Groups(100)
    group = groups.new()
    if group is None:
        pytest.skip("no control group can be made here")
    group.folder.rmdir()

    groups.remove(group)

    assert group.folder not in groups._left


def as_nobody(answer: int) -> None:
    """In a child process: run a crowd without being root, and write what became of it."""
    os.setgid(pwd.getpwnam("nobody").pw_gid)
    os.setuid(pwd.getpwnam("nobody").pw_uid)
    before = machine().threads
    result = asyncio.run(ran(f"ulimit -u; {CROWD}", Path("/"), processes=30))
    most = int(result.output.split()[0])
    os.write(answer, f"{before < most < before + 10_000} {result.exceeded}".encode())


def test_for_a_user_the_kernel_itself_holds_the_limit() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    reading, writing = os.pipe()

    child = os.fork()
    if child == 0:
        try:
            as_nobody(writing)
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)

    with os.fdopen(reading) as answer:
        assert answer.read() == "True more than 30 processes"


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_project_can_only_lower_the_limits_of_processes(
    tmp_path: Path, *, trusted: bool
) -> None:
    place = Place(tmp_path)
    place.write(place.user / "pegboard.toml", "[limits]\nprocesses = 5000\nopen_files = 0\n")
    place.write(
        place.project / "pegboard.toml",
        "[limits]\nprocesses = 6000\nopen_files = 300\nmemory_mb = 100\n",
    )
    place.write(place.directory / "pegboard.toml", "[limits]\nprocesses = 400\nmemory_mb = 0\n")

    loaded = await place.load(trusted=trusted)

    assert loaded.config.limits == ProcessLimits(processes=400, open_files=300, memory_mb=100)
    assert loaded.untrusted == ()
    assert [line.rpartition(": ")[2] for line in loaded.warnings] == [
        *("limits.processes", "limits.memory_mb"),
    ]


async def test_more_memory_than_the_machine_gives_is_no_lower_limit(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write(place.project / "pegboard.toml", "[limits]\nmemory_mb = 100_000_000\n")

    loaded = await place.load(trusted=True)

    assert loaded.config.limits == ProcessLimits()


def test_of_two_limits_the_lower_one_holds() -> None:
    none = ProcessLimits(processes=0, open_files=0, memory_mb=0)
    some = ProcessLimits(processes=10, open_files=20, memory_mb=30)

    assert none.tighten(some) == some.tighten(none) == some
    assert none.tighten(none) == none
    assert none.tighten(ProcessLimits()) == ProcessLimits()
