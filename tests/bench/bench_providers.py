"""What a command costs until its first request, for each wire format, and without any request.

`python tests/bench/bench_providers.py` runs `pegboard` in processes of their own, by turns, and
prints the middle of the rounds: from the start of the process until its first request is at the
server, and the CPU time of all of it, which is the figure to trust on a busy machine.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.models import model_server as ms
from support.models.four_wires import WIRES, Wire

ROUNDS = 7
BARE: Mapping[str, Sequence[str]] = {
    "models": ("models",),
    "models TEXT": ("models", "gpt-5", "--all"),
    "missing key, native": ("run", "-m", "groq/any", "hi"),
    "missing key, litellm": ("run", "-m", "litellm/cohere/command-r", "hi"),
}
"""Commands that ask no model."""


class Clock:
    """When the requests of a run were at the server."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def server(self, wire: Wire) -> ms.ModelServer:
        """A server of this wire format, that says something at once."""
        return ms.ModelServer(lambda body: self._answer(wire, body))

    def _answer(self, wire: Wire, body: ms.Body) -> ms.Answer:
        self.seen.append(time.monotonic())
        return wire.say


def run(home: Path, *words: str) -> tuple[float, float]:
    """When a command began, and its CPU time."""
    program = str(Path(sys.executable).with_name("pegboard"))
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    began = time.monotonic()
    with subprocess.Popen(
        [program, *words],
        cwd=home,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0  # it has been waited for
    return began, used.ru_utime + used.ru_stime


async def main() -> None:
    """All commands by turns, and a line for each."""
    clock, cpu, first = Clock(), dict[str, list[float]](), dict[str, list[float]]()
    with TemporaryDirectory() as folder:
        home = Path(folder)
        config = home / ".config" / "pegboard"
        config.mkdir(parents=True)
        async with AsyncExitStack() as stack:
            providers: dict[str, Any] = {}
            for name, wire in WIRES.items():
                server = await stack.enter_async_context(clock.server(wire))
                providers[name] = {"options": {"baseURL": server.url, "apiKey": "none-needed"}}
            providers["openai"]["options"]["wire"] = "responses"
            (config / "opencode.json").write_text(json.dumps({"provider": providers}))
            for _ in range(ROUNDS):
                for name, wire in WIRES.items():
                    clock.seen.clear()
                    asks = ("run", "--title", "t", "-m", wire.model, "hi")
                    began, used = await asyncio.to_thread(run, home, *asks)
                    first.setdefault(name, []).append(clock.seen[0] - began)
                    cpu.setdefault(name, []).append(used)
                for name, words in BARE.items():
                    _, used = await asyncio.to_thread(run, home, *words)
                    cpu.setdefault(name, []).append(used)
    for name, times in cpu.items():
        until = f"{statistics.median(first[name]):.3f}" if name in first else "-"
        sys.stdout.write(f"{name:22} first_s {until:>6}  cpu_s {statistics.median(times):.3f}\n")


if __name__ == "__main__":
    asyncio.run(main())
