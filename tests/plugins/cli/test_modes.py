"""The same call gets the same verdict, whoever makes it and however Pegboard runs."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from pegboard import App, AppOptions, Prompt, hookimpl
from pegboard.errors import PermissionDeniedError
from pegboard.providers import ModelRequest, Provider, StreamEvent
from pegboard.schema.session import Rule
from pegboard_plugins.shared.frontend import CommandOrder, run_command
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say
from support.models.played import Played, calls, text
from support.models.played import call as played_call
from support.wire import served as serving

LIMIT_S = 30
FREE, NEVER, ASKED = "echo free", "echo never", "true"
PERMISSION = {"*": "allow", "bash": {"*": "ask", "echo free": "allow", "echo never": "deny"}}
GO = "go"
Decision = tuple[str, str, str, Any]
EXPECTED: list[Decision] = [
    (FREE, "allow", "config", ["bash", "echo free", "allow"]),
    (NEVER, "deny", "config", ["bash", "echo never", "deny"]),
    (ASKED, "ask", "config", ["bash", "*", "ask"]),
]
HEADLESS: list[Decision] = [
    *EXPECTED[:2],
    (ASKED, "deny", "headless", ["bash", "*", "ask"]),
]
AUTO: list[Decision] = [*EXPECTED[:2], (ASKED, "allow", "auto", ["bash", "*", "ask"])]


def decided(state: Path) -> list[Decision]:
    """The decisions about bash, in the order of the commands above."""
    lines = [json.loads(line) for line in (state / "audit.jsonl").read_text().splitlines()]
    found = [
        (line["patterns"][0], line["action"], line["by"], line["rule"])
        for line in lines
        if line["kind"] == "decision" and line["permission"] == "bash"
    ]
    return sorted(found, key=lambda each: (FREE, NEVER, ASKED).index(each[0]))


def bash(command: str) -> list[StreamEvent]:
    return calls(played_call("bash", json.dumps({"command": command})))


def by_itself() -> Played:
    return Played(bash(FREE), bash(NEVER), bash(ASKED), text("done"))


def in_a_batch() -> Played:
    wanted = [{"tool": "bash", "parameters": {"command": each}} for each in (FREE, NEVER, ASKED)]
    return Played(calls(played_call("batch", json.dumps({"tool_calls": wanted}))), text("done"))


def by_a_subagent() -> Played:
    steps: Counter[str] = Counter()
    child = [bash(FREE), bash(NEVER), bash(ASKED), text("done")]
    work = {"description": "work", "prompt": "do it", "subagent_type": "general"}
    parent = [calls(played_call("task", json.dumps(work))), text("done")]

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        steps[request.session_id] += 1
        script = parent if next(iter(steps)) == request.session_id else child
        for event in script[steps[request.session_id] - 1]:
            yield event

    return Played(answer)


class Only:
    """Registers a provider, and leaves agents and rules as the user has them."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    @hookimpl
    async def register_providers(self) -> list[Provider]:
        return [self._provider]


async def opened(folder: Path, provider: Provider, **config: object) -> App:
    project = folder / "project"
    project.mkdir()
    settings = {
        "model": "played/m",
        "title": "off",
        "permission": PERMISSION,
        "plugins": {"batch": {}},
        "command": {
            name: {"template": f"look: !`{command}`"}
            for name, command in (("free", FREE), ("never", NEVER), ("asked", ASKED))
        },
        **config,
    }
    options = AppOptions(
        installed=False,
        plugins=(Only(provider),),
        config=settings,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)},
        **{f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")},
    )
    return await App.open(project, options)


@pytest.mark.parametrize(
    "provider", [by_itself, in_a_batch, by_a_subagent], ids=["itself", "batch", "subagent"]
)
@pytest.mark.parametrize("auto", [False, True], ids=["headless", "auto"])
async def test_in_an_embedded_app(tmp_path: Path, provider: Any, auto: bool) -> None:
    async with await opened(tmp_path, provider(), auto_approve=auto) as app:
        session = await app.create_session()
        await app.prompt(session.id, GO)

    assert decided(tmp_path / "state") == (AUTO if auto else HEADLESS)


async def test_rules_of_an_agent_and_of_a_session_count_beside_the_user_s(tmp_path: Path) -> None:
    agents = {"careful": {"mode": "primary", "permission": {"bash": {"true": "allow"}}}}
    provider = Played(bash(FREE), bash(NEVER), bash(ASKED), text("done"))
    async with await opened(tmp_path, provider, agent=agents) as app:
        tight = (Rule("bash", FREE, "ask"), Rule("bash", NEVER, "allow"))
        session = await app.create_session(agent="careful", permission=tight)
        await app.prompt(session.id, Prompt(GO, agent="careful"))

    assert decided(tmp_path / "state") == [
        (FREE, "deny", "headless", ["bash", FREE, "ask"]),
        (NEVER, "deny", "config", ["bash", NEVER, "deny"]),
        (ASKED, "allow", "config", ["bash", "true", "allow"]),
    ]


async def test_in_slash_commands(tmp_path: Path) -> None:
    async with await opened(tmp_path, Played(text("ok"))) as app:
        session = await app.create_session()
        for name in ("free", "never", "asked"):
            with suppress(PermissionDeniedError):
                await run_command(app, session.id, CommandOrder(name=name, arguments=""))

    assert decided(tmp_path / "state") == HEADLESS


def script() -> Any:
    return by_step(*(call("bash", {"command": each}) for each in (FREE, NEVER, ASKED)), say("ok"))


@pytest.mark.parametrize("auto", [False, True], ids=["headless", "auto"])
async def test_on_the_command_line(pegboard: CommandLine, auto: bool) -> None:
    async with ModelServer(script()) as server:
        pegboard.use_model(server.url, permission=PERMISSION)
        done = await pegboard("run", *(["--auto"] if auto else []), "go")

    assert decided(pegboard.home / "state") == (AUTO if auto else HEADLESS)
    told = [line for line in done.err.splitlines() if line.startswith("auto: ")]
    assert len(told) == auto


async def test_on_a_terminal(pegboard: CommandLine) -> None:
    async with ModelServer(script()) as server:
        pegboard.use_model(server.url, permission=PERMISSION)
        async with pegboard.terminal("run", "go") as terminal:
            await terminal.see("One of these keys: ")
            terminal.type("y\n")
            await terminal.end()

    assert decided(pegboard.home / "state") == EXPECTED


async def test_on_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "PERMISSION", PERMISSION)

    await asyncio.to_thread(_prompted_over_http, tmp_path)

    assert decided(tmp_path / "state") == EXPECTED


def _prompted_over_http(root: Path) -> None:
    with serving.model() as port, serving.served(root, port) as server, server.client() as client:
        session = client.post("/session").json()["id"]
        words = "".join(f";;%bash {each}" for each in (FREE, NEVER, ASKED))
        body = {"parts": [{"type": "text", "text": f"go{words}"}]}
        client.post(f"/session/{session}/prompt_async", json=body)
        request = _waiting(client)
        client.post(f"/permission/{request}/reply", json={"reply": "once"})
        _until(
            lambda: client.get("/session/status").json().get(session) in (None, {"type": "idle"})
        )


def _waiting(client: httpx.Client) -> str:
    _until(lambda: client.get("/permission").json())
    return str(client.get("/permission").json()[0]["id"])


def _until(happened: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT_S
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)
