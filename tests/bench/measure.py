"""One run of an agent against the fake model, and what it cost around the model."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import repositories
from fake_script import expected_requests
from peers import HERE, Peer
from process_tree import Memory, end_orphans, reap

PROMPT = "Do the task in target.txt, then stop."
SHOWN_CHARS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Seconds, bytes and counts of one run; `steps_s` is from each answer to the next request."""

    ok: bool
    exit_code: int
    output: str
    wall_s: float
    cpu_s: float
    memory_bytes: int
    requests: int
    first_request_s: float
    steps_s: tuple[float, ...]
    after_last_s: float
    first_bytes: int


def run_once(peer: Peer, model: str, *, big: Path | None, timeout_s: float) -> Run:
    """A run in a home of its own, in a small repository or in the `big` one."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        home, repository = Path(folder, "home"), big or Path(folder, "repository")
        home.mkdir()
        if big:
            repositories.restore(big)
        else:
            repositories.small(repository)
        with fake_model(repository) as (server, url):
            facts = {"url": url, "model": model, "prompt": PROMPT, "home": str(home)}
            peer.write_files(home, facts | {"repository": str(repository)})
            return _measure(peer, facts, repository, server, timeout_s)


@contextmanager
def fake_model(directory: Path) -> Iterator[tuple[int, str]]:
    """The process of a fake model for a client that works there, and its base URL."""
    argv = [sys.executable, str(HERE / "fake_model.py"), str(directory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = process.stdout.readline().strip()
        try:
            yield process.pid, f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _measure(
    peer: Peer, facts: Mapping[str, str], repository: Path, server: int, timeout_s: float
) -> Run:
    output = Path(facts["home"], "output.txt")
    with output.open("wb") as file:
        began = time.monotonic()
        process = subprocess.Popen(
            peer.command(facts),
            cwd=repository,
            env={**environment(facts["home"]), **peer.environment(facts)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        memory = Memory(process.pid)
        memory.start()
        limit = threading.Timer(timeout_s, process.kill)
        limit.start()
        exit_code, used = reap(process.pid)
        ended = time.monotonic()
        process.returncode = exit_code
        limit.cancel()
    requests = [each for each in log_of(facts["url"]) if each["kind"] == "main" and "end" in each]
    wanted = expected_requests(facts["model"])
    done = (repository / "target.txt").read_text() == "beta\n" if wanted is None else True
    return Run(
        ok=exit_code == 0 and done and wanted in {None, len(requests)},
        exit_code=exit_code,
        output=output.read_text(errors="replace")[-SHOWN_CHARS:],
        wall_s=ended - began,
        cpu_s=used.ru_utime + used.ru_stime + end_orphans(server),
        memory_bytes=max(memory.finish(), used.ru_maxrss * 1024),
        requests=len(requests),
        first_request_s=requests[0]["arrive"] - began if requests else 0.0,
        steps_s=tuple(after["arrive"] - before["end"] for before, after in pairwise(requests)),
        after_last_s=ended - requests[-1]["end"] if requests else 0.0,
        first_bytes=requests[0]["bytes"] if requests else 0,
    )


def environment(home: str) -> dict[str, str]:
    """A user's variables, and nothing of ours."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "SHELL": "/bin/bash",
        "NO_COLOR": "1",
    }


def log_of(url: str) -> list[dict[str, Any]]:
    """The requests so far."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/log", timeout=10) as answer:
        found: list[dict[str, Any]] = json.loads(answer.read())
        return found
