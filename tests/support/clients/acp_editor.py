"""An editor that speaks with `pegboard acp` in a process of its own, line by line."""

import asyncio
import json
import os
import signal
import sys
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[3] / "contrib" / "pegboard-acp"
if find_spec("pegboard_acp") is None:
    sys.path.insert(0, str(FOLDER))

PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
WITHIN_S = 30
"""The longest wait for anything that is to happen."""
SCHEMA = json.loads((FOLDER / "tests" / "stable_v1.json").read_text())
RESULTS: dict[str, str] = SCHEMA["results"]
SENT: dict[str, str] = SCHEMA["sent"]
CAPABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
PEGBOARD = (sys.executable, "-c", "from pegboard.cli.main import main; main()")
Json = dict[str, Any]


def require_valid(name: str, value: object) -> None:
    """Fail where a value is not what the protocol's schema says."""
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
    Draft202012Validator(schema).validate(value)


class AgentError(Exception):
    """The agent has answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data")


class Editor:
    """The client's side; `updates` are those of all sessions, `asked` the agent's requests.

    `answer` answers a request of the agent; None leaves it without an answer.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.updates: list[Json] = []
        self.asked: list[Json] = []
        self.received: list[Json] = []
        self.answer: Callable[[Json], Awaitable[object]] = self.allow
        self._ids = 0
        self.waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reads = asyncio.Event()
        self._reads.set()
        self._reading = asyncio.create_task(self._read())

    async def allow(self, request: Json) -> object:
        """Allow what is asked, once."""
        assert request["method"] == "session/request_permission"
        return {"outcome": {"outcome": "selected", "optionId": "once"}}

    def begin(self, method: str, params: object) -> "asyncio.Future[Any]":
        """Send a request; the result is that of its answer."""
        self._ids += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting[self._ids] = method, answer
        self.write({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return answer

    async def call(self, method: str, **params: object) -> Any:
        """Return the result of a request."""
        return await asyncio.wait_for(self.begin(method, params), WITHIN_S)

    def notify(self, method: str, **params: object) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def write(self, message: object) -> None:
        self.write_bytes(json.dumps(message).encode() + b"\n")

    def write_bytes(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds of what was received."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(condition), WITHIN_S)

    async def initialized(self, **capabilities: object) -> Json:
        found: Json = await self.call(
            "initialize",
            protocolVersion=1,
            clientCapabilities={**CAPABILITIES, **capabilities},
            clientInfo={"name": "test", "version": "1"},
        )
        return found

    async def new(self, directory: Path) -> str:
        """Return the id of a new session, once its commands have come."""
        made = await self.call("session/new", cwd=str(directory), mcpServers=[])
        session_id: str = made["sessionId"]
        await self.until(lambda: self.of("available_commands_update", session_id))
        return session_id

    def prompting(self, session_id: str, text: str, *blocks: Json) -> "asyncio.Future[Any]":
        """Send a prompt, and return what waits for its end."""
        prompt = [{"type": "text", "text": text}, *blocks]
        return self.begin("session/prompt", {"sessionId": session_id, "prompt": prompt})

    async def prompt(self, session_id: str, text: str, *blocks: Json) -> Json:
        """Return how a turn ended."""
        ended: Json = await asyncio.wait_for(self.prompting(session_id, text, *blocks), WITHIN_S)
        return ended

    def of(self, kind: str, session_id: str = "") -> list[Json]:
        """Return the updates of a kind."""
        return [
            each["update"]
            for each in self.updates
            if each["update"]["sessionUpdate"] == kind and session_id in {"", each["sessionId"]}
        ]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return the chunks of a kind as one text."""
        return "".join(each["content"].get("text", "") for each in self.of(kind))

    def pause(self) -> None:
        """Read nothing, as an editor that hangs."""
        self._reads.clear()

    def resume(self) -> None:
        """Read again."""
        self._reads.set()

    def close_output(self) -> None:
        """Close the end of the pipe that the agent writes to."""
        transport: Any = self.process._transport  # type: ignore[attr-defined]  # no public name
        transport.get_pipe_transport(1).close()

    async def closed(self) -> int:
        """Close the agent's input, and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), WITHIN_S)

    async def aclose(self) -> None:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
            await self.process.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, *self._tasks, return_exceptions=True)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            await self._reads.wait()
            message = json.loads(line)
            async with self._news:
                self._take(message)
                self._news.notify_all()
        for _, answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(EOFError("the agent has ended"))

    def _take(self, message: Json) -> None:
        self.received.append(message)
        if "method" not in message:
            self._settle(message)
        elif message["method"] == "$/cancel_request":
            assert "id" not in message
        elif "id" in message:
            require_valid(SENT[message["method"]], message["params"])
            self.asked.append(message)
            task = asyncio.create_task(self._reply(message))
            self._tasks.add(task)
        else:
            require_valid(SENT[message["method"]], message["params"])
            self.updates.append(message["params"])

    async def _reply(self, request: Json) -> None:
        if (result := await self.answer(request)) is not None:
            self.write({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def _settle(self, message: Json) -> None:
        method, answer = self.waiting.pop(message["id"], ("", None))
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(AgentError(message["error"]))
        else:
            require_valid(RESULTS.get(method, "CloseSessionResponse"), message["result"])
            answer.set_result(message["result"])


Launch = Callable[..., AbstractAsyncContextManager[Editor]]
"""Starts an agent whose model plays steps, or the scripts of a transcript."""


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The `PYTHONPATH` with which the command `acp` is there, whether it is installed or not."""
    folder = tmp_path_factory.mktemp("installed")
    record = folder / f"pegboard_acp-{PROJECT['version']}.dist-info"
    record.mkdir()
    name, version, summary = (PROJECT[each] for each in ("name", "version", "description"))
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n"
    (record / "METADATA").write_text(head)
    groups = PROJECT["entry-points"].items()
    lines = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
        for group, points in groups
    )
    (record / "entry_points.txt").write_text("".join(lines))
    return os.pathsep.join((str(folder), str(FOLDER)))


@pytest.fixture
def environment(tmp_path: Path, installed: str) -> dict[str, str]:
    """The environment of an agent that has a home of its own."""
    own = ("OPENCODE", "XDG_", "PEGBOARD", "PYTHONPATH", "OPENAI", "ANTHROPIC", "GEMINI")
    env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    home = tmp_path / "home"
    home.mkdir()
    for name in ("config", "data", "state", "cache"):
        env[f"XDG_{name.upper()}_HOME"] = str(home / name)
    return {**env, "HOME": str(home), "PYTHONPATH": installed}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder to work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("first line\nsecond line\n")
    return folder


@pytest.fixture
def launch(project: Path, environment: dict[str, str]) -> Launch:
    """Starts an editor with an agent whose model plays steps, or the scripts of a transcript."""

    @asynccontextmanager
    async def launched(*steps: Json, **settings: Any) -> AsyncIterator[Editor]:
        scripts = settings.pop("scripts", None) or [{"steps": list(steps)}]
        transcript = project.parent / "model.json"
        transcript.write_text(json.dumps({"scripts": scripts, **settings.pop("stream", {})}))
        config = Path(environment["XDG_CONFIG_HOME"]) / "pegboard"
        config.mkdir(parents=True, exist_ok=True)
        settings = {"model": f"scripted/{transcript}", **settings}
        (config / "opencode.json").write_text(json.dumps(settings))
        process = await asyncio.create_subprocess_exec(
            *PEGBOARD,
            "acp",
            cwd=project,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        editor = Editor(process)
        try:
            yield editor
        finally:
            await editor.aclose()

    return launched
