"""Nothing of a server remains, however Pegboard ends."""

import asyncio
import gc
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from pegboard_mcp.stdio import process_streams
from pegboard_mcp.tools import SERVERS
from pegboard_mcp.traffic import Traffic
from settled import settled

from pegboard.testing import CANCEL

PROGRAM = """
import asyncio, json, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[2])
import pegboard_mcp
from pegboard.testing import scripted_app

async def main():
    config = {"mcp": {"raw": json.loads(sys.argv[3])}}
    async with scripted_app(
        Path(sys.argv[1]), pegboard_mcp, script=[("raw_t", {}), "done"], reply="once",
        config=config,
    ) as scripted:
        while "raw_t" not in scripted.app.tools:
            await asyncio.sleep(0.02)
        turn = await scripted.turn()
        print(turn.calls[0].output, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_server_ends_when_pegboard_is_killed(raw_server, tmp_path) -> None:
    here = Path(__file__).parent
    arguments = (tmp_path, json.dumps([str(here.parent), str(here)]), json.dumps(raw_server("pid")))
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, *map(str, arguments)), stdout=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    pid = int(await program.stdout.readline())
    os.kill(pid, 0)

    program.send_signal(signal.SIGKILL)
    await program.wait()

    await settled(lambda: _is_dead(pid))


async def test_opening_and_closing_leaves_no_descriptor(served_app, raw_server) -> None:
    async with served_app({"raw": raw_server()}, ("raw_t", {})) as scripted:
        await scripted.turn()
    before = descriptors()
    for _ in range(5):
        async with served_app({"raw": raw_server()}, ("raw_t", {})) as scripted:
            await scripted.turn()

    await settled(lambda: descriptors() <= before)


async def test_a_server_whose_output_was_not_read_leaves_no_descriptor(tmp_path) -> None:
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": "x" * 1000}})
    command = (sys.executable, "-c", f"while True: print({note!r})")
    gc.collect()
    before = descriptors()
    gc.disable()  # what is closed when it is collected was left open
    try:
        traffic = Traffic(lambda _: None)
        streams = process_streams(command, cwd=tmp_path, env={}, traffic=traffic)
        async with streams as (inbound, _):
            await inbound.receive()

        await settled(lambda: descriptors() <= before)
    finally:
        gc.enable()


async def test_twenty_calls_at_once_share_one_server(served_app, raw_server) -> None:
    calls = [[("raw_t", {"a": str(number)}) for number in range(20)]]

    async with served_app({"raw": raw_server()}, *calls) as scripted:
        turn = await scripted.turn()

    assert [each.output for each in turn.calls] == [str(number) for number in range(20)]


async def test_a_turn_that_is_stopped_leaves_the_server_and_the_session_in_order(
    served_app, raw_server
) -> None:
    call = [("raw_t", {"a": "x"}), CANCEL]

    async with served_app({"raw": raw_server("hang_call")}, call) as scripted:
        turn = await scripted.turn()
        state = scripted.app.stash.get(SERVERS).named("raw").state

    assert turn.cancelled
    assert state == "running"


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bwrap on this machine")
async def test_a_server_runs_in_the_sandbox_of_tools(served_app, raw_server, tmp_path) -> None:
    outside, call = tmp_path / "outside", ("raw_t", {"a": "x"})
    config = {"sandbox": "workspace"}

    async with served_app({"raw": raw_server("touch", outside)}, call, config=config) as scripted:
        turn = await scripted.turn()

    assert turn.calls[0].output == "x"
    assert not outside.exists()


def descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def _is_dead(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
