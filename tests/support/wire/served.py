"""A server in a process of its own, on a project of its own, with a model that takes directives."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes.forks import PEGBOARD, PIPE, Fork, environment, start

TESTS = Path(__file__).parents[2]
READY_WITHIN_S = 60.0
PERMISSION = {"*": "allow", "bash": {"*": "ask", "echo free*": "allow"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs: its address, its project, and what opens it."""

    url: str
    directory: Path
    places: Path
    token: str
    process: "Fork | subprocess.Popen[bytes]"
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """What lets a client in."""
        return {"authorization": f"Bearer {self.token}"}

    @property
    def resident_mb(self) -> float:
        """The memory that the server has now."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def client(self, **settings: Any) -> httpx.Client:
        """A client that is let in."""
        headers = {**self.headers, **settings.pop("headers", {})}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, **settings)

    @property
    def runtime_file(self) -> Path:
        """The file that tells the user's own clients of the server."""
        return self.places / "state" / f"server-{self.url.rpartition(':')[2]}.json"


def make_project(directory: Path) -> Path:
    """A repository with a commit of two files."""
    directory.mkdir(parents=True)
    (directory / "README.md").write_text("# demo\nhello world\n")
    (directory / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "init")):
        subprocess.run(["git", *words], cwd=directory, check=True)
    return directory


@contextmanager
def model() -> Iterator[int]:
    """The port of a model that takes directives."""
    command = [sys.executable, "-m", "support.models.directed_model"]
    with start(command, cwd=TESTS, env=environment(), stdout=PIPE) as process:
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def served(
    root: Path,
    model_port: int,
    *options: str,
    env: Mapping[str, str] | None = None,
    program: str = PEGBOARD,
) -> Iterator[Served]:
    """A server on `root/work`, which is made if it is not there; it is stopped as a user would."""
    work = root / "work"
    if not work.exists():
        make_project(work)
    full = {**environment(), **own_environment(root, model_port), **(env or {})}
    command = [program, "-C", str(work), "serve", "--port=0", *options]
    log = (root / "server.log").open("a")
    process = start(command, cwd=Path.cwd(), env=full, stdout=PIPE, stderr=log)
    try:
        url = _address(process)
        port = url.rpartition(":")[2]
        facts = json.loads((root / "state" / f"server-{port}.json").read_text())
        yield Served(
            url=url,
            directory=work,
            places=root,
            token=facts["token"] or "",
            process=process,
            env=full,
        )
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout
        process.stdout.close()
        log.close()


@pytest.fixture(scope="session")
def model_port() -> Iterator[int]:
    """The port of a model that takes directives."""
    with model() as port:
        yield port


@pytest.fixture(scope="session")
def server(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that the tests of a folder share."""
    with served(tmp_path_factory.mktemp("served"), model_port) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    """A client of the server."""
    with server.client() as opened:
        yield opened


def _address(process: "Fork | subprocess.Popen[bytes]") -> str:
    assert process.stdout
    end = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < end:
        line = process.stdout.readline().decode()
        if "listening on" in line:
            return line.rpartition(" ")[2].strip()
        if not line:
            break
    raise AssertionError("the server did not start; its log is beside the project")


def own_environment(root: Path, model_port: int) -> dict[str, str]:
    """The variables of a user whose folders are in `root`, and whose model is at this port."""
    known = {"name": "Fake Model", "limit": {"context": 128000, "output": 8192}}
    fake = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fake",
        "options": {"baseURL": f"http://127.0.0.1:{model_port}/v1", "apiKey": "very-secret"},
        "models": {"fake-model": known},
    }
    config = {
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "enabled_providers": ["fake"],
        "provider": {"fake": fake},
        "permission": PERMISSION,
    }
    names = ("data", "state", "config", "cache")
    return {
        "HOME": str(root),
        "PEGBOARD_CONFIG_CONTENT": json.dumps(config),
        **{f"PEGBOARD_{name.upper()}_DIR": str(root / name) for name in names},
    }
