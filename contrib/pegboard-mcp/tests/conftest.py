"""The plugin is found next to its tests where it is not installed."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pegboard.testing import ScriptedApp
from support.processes import forks
from support.processes.forks import environment
from support.wire.served import make_project, model

HERE = Path(__file__).parent
PROGRAM = str(HERE / "mcp_program.py")
FOLDERS = ("CONFIG", "DATA", "STATE", "CACHE")
for _folder in (HERE, HERE.parent):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

if find_spec("mcp") is None:
    collect_ignore_glob = ["test_*.py"]  # the SDK is not installed


@pytest.fixture
def raw_server() -> Callable[..., dict[str, Any]]:
    """Configure a server that behaves as a word demands."""

    def configured(mode: str = "", *words: object, **facts: object) -> dict[str, Any]:
        command = [sys.executable, "-P", str(HERE / "raw_server.py"), mode, *map(str, words)]
        return {"command": command, "connect_timeout_s": 10, **facts}

    return configured


@pytest.fixture
def bridged() -> Iterator[Callable[..., dict[str, Any]]]:
    """Configure a remote server that behaves as a word demands, in a style of HTTP."""
    with ExitStack() as leaving:

        def configured(style: str, mode: str = "", **facts: object) -> dict[str, Any]:
            command = [sys.executable, "-P", str(HERE / "http_bridge.py"), style, mode]
            process = leaving.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            leaving.callback(process.kill)
            assert process.stdout is not None
            kind = "sse" if style == "sse" else "remote"
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
            return {"type": kind, "url": url, "oauth": False, "connect_timeout_s": 10, **facts}

        yield configured


@pytest.fixture
def served_app(
    pegboard_app: Callable[..., AbstractAsyncContextManager[ScriptedApp]],
) -> Callable[..., AbstractAsyncContextManager[ScriptedApp]]:
    """Open an App with the plugin and these servers, each of which has listed or failed."""
    import pegboard_mcp
    from pegboard_mcp.tools import SERVERS
    from settled import settled

    @asynccontextmanager
    async def opened(
        servers: dict[str, dict[str, Any]],
        *script: object,
        reply: object = "once",
        config: Mapping[str, object] | None = None,
        plugins: Iterable[object] = (),
        **facts: Any,
    ) -> AsyncIterator[ScriptedApp]:
        async with pegboard_app(
            pegboard_mcp,
            *plugins,
            script=[*script, "done"],
            reply=reply,
            config={"mcp": servers, **(config or {})},
            **facts,
        ) as scripted:
            stash = scripted.app.stash
            await settled(lambda: stash.get(SERVERS) is not None)
            known = stash.get(SERVERS)
            assert known is not None
            await settled(lambda: known.is_settled)
            yield scripted

    return opened


@pytest.fixture(scope="module")
def model_port() -> Iterator[int]:
    with model() as port:
        yield port


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def surroundings(tmp_path: Path, model_port: int) -> Mapping[str, str]:
    """Return the environment of a server whose model takes directives."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"http://127.0.0.1:{model_port}/v1", "apiKey": "very-secret"},
        "models": {"fake-model": {"limit": {"context": 128000, "output": 8192}}},
    }
    config = {
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "provider": {"fake": provider},
        "permission": {
            "*": "allow",
            "bash": {"*": "ask", "echo $$*": "allow", "exec sleep*": "allow"},
        },
    }
    folders = {f"PEGBOARD_{each}_DIR": str(tmp_path / each) for each in FOLDERS}
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **folders}
    return {**env, "PEGBOARD_CONFIG_CONTENT": json.dumps(config)}


@pytest.fixture
def command(project: Path) -> tuple[str, ...]:
    return (sys.executable, PROGRAM, str(project), "serve")


@pytest.fixture(scope="module")
def tools_server(tmp_path_factory):
    """Start a server of tools that wants a token; return its folder and address."""
    folder = tmp_path_factory.mktemp("world")
    command = [sys.executable, str(HERE / "oauth_server.py"), "tools", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield folder, json.loads(process.stdout.readline())
        process.kill()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the command line of `pegboard mcp` in a project with folders of its own."""
    project = tmp_path / "project"
    project.mkdir()
    for name in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"PEGBOARD_{name.upper()}_DIR", str(tmp_path / name))
    config = tmp_path / "config"
    config.mkdir()
    plugins = json.dumps([str(HERE.parent / "pegboard_mcp")])
    (config / "pegboard.toml").write_text(f"plugin_paths = {plugins}\n")

    return [sys.executable, PROGRAM, str(project)]


@pytest.fixture
def run(program: list[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command of `pegboard mcp` and return its output."""

    def called(*words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile("w+") as given:
            given.write(answer)
            given.seek(0)
            return forks.run([*program, *words], cwd=Path.cwd(), env=environment(), stdin=given)

    return called
