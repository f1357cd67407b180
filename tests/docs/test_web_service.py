"""The example of a web service: streams, permissions over HTTP, aborts, a model per request."""

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import uvicorn

from docs.pages import EXAMPLES
from pegboard import AppOptions

SCRIPT = {
    "scripts": [
        {"when": {"prompt": "slow"}, "steps": [{"text": "late", "delay_s": 600}]},
        {
            "when": {"prompt": "order"},
            "steps": [
                {"calls": [{"tool": "order_state", "input": {"number": 7}}]},
                {"text": "The tool says: {{result.0}}"},
            ],
        },
        {"steps": [{"text": "Hello."}]},
    ]
}


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("web_service", EXAMPLES / "web_service.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The service of an empty project on a real socket."""
    service = example()
    project = folder / "project"
    project.mkdir()
    (project / "model.json").write_text(json.dumps(SCRIPT))
    options = AppOptions(
        config={**service.SETTINGS, "model": f"scripted/{project / 'model.json'}"},
        tools=[service.order_state],
        interactive=True,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
    )
    api = service.create(project, options)
    server = uvicorn.Server(uvicorn.Config(api, host="127.0.0.1", port=0, log_level="warning"))
    running = asyncio.create_task(server.serve())
    async with asyncio.timeout(30):
        while not server.started:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield client
    server.should_exit = True
    await running


async def frames(response: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    name = ""
    async for line in response.aiter_lines():
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, json.loads(value)


async def session(client: httpx.AsyncClient) -> str:
    return str((await client.post("/sessions")).json()["id"])


async def test_an_answer_is_streamed_and_a_model_may_be_named(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        place = f"/sessions/{await session(client)}/prompts"
        async with client.stream("POST", place, json={"text": "hi"}) as response:
            heard = [frame async for frame in frames(response)]
        asked = {"text": "hi", "model": "none/such"}
        async with client.stream("POST", place, json=asked) as response:
            [(failed, why)] = [frame async for frame in frames(response)]

    assert heard[-1] == ("done", {"text": "Hello."})
    assert "".join(data["text"] for name, data in heard if name == "text") == "Hello."
    assert (failed, "none" in why["message"]) == ("failed", True)


async def test_a_permission_is_answered_over_http(tmp_path: Path) -> None:
    heard = {}
    async with serving(tmp_path) as client:
        place = f"/sessions/{await session(client)}/prompts"
        for reply in ("once", "reject"):
            async with client.stream("POST", place, json={"text": "order"}) as response:
                async for name, data in frames(response):
                    heard[reply, name] = data
                    if name == "asked":
                        await client.post(f"/permissions/{data['id']}", json={"reply": reply})
        unknown = await client.post("/permissions/per_none", json={"reply": "once"})

    assert heard["once", "asked"]["permission"] == "order_state"
    assert "on its way" in heard["once", "done"]["text"]
    assert "on its way" not in str(heard["reject", "done"])
    assert unknown.status_code == 404


async def test_an_abort_ends_the_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        one = await session(client)
        place = f"/sessions/{one}/prompts"
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            asking = group.create_task(client.post(place, json={"text": "slow"}))
            for _ in range(100):
                if (await client.post(f"/sessions/{one}/abort")).json()["stopped"]:
                    break
                await asyncio.sleep(0.05)

    assert asking.result().text.startswith("event: failed")
