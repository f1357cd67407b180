"""Many sessions at once on a server, beside the real one of the protocol's own program.

python tests/bench/bench_load.py pegboard,opencode

`20 x 10` and `100 x 10` are sessions of ten steps, begun at once and followed by 20 clients:
seconds until the last has ended, CPU seconds of the server and its commands, and the peak of the
server's memory. `deltas` are ten sessions that stream 50 pieces of text a second each, followed by
ten clients: how old a piece is when a client has it, in milliseconds. `start` is the time until the
server answers, `idle` its memory. The ratios are those to the floor, which is measured in the same
run: as many sessions in one process of `floor_agent.py`, with its start, and clients that read the
model's socket. PEER_OPENCODE names the program where it is not on the path.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
from peers import HERE, PEERS
from process_tree import Memory, reap
from raw_stream import raw_ages_ms

from support.wire.crowd import Crowd, Follower, caught_up, crowd, following
from support.wire.served import make_project
from wire.real_clients import QUIET

WITHIN_S = 60
ANSWERED_WITHIN_S = 600
ASK_AGAIN_S = 5
CROWDS = (20, 100)
STEPS = 9
"""Calls of a session; with the last text that is ten steps."""
LISTENERS = 20
TALKERS = 10
PACED = "paced-150-50"
SCRIPTS = (f"steps-{STEPS}", PACED, "title")
"""The names of models are what they do: see fake_script.py."""
PASSWORD = "bench"
SERVE: Mapping[str, Sequence[str]] = {
    "pegboard": ("serve", "--port={port}"),
    "opencode": ("serve", "--port={port}", "--hostname=127.0.0.1"),
}
FILES = {"pegboard": ".config/pegboard/opencode.json", "opencode": "opencode.json"}


def config(url: str) -> str:
    """The configuration, which both read."""
    models = {
        name: {"name": name, "tool_call": True, "limit": {"context": 10**7, "output": 32000}}
        for name in SCRIPTS
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fake",
        "options": {"baseURL": url, "apiKey": "k"},
        "models": models,
    }
    settings = {"permission": "allow", "small_model": "fake/title", "provider": {"fake": provider}}
    return json.dumps(settings)


@contextmanager
def fake_model(directory: Path) -> Iterator[str]:
    """The address of the model."""
    command = [sys.executable, str(HERE / "fake_model.py"), str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


@contextmanager
def serving(name: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A server of its own home and project: its address, and its process."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        home, project = Path(folder, "home"), make_project(Path(folder, "project"))
        with fake_model(project) as model_url, socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            probe.close()
            place = home / FILES[name]
            place.parent.mkdir(parents=True)
            place.write_text(config(model_url))
            peer = PEERS[name]
            program = os.environ.get(peer.variable, peer.program)
            facts = {"home": str(home)}
            env = {"PATH": os.environ["PATH"], "HOME": str(home), **peer.environment(facts)}
            process = subprocess.Popen(
                [program, *(word.format(port=port) for word in SERVE[name])],
                cwd=project,
                stdin=subprocess.DEVNULL,
                env={**env, **QUIET, "OPENCODE_SERVER_PASSWORD": PASSWORD},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                yield f"http://127.0.0.1:{port}", process
            finally:
                process.terminate()
                process.wait(WITHIN_S)


async def answering(url: str) -> float:
    """The seconds until the server lists its sessions."""
    began = time.monotonic()
    async with httpx.AsyncClient(base_url=url, auth=("opencode", PASSWORD)) as client:
        while time.monotonic() - began < WITHIN_S:
            try:
                # A server that was asked while it began may leave that one question unanswered.
                answer = await client.get("/session", timeout=ASK_AGAIN_S)
            except httpx.TransportError:
                await asyncio.sleep(0.02)
                continue
            answer.raise_for_status()
            return time.monotonic() - began
    raise TimeoutError(f"{url} does not answer")


@asynccontextmanager
async def talking(
    url: str, model: str, listeners: int
) -> AsyncIterator[tuple[Crowd, tuple[Follower, ...]]]:
    """A crowd, and who listens to it."""
    basic = httpx.BasicAuth("opencode", PASSWORD)
    headers = dict(next(basic.auth_flow(httpx.Request("GET", url))).headers)
    allowed = {"authorization": headers["authorization"]}
    async with (
        crowd(url, allowed, model=model, within_s=ANSWERED_WITHIN_S) as prompts,
        following(url, listeners, allowed) as followers,
    ):
        yield prompts, followers


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run of sessions took: seconds, CPU seconds and the peak of the memory."""

    wall_s: float
    cpu_s: float
    memory_bytes: int

    def beside(self, floor: "Cost") -> str:
        """The figures, and their ratios to the floor."""
        ratios = (
            self.wall_s / floor.wall_s,
            self.cpu_s / floor.cpu_s,
            self.memory_bytes / floor.memory_bytes,
        )
        found = f"{self.wall_s:.2f} s, CPU {self.cpu_s:.2f} s, {self.memory_bytes / 1e6:.0f} MB"
        return f"{found}, ratios {' '.join(f'{ratio:.2f}' for ratio in ratios)}"


