"""Each request begins with the bytes of the one before it, so that a provider's cache is hit."""

import asyncio
import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import model_server as ms
from model_server import ModelServer
from pegboard import App, AppOptions
from pegboard.schema.prompt import FileInput, TextInput
from worktrees import git

Body = Mapping[str, Any]


def options(folder: Path, url: str) -> AppOptions:
    """An App with all built-in plugins and a model behind HTTP."""
    provider = {
        "options": {"baseURL": url, "apiKey": "key"},
        "models": {"model": {"limit": {"context": 100_000, "output": 4_000}}},
    }
    return AppOptions(
        config={"model": "fake/model", "provider": {"fake": provider}},
        installed=False,
        trust=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)},
        **{f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")},
    )


def project_in(folder: Path) -> Path:
    project = folder / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Be brief.\n")
    (project / "a.txt").write_text("one\ntwo\n")
    git(project, "init", "-q")
    return project


def encoded(body: Body) -> list[bytes]:
    """The messages of a request as they were sent, but for blanks."""
    return [json.dumps(message).encode() for message in body["messages"]]


def asked(server: ModelServer) -> list[Body]:
    """The requests of turns; a title's offers no tools."""
    return [body for body in server.requests if body.get("tools")]


async def test_every_request_of_a_session_begins_with_the_bytes_of_the_one_before(
    tmp_path: Path,
) -> None:
    project = project_in(tmp_path)
    look = ms.call("read", {"filePath": str(project / "a.txt")}, call_id="c1")
    change = ms.call(
        "edit",
        {"filePath": str(project / "a.txt"), "oldString": "one", "newString": "1"},
        call_id="c2",
    )
    several = [ms.tool_call("glob", {"pattern": "*"}, call_id="c3", index=0)]
    several += [ms.tool_call("bash", {"command": "echo x"}, call_id="c4", index=1)]
    script = ms.by_step(look, change, [*several, ms.finish("tool_calls")], ms.say("Done."))

    async with ModelServer(script) as server:
        async with await App.open(project, options(tmp_path, server.url)) as app:
            session = await app.create_session()
            url = (project / "a.txt").as_uri()
            await app.prompt(
                session.id, [TextInput(text="go"), FileInput(mime="text/plain", url=url)]
            )
            first = asyncio.create_task(app.prompt(session.id, [TextInput(text="more")]))
            await asyncio.sleep(0)
            await app.prompt(session.id, [TextInput(text="and faster")])
            await first
            (project / "AGENTS.md").touch()
        async with await App.open(project, options(tmp_path, server.url)) as app:
            await app.prompt(session.id, [TextInput(text="after a new start")])
            await app.prompt(session.id, [TextInput(text="last")])

        requests = asked(server)

    assert len(requests) >= 12
    for before, after in pairwise(requests):
        assert encoded(after)[: len(before["messages"])] == encoded(before)
        assert json.dumps(after["tools"]) == json.dumps(before["tools"])


async def test_a_change_of_the_mode_changes_no_message_that_was_sent(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    async with (
        ModelServer(ms.by_step(ms.say("Done."))) as server,
        await App.open(project, options(tmp_path, server.url)) as app,
    ):
        session = await app.create_session()
        for agent in ("build", "plan", "plan", "build"):
            await app.prompt(session.id, [TextInput(text=agent)], agent=agent)
        requests = asked(server)

    for before, after in pairwise(requests):
        assert encoded(after)[1 : len(before["messages"])] == encoded(before)[1:]
