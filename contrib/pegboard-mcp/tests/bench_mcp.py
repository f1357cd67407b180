"""What MCP servers cost: memory, a cold and a warm call, and a step with 50 known tools.

`python contrib/pegboard-mcp/tests/bench_mcp.py` prints each figure with its ratio to a yardstick:
an App without servers, or the bare SDK, which is imported by then. With `cpu` as an argument calls
are measured in processor time of this process: for a busy machine. Linux only.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import pegboard_mcp  # noqa: E402 - found next to this file
from pegboard_mcp.tools import SERVERS  # noqa: E402
from settled import settled  # noqa: E402

from pegboard import ToolContext, tool  # noqa: E402
from pegboard.testing import ScriptedApp  # noqa: E402
from pegboard.testing.scriptedapp import scripted_app  # noqa: E402

clock = time.process_time if "cpu" in sys.argv else time.perf_counter
CALLS = 200
STEPS = 60
TRIES = 5
TOOLS = 50
PROPERTIES = {f"argument_{at}": {"type": "string", "description": "d" * 40} for at in range(4)}


@tool(requires=False)
async def noop(context: ToolContext) -> str:
    """Do nothing."""
    return "ok"


def resident_mib() -> float:
    """Return the memory of this process."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@asynccontextmanager
async def opened(
    folder: Path, servers: Mapping[str, Any], script: list[Any]
) -> AsyncIterator[ScriptedApp]:
    """Open an App whose servers have listed and are reviewed."""
    config = {"mcp": dict(servers), "permission": {"*": "allow"}}
    plugins = (pegboard_mcp,) if servers else ()
    app = scripted_app(folder, *plugins, noop, script=script, reply="once", config=config)
    async with app as scripted:
        if servers:
            stash = scripted.app.stash
            await settled(lambda: stash.get(SERVERS) is not None)
            known = stash.get(SERVERS)
            assert known is not None
            await settled(lambda: known.is_settled)
            server = known.named("raw")
            assert server.catalogue is not None
            server.files.pins.approve(server.catalogue.tools, None)
        yield scripted


async def median_ms(call: Callable[[], Awaitable[object]]) -> float:
    """Return the time of a call, once it has been made."""
    times = []
    for _ in range(CALLS):
        before = clock()
        await call()
        times.append((clock() - before) * 1000)
    return statistics.median(times)


async def bare_ms(command: list[str]) -> tuple[float, float]:
    """Return the times of a cold and a warm call through the SDK alone."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    before = clock()
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    async with Client(stdio_client(parameters)) as client:
        await client.call_tool("t0", {})
        cold = (clock() - before) * 1000
        return cold, await median_ms(lambda: client.call_tool("t0", {}))


async def own_ms(folder: Path, servers: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Return the times of a cold and a warm call, and the memory before and after them."""
    async with opened(folder, servers, ["done"]) as scripted:
        known = resident_mib()
        session = await scripted.app.create_session()

        async def call() -> object:
            return await scripted.app.call_tool(session.id, "raw_t0", {})

        before = clock()
        await call()
        cold = (clock() - before) * 1000
        return cold, await median_ms(call), known, resident_mib()


async def step_ms(folder: Path, servers: Mapping[str, Any]) -> float:
    """Return the processor time of a step."""
    async with opened(folder, servers, [*[("noop", {})] * STEPS, "done"]) as scripted:
        before = time.process_time()
        await scripted.turn()
        return (time.process_time() - before) * 1000 / STEPS


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        schema = {"type": "object", "properties": PROPERTIES}
        tools = [
            {"name": f"t{at}", "description": "d" * 200, "inputSchema": schema}
            for at in range(TOOLS)
        ]
        (folder / "tools.json").write_text(json.dumps(tools))
        command = [sys.executable, "-P", str(HERE / "raw_server.py"), "file"]
        command.append(str(folder / "tools.json"))
        servers = {"raw": {"command": command}}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, __file__, "list", str(folder), json.dumps(servers))
        )
        await process.wait()  # whose SDK is not in the memory of this process
        async with opened(folder, {}, ["done"]):
            without = resident_mib()
        cold, warm, known, running = await own_ms(folder, servers)
        bare_cold, bare_warm = await bare_ms(command)
        none = min([await step_ms(folder, {}) for _ in range(TRIES)])
        some = min([await step_ms(folder, servers) for _ in range(TRIES)])
    rows = (
        ("memory, known servers, MiB", known, without),
        ("memory, a server running, MiB", running, without),
        ("cold call, ms", cold, bare_cold),
        ("warm call, ms", warm, bare_warm),
        (f"step with {TOOLS} known tools, ms of processor time", some, none),
    )
    for what, own, yardstick in rows:
        ratio, more = own / yardstick, own - yardstick
        sys.stdout.write(f"{what}: {own:.2f} ({ratio:.2f}x, {more:+.2f})\n")
    sys.stdout.write(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")


async def list_once(folder: Path, servers: Mapping[str, Any]) -> None:
    async with opened(folder, servers, ["done"]):
        pass


if __name__ == "__main__":
    if "list" in sys.argv:
        asyncio.run(list_once(Path(sys.argv[2]), json.loads(sys.argv[3])))
    else:
        asyncio.run(main())
