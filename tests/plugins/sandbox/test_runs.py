"""The built-in sandboxes at work: what is possible inside, and how it ends."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard import ToolError
from pegboard.kit.redact import child_env
from pegboard.processes.process import run_process
from pegboard.schema.config import Config
from pegboard_plugins.sandbox.enclosure import Walls
from support.processes.enclosed import (
    BOXES,
    KINDS,
    LIMIT_S,
    SECRET,
    USERS,
    Surroundings,
    attempt,
    site,
)
from support.processes.processes import remaining

WORKSPACE = Config(sandbox="workspace")


@pytest.fixture(scope="module", params=USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Surroundings]:
    with site(request.param) as found:
        yield found


@pytest.fixture(params=BOXES)
def box(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def enclosure(box: str, config: Config = WORKSPACE) -> AsyncIterator[tuple[Walls, Path]]:
    """An enclosure of the user who runs the tests, and its project."""
    with site(USERS[0]) as place:
        policy = place.policy(config)
        sandbox = KINDS[box]()
        why_not = await asyncio.to_thread(sandbox.why_not, policy)
        if why_not is not None:
            pytest.skip(f"{box}: {why_not}")
        found = Walls(sandbox, policy, home=policy.home)
        yield found, place.project
        await found.aclose()
        assert not policy.temp.exists()


async def ran(found: Walls, cwd: Path, script: str, *, timeout_s: float = LIMIT_S) -> str:
    env = child_env(os.environ)
    async with found.around(["bash", "-c", script], cwd=cwd, search=env["PATH"]) as command:
        result = await run_process(
            command, cwd=cwd, env=env, timeout_s=timeout_s, limit_bytes=1 << 16
        )
    return "timed out" if result.timed_out else result.output


async def made(file: Path) -> None:
    """The file is there."""
    async with asyncio.timeout(LIMIT_S):
        while not file.exists():  # noqa: ASYNC110, ASYNC240 - a process makes it
            await asyncio.sleep(0.02)


def test_work_in_the_project_goes_on(place: Surroundings, box: str) -> None:
    script = """
        mkdir sub/made && echo a > sub/made/b && mv sub/made sub/moved && cat sub/moved/b
        chmod +x sub/moved/b && rm -r sub/moved && echo c > "$TMPDIR/d" && cat "$TMPDIR/d"
        ls ~ /etc >/dev/null && cat link/file && echo && git status --short >/dev/null 2>&1; id -u
        cat <(echo e) | sort && echo f > /dev/null && (sleep 0 & wait) && pwd
    """
    told = attempt(place, box, script, config=WORKSPACE)

    assert told.output.split("\n") == [
        *("a", "c", "as it was", str(place.uid), "e", str(place.project), "")
    ]
    assert "d" in told.left


def test_signals_and_variables_are_as_outside(
    place: Surroundings, box: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    script = "yes | head -1; echo $LC_CTYPE; exit 7"

    told = attempt(place, box, script, config=WORKSPACE)

    assert (told.output, told.code) == ("y\n\n", 7)


def test_new_things_can_be_made_at_the_root(place: Surroundings) -> None:
    told = attempt(place, "bubblewrap", "touch new && mkdir build && rmdir build", config=WORKSPACE)

    assert (told.output, told.code) == ("", 0)
    assert (place.project / "new").exists()


def test_with_the_network_sockets_of_files_stay_closed(place: Surroundings, box: str) -> None:
    script = """
        exec 3<>/dev/tcp/127.0.0.1/$PORT && echo connected
        perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0);
            connect(S, sockaddr_un($ENV{SOCKET_PROJECT})) && print "leak"'
    """
    config = Config(sandbox="workspace", sandbox_network=True)

    told = attempt(place, box, script, config=config)

    assert told.output == "connected\n"
    assert place.called() == ["tcp"]


def test_a_folder_above_something_protected_cannot_be_put_aside(
    place: Surroundings, box: str
) -> None:
    before = place.state()
    script = "cd ..; mv sub old; mkdir -p sub/.pegboard; echo x > sub/.pegboard/config.json; pwd"

    told = attempt(place, box, script, config=WORKSPACE, directory=place.project / "sub")

    assert place.state() == before
    assert told.output.endswith(f"{place.project}\n")


def test_at_the_strict_level_the_home_is_empty(place: Surroundings) -> None:
    told = attempt(
        place,
        "bubblewrap",
        "ls -A ~; ls /home /root; echo x > ~/y",
        config=Config(sandbox="strict"),
    )

    assert SECRET not in told.output
    assert set(told.output.split()) <= {"/home:", "/root:", "project"}
    assert told.code == 0
    assert not (place.home / "y").exists()


def test_landlock_does_not_claim_the_strict_level(place: Surroundings) -> None:
    policy = place.policy(Config(sandbox="strict"))
    policy.temp.rmdir()

    assert KINDS["landlock"]().why_not(policy) == "it has no process namespaces"


def test_without_the_program_bubblewrap_says_so(
    place: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    policy = place.policy(WORKSPACE)
    policy.temp.rmdir()

    assert KINDS["bubblewrap"]().why_not(policy) == "bwrap is not installed"


async def test_a_protected_link_is_refused() -> None:
    async with enclosure("bubblewrap") as (found, project):
        (project / "tool").symlink_to(project / "sub")

        with pytest.raises(ToolError, match="tool is a link"):
            await ran(found, project, "true")


async def test_placeholders_are_there_as_long_as_any_process_is() -> None:
    async with enclosure("bubblewrap") as (found, project):
        before = set(project.iterdir())
        long = asyncio.create_task(ran(found, project, "touch sub/on; sleep 60"))
        await made(project / "sub" / "on")
        short = await ran(found, project, "mkdir tool 2>&1")
        kept = (project / "tool").is_dir()
        long.cancel()
        await asyncio.wait({long})
        after = set(project.iterdir())

    assert "File exists" in short
    assert kept
    assert after == before


async def test_placeholders_of_a_killed_agent_go_with_the_next_process() -> None:
    async with enclosure("bubblewrap") as (found, project):
        before = set(project.iterdir())
        await ran(found, project, "true")
        kept = (project.parent / "own" / "state" / "sandbox").iterdir()
        [lock] = (path for path in kept if path.is_file() and path.suffix != ".bpf")
        lock.write_bytes(bytes(project / "tool") + b"\0")
        (project / "tool").mkdir()
        (project / "tool" / "mine.py").touch()
        await ran(found, project, "true")
        assert (project / "tool" / "mine.py").exists()
        (project / "tool" / "mine.py").unlink()
        lock.write_bytes(bytes(project / "tool") + b"\0")

        await ran(found, project, "true")

        assert set(project.iterdir()) == before


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
async def test_a_socket_that_goes_during_the_start_does_not_stop_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with enclosure("bubblewrap") as (found, project):
        folder = project.parent / "outside" / "daemon"
        folder.mkdir()
        shim = tmp_path / "bwrap"
        bwrap = shutil.which("bwrap")
        shim.write_text(f'#!/bin/sh\nrm -rf {folder}\nexec {bwrap} "$@"')
        shim.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.bind(str(folder / "s"))
            daemon.listen()
            output = await ran(found, project, "echo to both; echo of them >&2; exit 7")

    assert output == "to both\nof them\n"


ESCAPES = {
    "background": "sleep {n} & sleep {n}",
    "own session": "setsid sleep {n} & sleep {n}",
    "daemon": "(setsid sleep {n} >/dev/null 2>&1 </dev/null &); sleep {n}",
    "ignores SIGTERM": "trap '' TERM; sleep {n}; sleep {n}",
}


@pytest.mark.parametrize("kind", ESCAPES)
async def test_nothing_survives_the_time_limit(box: str, kind: str) -> None:
    number = str(74_000_000 + os.getpid())
    async with enclosure(box) as (found, project):
        told = await ran(found, project, ESCAPES[kind].format(n=number), timeout_s=0.6)

        assert told == "timed out"
        assert remaining(number) == []


async def test_nothing_survives_an_abort_or_the_end(box: str) -> None:
    number = str(75_000_000 + os.getpid())
    async with enclosure(box) as (found, project):
        script = f"touch sub/on; setsid sleep {number} & env -i sleep {number}"
        running = asyncio.create_task(ran(found, project, script))
        await made(project / "sub" / "on")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        ended = await ran(found, project, f"setsid sleep {number} >/dev/null 2>&1 & echo x")

    assert remaining(number) == []
    assert ended == "x\n"


async def test_many_run_at_once(box: str) -> None:
    async with enclosure(box) as (found, project):
        told = await asyncio.gather(*(ran(found, project, f"echo {n}") for n in range(10)))

        assert told == [f"{n}\n" for n in range(10)]


def test_a_project_that_cannot_be_written_needs_no_placeholders() -> None:
    with site(USERS[-1]) as place:
        place.project.chmod(0o555)

        told = attempt(place, "bubblewrap", "cat sub/code.py; mkdir tool", config=WORKSPACE)

        assert told.output.startswith("pass\nmkdir: cannot create directory")
        assert not (place.project / "tool").exists()
