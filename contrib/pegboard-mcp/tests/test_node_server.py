"""A server on the SDK for Node, which speaks the version 2026-07-28 of the protocol."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from npm_packages import installed
from pegboard_mcp.tools import SERVERS
from settled import settled

from pegboard.schema.event import QuestionAsked
from pegboard.testing import ScriptedApp

ServedApp = Callable[..., AbstractAsyncContextManager[ScriptedApp]]

PROGRAM = Path(__file__).parent / "node_server.mjs"
CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("node_add", {"a": 2, "b": 3}),
    ("node_shard", {"region": "eu"}),
    ("node_greet", {}),
    ("node_pay", {}),
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put the program into a folder with the SDK."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "node_modules").symlink_to(installed())
    return Path(shutil.copy(PROGRAM, folder))


@pytest.fixture
def server(request: pytest.FixtureRequest, program: Path) -> Iterator[dict[str, Any]]:
    """Return the settings of the server over this transport."""
    if request.param == "stdio":
        yield {"command": ["node", str(program), "stdio"], "connect_timeout_s": 60}
        return
    with subprocess.Popen(["node", str(program), "http"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield {"url": f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", "oauth": False}
        process.kill()


async def answering(scripted: ScriptedApp, *answers: str) -> list[str]:
    """Answer the questions of the App one after the other; what was asked."""
    asked: list[str] = []
    async with scripted.app.subscribe() as events:
        async for event in events:
            if isinstance(event.properties, QuestionAsked):
                request = event.properties.request
                asked += [each.question for each in request.questions]
                await scripted.app.answer_question(request.id, [[answers[len(asked) - 1]]])
            if len(asked) == len(answers):
                break
    return asked


@pytest.mark.parametrize("server", ["stdio", "http"], indirect=True)
async def test_the_newest_version_is_spoken_with_the_sdk_for_node(
    served_app: ServedApp, server: dict[str, Any]
) -> None:
    async with served_app({"node": server}, *CALLS) as scripted:
        asking = asyncio.create_task(answering(scripted, "Ada", "I have opened it"))
        turn = await scripted.turn()
        asked = await asyncio.wait_for(asking, 30)
        servers = scripted.app.stash.get(SERVERS)
        assert servers is not None
        known = servers.named("node").catalogue

    assert [each.output for each in turn.calls] == ["5", "eu", "Hello, Ada!", "accept"]
    assert "The MCP server node asks: Who are you?" in asked[0]
    assert "https://example.com/pay" in asked[1]
    assert known is not None
    assert (known.version, known.fresh_s) == ("2026-07-28", 5)


@pytest.mark.parametrize("server", ["stdio"], indirect=True)
async def test_a_change_of_the_lists_is_heard_from_the_sdk_for_node(
    served_app: ServedApp, server: dict[str, Any]
) -> None:
    no_arguments: dict[str, object] = {}
    script = (("node_grow", no_arguments), "done", ("node_grown", no_arguments))
    async with served_app({"node": server}, *script) as scripted:
        await scripted.turn()
        await settled(lambda: "node_grown" in scripted.app.tools)
        turn = await scripted.turn()

    assert turn.calls[0].output == "new"