def cpu_s(pid: int) -> float:
    """The CPU seconds of a process and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def floor_of(count: int) -> Cost:
    """The cost of so many sessions in the smallest honest process."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, fake_model(Path(folder)) as url:
        script = str(HERE / "floor_agent.py")
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, script, url, SCRIPTS[0], "go", str(count)],
            env={"PATH": os.environ["PATH"], "HOME": folder},
            stdout=subprocess.DEVNULL,
        )
        memory = Memory(process.pid)
        memory.start()
        process.returncode, used = reap(process.pid)
        wall_s = time.monotonic() - began
        peak = max(memory.finish(), used.ru_maxrss * 1024)
        return Cost(wall_s, used.ru_utime + used.ru_stime, peak)


async def floor_ages_ms() -> list[float]:
    """How old pieces are for clients that read the model's socket, as many at once as sessions."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, fake_model(Path(folder)) as url:
        found = await asyncio.gather(*(raw_ages_ms(url, PACED, "go") for _ in range(TALKERS)))
    return [age for ages in found for age in ages]


async def measure(name: str) -> None:
    """All figures of one server, a line each."""
    floors = {count: floor_of(count) for count in CROWDS}
    raw = await floor_ages_ms()
    with serving(name) as (url, process):
        _show(name, "start", f"{await answering(url):.2f} s")
        idle = Memory(process.pid)
        idle.start()
        await asyncio.sleep(1)
        peak = idle.finish()
        ratio = peak / floors[CROWDS[0]].memory_bytes
        _show(name, "idle", f"{peak / 1e6:.0f} MB, ratio {ratio:.2f}")
        for count in CROWDS:
            memory = Memory(process.pid)
            memory.start()
            async with talking(url, SCRIPTS[0], LISTENERS) as (prompts, followers):
                sessions = await prompts.sessions(count)
                before_s = cpu_s(process.pid)
                took_s = await prompts.all_at_once(sessions)
                used_s = cpu_s(process.pid) - before_s
                await caught_up(followers)
            lost = len({each.digest.digest() for each in followers}) - 1
            cost = Cost(took_s, used_s, memory.finish()).beside(floors[count])
            rate = count * (STEPS + 1) / took_s
            _show(name, f"{count} x 10", f"{cost}, {rate:.0f} steps/s, {lost} listeners differ")
        async with talking(url, PACED, TALKERS) as (prompts, followers):
            await prompts.all_at_once(await prompts.sessions(TALKERS))
            await caught_up(followers)
        ages = [age for each in followers for age in each.ages_ms]
        middle, slow = statistics.median(ages), statistics.quantiles(ages, n=20)[-1]
        ratios = middle / statistics.median(raw), slow / statistics.quantiles(raw, n=20)[-1]
        shown = f"p50 {middle:.1f} ms, p95 {slow:.1f} ms, ratios {ratios[0]:.1f} {ratios[1]:.1f}"
        _show(name, "deltas", shown)


def _show(name: str, row: str, found: str) -> None:
    print(f"{name:<10} {row:<10} {found}", flush=True)  # noqa: T201


def main() -> None:
    """The servers that are named, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers", help="pegboard, opencode")
    for name in parser.parse_args().servers.split(","):
        asyncio.run(measure(name))


if __name__ == "__main__":
    main()
