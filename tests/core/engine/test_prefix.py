"""Each request begins with the bytes of the one before it, so that a provider's cache is hit."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path

from pegboard import App, Prompt
from pegboard.schema.part import FileInput
from support.models import model_server as ms
from support.models.model_server import ModelServer
from support.sessions.long_session import STEPS, asked, encoded, kept_bytes, options, project_in
from support.sessions.long_session import requests_of_thirty_steps as thirty_steps


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
        async with App.open(project, options(tmp_path, server.url)) as app:
            session = await app.create_session()
            url = (project / "a.txt").as_uri()
            await app.prompt(
                session.id, Prompt("go", parts=(FileInput(mime="text/plain", url=url),))
            )
            first = asyncio.create_task(app.prompt(session.id, "more"))
            await asyncio.sleep(0)
            await app.prompt(session.id, "and faster")
            await first
            (project / "AGENTS.md").touch()
        async with App.open(project, options(tmp_path, server.url)) as app:
            await app.prompt(session.id, "after a new start")
            await app.prompt(session.id, "last")

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
            await app.prompt(session.id, Prompt(agent, agent=agent))
        requests = asked(server)

    for before, after in pairwise(requests):
        assert encoded(after)[1 : len(before["messages"])] == encoded(before)[1:]


async def test_thirty_steps_with_lists_reminders_and_failures_keep_the_prefix(
    tmp_path: Path,
) -> None:
    requests = await thirty_steps(tmp_path)
    told = json.dumps(requests[-1]["messages"])

    assert len(requests) >= 2 * STEPS
    assert all(word in told for word in ("system-reminder", "Use tabs.", "todowrite", "no tool"))
    for before, after in pairwise(requests):
        assert encoded(after)[: len(before["messages"])] == encoded(before)
        assert {**after, "messages": []} == {**before, "messages": []}
        whole = len(json.dumps([before["tools"], before["messages"]]))
        assert kept_bytes(before, after)[0] >= whole - len("]]")
