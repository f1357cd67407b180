"""litellm's proxy between Pegboard and a model that plays a script, in a turn with real tools.

pip install 'litellm[proxy]'        # in an environment of its own: 700 MB
PEGBOARD_LITELLM_PROXY=/its/bin/litellm pytest tests/strangers
"""

import asyncio
import json
import os
import socket
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from pegboard import App, AppOptions, Prompt
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import TextPart, ToolPart
from support.models.model_server import (
    Answer,
    Body,
    ModelServer,
    by_step,
    call,
    failure,
    in_order,
    say,
)

PROGRAM = os.environ.get("PEGBOARD_LITELLM_PROXY", "")
KEY = "sk-of-the-proxy"
START_S = 150
pytestmark = [
    pytest.mark.skipif(not PROGRAM, reason="no litellm proxy: PEGBOARD_LITELLM_PROXY names none"),
    pytest.mark.timeout(300),
]


@asynccontextmanager
async def proxy(backend: str, folder: Path) -> AsyncIterator[str]:
    """The URL of a proxy whose model `plum` is the one of the backend."""
    behind = {"model": "openai/scripted", "api_base": backend, "api_key": "k"}
    settings = {
        "model_list": [{"model_name": "plum", "litellm_params": behind}],
        "litellm_settings": {"num_retries": 0},
        "general_settings": {"master_key": KEY},
    }
    config = folder / "proxy.yaml"
    config.write_text(json.dumps(settings))
    port = _free_port()
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)),
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_MODE": "PRODUCTION",
        },
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        await _alive(f"http://127.0.0.1:{port}/health/liveliness", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        await process.wait()


async def _alive(url: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(START_S), httpx.AsyncClient(trust_env=False) as client:
        while process.returncode is None:
            try:
                if (await client.get(url)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2)
    raise AssertionError(f"the proxy ended with {process.returncode}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def _turns(url: str, folder: Path) -> tuple[Turn, ...]:
    project = folder / "project"
    project.mkdir()
    (project / "notes.txt").write_text("The word is plum.\n")
    house = {
        "options": {"baseURL": url, "apiKey": KEY},
        "models": {"plum": {"cost": {"input": 1, "output": 1}}},
    }
    options = AppOptions(
        config={"provider": {"house": house}},
        config_dir=folder / "config",
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
    )
    async with App.open(project, options) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt("What is the word?", model="house/plum"))
        return await app.list_turns(session.id)


def _asked(model: ModelServer) -> list[Body]:
    """The requests to the model; the proxy also asks which models there are."""
    return [body for body in model.requests if "messages" in body]


async def test_a_turn_with_tools_goes_through_it(tmp_path: Path) -> None:
    script = by_step(call("read", {"filePath": "notes.txt"}), say("The word is plum."))

    async with ModelServer(script) as model, proxy(model.url, tmp_path) as url:
        turns = await _turns(url, tmp_path)

    answers = [each.info for each in turns if isinstance(each.info, AssistantMessage)]
    parts = [part for each in turns for part in each.parts]
    assert [each.error for each in answers] == [None, None]
    assert [part.tool for part in parts if isinstance(part, ToolPart)] == ["read"]
    assert [part.text for part in parts if isinstance(part, TextPart)][-1] == "The word is plum."
    assert sum(each.tokens.input for each in answers) == 20  # as the backend has counted
    assert [body["messages"][-1]["role"] for body in _asked(model)] == ["user", "tool"]


async def test_a_limit_behind_it_is_waited_for(tmp_path: Path) -> None:
    answers_in_order = in_order(failure(429, "slow down"), say("Plum."))

    def script(body: Body) -> Answer:
        return answers_in_order(body) if "messages" in body else []

    async with ModelServer(script) as model, proxy(model.url, tmp_path) as url:
        turns = await _turns(url, tmp_path)

    answers = [each.info for each in turns if isinstance(each.info, AssistantMessage)]
    assert [each.error for each in answers] == [None]  # what passes is tried again
    assert len(_asked(model)) == 2
